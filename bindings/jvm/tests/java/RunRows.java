import fibula.Table;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.nio.file.Files;
import java.nio.file.Paths;

/**
 * `RunRows TABLE ADDRESSES OUTPUT`: answers for a file with an address in each line, an empty one for null. A line of
 * output is the value of "site", the number of "asn" and the prefix, or nothing in their places.
 */
public final class RunRows {
    private RunRows() {}

    public static void main(String[] arguments) throws Exception {
        try (Table table = Table.open(arguments[0]);
                BufferedReader in = Files.newBufferedReader(Paths.get(arguments[1]));
                BufferedWriter out = Files.newBufferedWriter(Paths.get(arguments[2]))) {
            int site = table.column("site");
            int asn = table.column("asn");
            String[] block = new String[10_000];
            for (int count = block.length; count == block.length; ) {
                count = 0;
                for (String line; count < block.length && (line = in.readLine()) != null; count++) {
                    block[count] = line.isEmpty() ? null : line;
                }
                int[] rows = table.rows(count == block.length ? block : java.util.Arrays.copyOf(block, count));
                for (int at = 0; at < count; at++) {
                    String[] fields = {table.text(site, rows[at]), null, table.prefix(block[at])};
                    Long number = table.number(asn, rows[at]);
                    fields[1] = number == null ? null : number.toString();
                    for (int field = 0; field < 3; field++) {
                        out.write(fields[field] == null ? "" : fields[field]);
                        out.write(field == 2 ? '\n' : ',');
                    }
                }
            }
        }
    }
}
