package fibula.flink;

import fibula.Functions;
import fibula.Strings;
import org.apache.flink.table.functions.FunctionContext;
import org.apache.flink.table.functions.ScalarFunction;

/** {@code fibula_prefix(table, address)}: the longest prefix that matches. */
public class FibulaPrefix extends ScalarFunction {
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
    public String eval(String table, String address) {
        return functions.prefix(table, address);
    }

    /** Of 4 or 16 bytes in network order. */
    public String eval(String table, byte[] address) {
        return functions.prefix(table, address);
    }

    /** Of an IPv4 address as a number. */
    public String eval(String table, Long address) {
        return functions.prefix(table, address);
    }
}
