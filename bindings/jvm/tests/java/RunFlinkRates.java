import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.functions.FunctionContext;
import org.apache.flink.table.functions.ScalarFunction;
import org.apache.flink.types.Row;

/**
 * `RunFlinkRates TABLE INTERVALS ROWS ROUNDS`: million rows a second in Flink's SQL by `fibula_number`, and by Flink's own
 * ways: a hash join by 16 bits with the interval as a condition, and a function in Java that searches sorted arrays.
 * INTERVALS has lines of first address, last address and value. What the ways find is compared before they are timed.
 */
public final class RunFlinkRates {
    private RunFlinkRates() {}

    /** The number of the interval of an address, from arrays in the memory of each task. */
    public static final class OwnNumber extends ScalarFunction {
        private static final long serialVersionUID = 1;

        private final String file;
        private transient long[] first;
        private transient long[] last;
        private transient Long[] value;

        public OwnNumber(String file) {
            this.file = file;
        }

        @Override
        public void open(FunctionContext context) throws Exception {
            List<String> lines = Files.readAllLines(Paths.get(file));
            first = new long[lines.size()];
            last = new long[first.length];
            value = new Long[first.length];
            for (int at = 0; at < first.length; at++) {
                String[] fields = lines.get(at).split(",");
                first[at] = Long.parseLong(fields[0]);
                last[at] = Long.parseLong(fields[1]);
                value[at] = Long.valueOf(fields[2]);
            }
        }

        public Long eval(String ip) {
            long address = 0;
            long octet = 0;
            for (int at = 0; at < ip.length(); at++) {
                char next = ip.charAt(at);
                if (next == '.') {
                    address = address << 8 | octet;
                    octet = 0;
                } else {
                    octet = 10 * octet + next - '0';
                }
            }
            return eval((Long) (address << 8 | octet));
        }

        public Long eval(Long address) {
            int at = Arrays.binarySearch(first, address);
            at = at < 0 ? -at - 2 : at;
            return at >= 0 && address <= last[at] ? value[at] : null;
        }
    }

    public static void main(String[] arguments) throws Exception {
        String intervals = arguments[1];
        long rows = Long.parseLong(arguments[2]);
        int rounds = Integer.parseInt(arguments[3]);
        List<String> lines = Files.readAllLines(Paths.get(intervals));
        long begin = Long.parseLong(lines.get(0).split(",")[0]);
        long end = Long.parseLong(lines.get(lines.size() - 1).split(",")[1]);

        Configuration options = new Configuration();
        options.setString("parallelism.default", "2");
        options.setString("rest.bind-address", "127.0.0.1");
        TableEnvironment flink = TableEnvironment.create(
                EnvironmentSettings.newInstance().inBatchMode().withConfiguration(options).build());
        flink.executeSql("CREATE TEMPORARY FUNCTION fibula_number AS 'fibula.flink.FibulaNumber'");
        flink.createTemporarySystemFunction("own_number", new OwnNumber(intervals));
        flink.executeSql("CREATE TABLE made (n BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '" + rows + "',"
                + " 'rows-per-second' = '100000000',"
                + " 'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '" + rows + "')");
        flink.executeSql("CREATE TABLE intervals (a BIGINT, b BIGINT, v BIGINT) WITH ('connector' = 'filesystem',"
                + " 'format' = 'csv', 'path' = 'file://" + intervals + "')");
        flink.executeSql("CREATE TABLE gone (ip STRING, v BIGINT) WITH ('connector' = 'blackhole')");
        flink.executeSql("CREATE TABLE gone_too (ip BIGINT, v BIGINT) WITH ('connector' = 'blackhole')");
        // Anywhere, or where prefixes are.
        String spread = "MOD(n * 2654435761, 4294967296)";
        String key = "CASE WHEN MOD(n, 2) = 0 THEN " + spread + " ELSE " + begin + " + MOD(" + spread + ", "
                + (end - begin) + ") END";
        String text = "CONCAT_WS('.', CAST(k / 16777216 AS STRING), CAST(MOD(k / 65536, 256) AS STRING),"
                + " CAST(MOD(k / 256, 256) AS STRING), CAST(MOD(k, 256) AS STRING))";
        String numbers = "(SELECT " + key + " AS ip FROM made)";
        String texts = "(SELECT " + text + " AS ip FROM (SELECT " + key + " AS k FROM made))";
        String parsed = "CAST(SPLIT_INDEX(ip, '.', 0) AS BIGINT) * 16777216 + CAST(SPLIT_INDEX(ip, '.', 1) AS BIGINT) * 65536"
                + " + CAST(SPLIT_INDEX(ip, '.', 2) AS BIGINT) * 256 + CAST(SPLIT_INDEX(ip, '.', 3) AS BIGINT)";
        String join = "SELECT /*+ BROADCAST(i) */ ip, v FROM (SELECT ip, k, k / 65536 AS part FROM"
                + " (SELECT ip, %s AS k FROM %s)) f"
                + " LEFT JOIN (SELECT a, b, v, a / 65536 AS part FROM intervals) i ON f.part = i.part AND k BETWEEN a AND b";
        String function = "SELECT ip, fibula_number('" + arguments[0] + "', ip, 'asn') AS v FROM ";
        Map<String, String> ways = new LinkedHashMap<>();
        for (boolean isText : new boolean[] {true, false}) {
            String source = isText ? texts : numbers;
            String kind = isText ? "text, " : "number, ";
            ways.put(kind + "rows alone", "SELECT ip, CAST(NULL AS BIGINT) AS v FROM " + source);
            ways.put(kind + "fibula_number", function + source);
            ways.put(kind + "sorted arrays", "SELECT ip, own_number(ip) AS v FROM " + source);
            ways.put(kind + "join", String.format(join, isText ? parsed : "ip", source));
        }
        String found = null;
        for (Map.Entry<String, String> way : ways.entrySet()) {
            if (!way.getKey().endsWith("alone")) {
                Row row = flink.executeSql("SELECT COUNT(*), COUNT(v), SUM(v) FROM (" + way.getValue() + ")").collect().next();
                if (found != null && !found.equals(row.toString())) {
                    throw new AssertionError(way.getKey() + " finds " + row + ", not " + found + ", so nothing is timed");
                }
                found = row.toString();
            }
        }
        System.out.println("rows, found, sum of values of all ways: " + found);
        Map<String, double[]> seconds = new LinkedHashMap<>();
        for (int round = -1; round < rounds; round++) { // the first compiles
            for (Map.Entry<String, String> way : ways.entrySet()) {
                String to = way.getKey().startsWith("text") ? "gone " : "gone_too ";
                long start = System.nanoTime();
                flink.executeSql("INSERT INTO " + to + way.getValue()).await();
                if (round >= 0) {
                    seconds.computeIfAbsent(way.getKey(), name -> new double[rounds])[round] = (System.nanoTime() - start) / 1e9;
                }
            }
        }
        for (Map.Entry<String, double[]> way : seconds.entrySet()) {
            Arrays.sort(way.getValue());
            System.out.printf("%-24s %8.2f M rows/s%n", way.getKey(), rows / way.getValue()[rounds / 2] / 1e6);
        }
    }
}
