package fibula.spark;

import fibula.Strings;
import org.apache.spark.sql.api.java.UDF3;

/** {@code fibula_value(table, address, column)}: the value of the longest match, as text. */
public final class FibulaValue implements UDF3<String, Object, String, String> {
    private static final long serialVersionUID = 1;

    /** Shared by all tasks of an executor. */
    private static final fibula.Functions<String> FUNCTIONS =
            new fibula.Functions<>(new Strings(Functions::source));

    @Override
    public String call(String table, Object address, String column) {
        return FUNCTIONS.value(table, address, column);
    }
}
