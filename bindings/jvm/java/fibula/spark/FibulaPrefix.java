package fibula.spark;

import fibula.Strings;
import org.apache.spark.sql.api.java.UDF2;

/** {@code fibula_prefix(table, address)}: the longest prefix that matches. */
public final class FibulaPrefix implements UDF2<String, Object, String> {
    private static final long serialVersionUID = 1;

    /** Shared by all tasks of an executor. */
    private static final fibula.Functions<String> FUNCTIONS =
            new fibula.Functions<>(new Strings(Functions::source));

    @Override
    public String call(String table, Object address) {
        return FUNCTIONS.prefix(table, address);
    }
}
