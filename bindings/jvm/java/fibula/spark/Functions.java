package fibula.spark;

import fibula.Functions.Source;
import java.io.File;
import org.apache.spark.SparkFiles;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;

/** Adds {@code fibula_value}, {@code fibula_prefix} and {@code fibula_number} to a session. */
public final class Functions {
    private Functions() {}

    /** Adds the functions, for SQL and for {@code call_function} of data frames. */
    public static void register(SparkSession spark) {
        spark.udf().register("fibula_value", new FibulaValue(), DataTypes.StringType);
        spark.udf().register("fibula_prefix", new FibulaPrefix(), DataTypes.StringType);
        spark.udf().register("fibula_number", new FibulaNumber(), DataTypes.LongType);
    }

    /** A file that {@code addFile} has sent, by its name; else the file of this path, which every node has. */
    static Source source(String name) {
        if (!new File(name).isAbsolute()) {
            File sent = new File(SparkFiles.get(name));
            if (sent.exists()) {
                return new Source(sent.getPath(), true);
            }
        }
        return new Source(name, false);
    }
}
