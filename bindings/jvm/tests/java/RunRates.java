import fibula.Table;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.List;

/** `RunRates TABLE ADDRESSES`: million addresses a second on one thread, by each call; medians of nine rounds. */
public final class RunRates {
    private static long sum;

    private RunRates() {}

    public static void main(String[] arguments) throws Exception {
        List<String> lines = Files.readAllLines(Paths.get(arguments[1]));
        String[] texts = lines.toArray(new String[0]);
        int[] numbers = new int[texts.length];
        byte[][] bytes = new byte[texts.length][];
        for (int at = 0; at < texts.length; at++) {
            bytes[at] = java.net.InetAddress.getByName(texts[at]).getAddress();
            for (byte part : bytes[at]) {
                numbers[at] = numbers[at] << 8 | part & 255;
            }
        }
        try (Table table = Table.open(arguments[0])) {
            Runnable[] ways = {
                () -> { for (int number : numbers) { sum += table.row(number); } },
                () -> { for (byte[] each : bytes) { sum += table.row(each); } },
                () -> { for (String text : texts) { sum += table.row(text); } },
                () -> { for (int row : table.rows(numbers)) { sum += row; } },
                () -> { for (int row : table.rows(bytes)) { sum += row; } },
                () -> { for (int row : table.rows(texts)) { sum += row; } },
            };
            String[] names = {
                "row(int)", "row(byte[])", "row(String)", "rows(int[])", "rows(byte[][])", "rows(String[])"
            };
            long expected = 0;
            double[][] rates = new double[ways.length][9];
            for (int round = -3; round < 9; round++) {
                for (int way = 0; way < ways.length; way++) {
                    sum = 0;
                    long begin = System.nanoTime();
                    ways[way].run();
                    double rate = texts.length * 1e3 / (System.nanoTime() - begin);
                    if (way > 0 && sum != expected) {
                        throw new AssertionError(names[way] + " has other answers, so nothing is timed");
                    }
                    expected = sum;
                    if (round >= 0) {
                        rates[way][round] = rate;
                    }
                }
            }
            for (int way = 0; way < ways.length; way++) {
                Arrays.sort(rates[way]);
                System.out.printf("%-16s %8.1f%n", names[way], rates[way][4]);
            }
        }
    }
}
