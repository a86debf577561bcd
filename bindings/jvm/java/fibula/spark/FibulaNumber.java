package fibula.spark;

import fibula.Strings;
import org.apache.spark.sql.api.java.UDF3;

/** {@code fibula_number(table, address, column)}: the same of a column of integers. */
public final class FibulaNumber implements UDF3<String, Object, String, Long> {
    private static final long serialVersionUID = 1;

    /** Shared by all tasks of an executor. */
    private static final fibula.Functions<String> FUNCTIONS =
            new fibula.Functions<>(new Strings(Functions::source));

    @Override
    public Long call(String table, Object address, String column) {
        return FUNCTIONS.number(table, address, column);
    }
}
