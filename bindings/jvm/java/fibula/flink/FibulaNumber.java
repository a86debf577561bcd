package fibula.flink;

import fibula.Functions;
import fibula.Strings;
import org.apache.flink.table.functions.FunctionContext;
import org.apache.flink.table.functions.ScalarFunction;

/** {@code fibula_number(table, address, column)}: the same of a column of integers. */
public class FibulaNumber extends ScalarFunction {
    private static final long serialVersionUID = 1;

    private transient Functions<String> functions;

    /** A table may be a file that only the tasks have. */
    @Override
    public boolean supportsConstantFolding() {
        return false;
    }

    @Override
    public void open(FunctionContext context) {
        functions = new Functions<>(new Strings(Sources.of(context)));
    }

    /** Of an address as text. */
    public Long eval(String table, String address, String column) {
        return functions.number(table, address, column);
    }

    /** Of 4 or 16 bytes in network order. */
    public Long eval(String table, byte[] address, String column) {
        return functions.number(table, address, column);
    }

    /** Of an IPv4 address as a number. */
    public Long eval(String table, Long address, String column) {
        return functions.number(table, address, column);
    }
}
