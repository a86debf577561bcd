import java.nio.file.Files;
import java.nio.file.Paths;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/** `RunFlink FILE`: executes the statements of a file in a cluster of this process, and prints the rows of queries. */
public final class RunFlink {
    private RunFlink() {}

    public static void main(String[] arguments) throws Exception {
        Configuration options = new Configuration();
        options.setString("parallelism.default", "2");
        options.setString("rest.bind-address", "127.0.0.1");
        EnvironmentSettings settings =
                EnvironmentSettings.newInstance().inBatchMode().withConfiguration(options).build();
        TableEnvironment flink = TableEnvironment.create(settings);
        String script = new String(Files.readAllBytes(Paths.get(arguments[0])), "UTF-8");
        for (String statement : script.split(";\\s*(\n|$)")) {
            String code = statement.replaceAll("(?m)^--.*$", "").trim();
            if (code.isEmpty()) {
                continue;
            }
            if (code.startsWith("SET ")) { // a statement of Flink's own client
                String[] option = code.substring(4).split("=", 2);
                flink.getConfig().set(unquoted(option[0]), unquoted(option[1]));
                continue;
            }
            TableResult result = flink.executeSql(code);
            if (code.startsWith("SELECT")) {
                try (CloseableIterator<Row> rows = result.collect()) {
                    while (rows.hasNext()) {
                        Row row = rows.next();
                        StringBuilder line = new StringBuilder();
                        for (int at = 0; at < row.getArity(); at++) {
                            Object value = row.getField(at);
                            line.append(at == 0 ? "" : " | ").append(value == null ? "NULL" : value);
                        }
                        System.out.println(line);
                    }
                }
            } else {
                result.await();
            }
        }
    }

    private static String unquoted(String text) {
        return text.trim().replaceAll("^'|'$", "");
    }
}
