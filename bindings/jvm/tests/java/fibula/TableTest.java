package fibula;

import java.io.IOException;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

/** The jar's own tests: `TableTest COMMAND FOLDER`, with the command that builds tables. */
public final class TableTest {
    private static final String NETWORKS = "prefix,site,vlan\n10.0.0.0/8,hq,1\n10.20.0.0/16,zürich,1099511627776\n"
            + "192.0.2.0/24,big,18446744073709551615\n2001:db8::/32,hq,\n";
    private static String command;
    private static Path folder;

    private TableTest() {}

    public static void main(String[] arguments) throws Exception {
        command = arguments[0];
        folder = Paths.get(arguments[1]);
        Path networks = build("networks", NETWORKS);
        addresses(networks);
        values(networks);
        manyAreEachOne(networks);
        errors(networks);
        closedUnderLoad();
        replacedUnderLoad();
        moreTablesThanStayOpen();
        String version = System.getProperty("java.version");
        String calls = Calls.NATIVE.getClass().getSimpleName();
        int major = Integer.parseInt(version.replaceFirst("^1\\.", "").split("[.-]")[0]);
        String wanted = System.getProperty("fibula.calls");
        equal(calls, wanted == null && major >= 22 ? "ForeignCalls" : "JniCalls", "the calls that this Java takes");
        System.out.println("the jar on Java " + version + " by " + calls + ": passed");
    }

    private static void addresses(Path file) throws Exception {
        try (Table table = Table.open(file)) {
            byte[] four = {10, 20, 30, 40};
            byte[] mapped = InetAddress.getByName("2001:db8::1").getAddress();
            Arrays.fill(mapped, (byte) 0);
            mapped[10] = mapped[11] = -1;
            System.arraycopy(four, 0, mapped, 12, 4);
            int row = table.row("10.20.30.40");
            equal(table.text(0, row), "zürich", "a value");
            String[] forms = {" 10.20.30.40 ", "10.20.30.40:443", "10.20.30.40/32", "::ffff:10.20.30.40"};
            for (String text : forms) {
                equal(table.row(text), row, text);
                equal(table.prefix(text), "10.20.0.0/16", text);
            }
            equal(table.row(four), row, "bytes");
            equal(table.row(mapped), row, "mapped bytes");
            equal(table.row(InetAddress.getByAddress(four)), row, "InetAddress");
            equal(table.row(0x0a141e28), row, "int");
            equal(table.prefix(InetAddress.getByName("2001:db8::7")), "2001:db8::/32", "IPv6");
            equal(table.row("[2001:db8::1]:53"), table.row(InetAddress.getByName("2001:db8::9")), "brackets");
            equal(table.row("203.0.113.1"), Table.NO_MATCH, "no prefix");
            equal(table.row(-1), Table.NO_MATCH, "255.255.255.255");
            equal(table.prefix("203.0.113.1"), null, "no prefix");
            // U+0131 and U+FF11 end like ASCII digits if they are cut to a byte, or are digits of another script.
            String[] none = {null, "", "no", "10.0.0.256", "10.0.0.0/8", "1.0.0.\u0131", "1.0.0.\uff11", "1.0.0.1\u0100"};
            for (String bad : none) {
                equal(table.row(bad), Table.NO_ADDRESS, bad);
                equal(table.prefix(bad), null, bad);
                equal(table.lookup(bad), null, bad);
            }
            for (byte[] bad : new byte[][] {null, {}, {1, 2, 3}, new byte[5], new byte[17]}) {
                equal(table.row(bad), Table.NO_ADDRESS, "bytes");
                equal(table.prefix(bad), null, "bytes");
            }
            equal(table.row((InetAddress) null), Table.NO_ADDRESS, "null");
        }
    }

    private static void values(Path file) throws Exception {
        Match match;
        try (Table table = Table.open(file)) {
            equal(table.columns(), Arrays.asList("site", "vlan"), "columns");
            equal(table.isNumeric(0) + " " + table.isNumeric(1), "false true", "kinds");
            equal(table.routes(), 4L, "routes");
            int vlan = table.column("vlan");
            int row = table.row("10.20.30.40");
            for (int again = 0; again < 2; again++) {
                equal(table.text(vlan, row), "1099511627776", "a number as text");
                equal(table.number(vlan, row), 1L << 40, "a number");
                equal(table.text(vlan, table.row("2001:db8::1")), null, "no value");
                equal(table.number(vlan, table.row("2001:db8::1")), null, "no value");
                equal(table.text(vlan, Table.NO_MATCH), null, "no row");
            }
            int big = table.row("192.0.2.1");
            equal(table.text(vlan, big), "18446744073709551615", "the largest number");
            String larger = "18446744073709551615 is larger than a long";
            fails(ArithmeticException.class, larger, () -> table.number(vlan, big));
            match = table.lookup("10.20.30.40");
        }
        equal(match.toString(), "10.20.0.0/16 {site=zürich, vlan=1099511627776}", "a match outlives its table");
        equal(match.number("vlan"), 1L << 40, "a number");
        fails(FibulaException.class, "no column \"x\", but site, vlan", () -> match.get("x"));
    }

    private static void manyAreEachOne(Path file) throws Exception {
        Random random = new Random(1);
        String[] texts = new String[5000];
        byte[][] bytes = new byte[texts.length][];
        int[] numbers = new int[texts.length];
        for (int at = 0; at < texts.length; at++) {
            numbers[at] = random.nextBoolean() ? random.nextInt() : 10 << 24 | random.nextInt(1 << 22);
            bytes[at] = new byte[at % 3 == 0 ? 16 : at % 31 == 0 ? 7 : 4];
            random.nextBytes(bytes[at]);
            String six = "2001:db" + random.nextInt(10) + "::" + random.nextInt(10000);
            String four = (numbers[at] >>> 24) + "." + (numbers[at] >> 16 & 255) + ".0." + (numbers[at] & 255);
            texts[at] = at % 17 == 0 ? null : at % 19 == 0 ? "é" + at : at % 3 == 0 ? six : four;
        }
        char[] blanks = new char[100_000];
        Arrays.fill(blanks, ' ');
        texts[4000] = new String(blanks) + "10.20.0.1";
        texts[4001] = new String(blanks) + "é";
        try (Table table = Table.open(file)) {
            int[] ofTexts = table.rows(texts);
            int[] ofBytes = table.rows(bytes);
            int[] ofNumbers = table.rows(numbers);
            int found = 0;
            for (int at = 0; at < texts.length; at++) {
                equal(ofTexts[at], table.row(texts[at]), texts[at]);
                equal(ofBytes[at], table.row(bytes[at]), Arrays.toString(bytes[at]));
                equal(ofNumbers[at], table.row(numbers[at]), "a number");
                found += ofTexts[at] >= 0 ? 1 : 0;
            }
            equal(ofTexts[4000], table.row("10.20.0.1"), "a long cell");
            check(found > 1000, "too few are found to test anything: " + found);
            equal(table.rows(new String[0]).length + table.rows(new int[0]).length, 0, "none");
        }
    }

    private static void errors(Path file) throws Exception {
        Path text = Files.write(folder.resolve("text.csv"), NETWORKS.getBytes(StandardCharsets.UTF_8));
        fails(FibulaException.class, "text.csv: ", () -> Table.open(text));
        fails(FibulaException.class, "gone.fib: ", () -> Table.open(folder.resolve("gone.fib")));
        byte[] damaged = Files.readAllBytes(file);
        damaged[damaged.length / 2] ^= 1;
        Path broken = Files.write(folder.resolve("broken.fib"), Arrays.copyOf(damaged, damaged.length - 8));
        fails(FibulaException.class, "broken.fib: ", () -> Table.open(broken));
        Table table = Table.open(file);
        fails(FibulaException.class, "the table has no column \"x\", but site, vlan", () -> table.column("x"));
        fails(FibulaException.class, "there is no column 7", () -> table.text(7, 0));
        fails(FibulaException.class, "there is no row 999", () -> table.text(0, 999));
        fails(FibulaException.class, "not a number", () -> table.number(0, 0));
        table.close();
        table.close();
        for (Task task : new Task[] {
            () -> table.row("10.0.0.1"), () -> table.row(1), () -> table.prefix("10.0.0.1"), () -> table.text(0, 0),
            () -> table.number(1, 0), () -> table.rows(new String[] {"::"}), () -> table.rows(new int[1])
        }) {
            fails(IllegalStateException.class, "is closed", task);
        }
        Functions<String> functions = new Functions<>(new Strings(name -> new Functions.Source(name, false)));
        String name = file.toString();
        equal(functions.value(name, "10.20.0.1", "site"), "zürich", "value");
        equal(functions.value(name, 169082881L, "site"), "zürich", "value of a number");
        equal(functions.value(name, 1L << 32, "site"), null, "beyond IPv4");
        equal(functions.value(name, -1, "site"), null, "below IPv4");
        equal(functions.number(name, new byte[] {10, 20, 0, 1}, "vlan"), 1L << 40, "number");
        equal(functions.prefix(name, "10.20.0.1"), "10.20.0.0/16", "prefix");
        equal(functions.value(null, "10.20.0.1", "site"), null, "null");
        equal(functions.value(name, null, "site"), null, "null");
        equal(functions.value(name, "10.20.0.1", null), null, "null");
        fails(FibulaException.class, "has no integers: take its value as text", () -> functions.number(name, "::1", "site"));
        fails(FibulaException.class, "no column \"x\"", () -> functions.value(name, "::1", "x"));
        String gone = folder.resolve("gone.fib").toString();
        fails(FibulaException.class, "gone.fib: there is no such file", () -> functions.prefix(gone, "::"));
        fails(FibulaException.class, "not Double: cast them", () -> functions.value(name, 1.5, "site"));
    }

    private static void closedUnderLoad() throws Exception {
        for (int round = 0; round < 20; round++) {
            Path file = build("closed", NETWORKS);
            Table table = Table.open(file);
            AtomicLong calls = new AtomicLong();
            List<Thread> threads = threads(3, () -> {
                String[] many = {"10.0.0.1", "::1", null, "192.0.2.1"};
                try {
                    for (;;) {
                        check(table.row("10.1.1.1") >= 0 && table.rows(many)[3] >= 0, "a lost row");
                        calls.incrementAndGet();
                    }
                } catch (IllegalStateException e) {
                    check(e.getMessage().contains("is closed"), e.getMessage());
                }
            });
            while (calls.get() < 1000) {
                Thread.yield();
            }
            table.close();
            Path maps = Paths.get("/proc/self/maps");
            if (Files.exists(maps)) {
                check(!new String(Files.readAllBytes(maps)).contains(file.toString()), "it is still mapped");
            }
            join(threads);
        }
    }

    private static void replacedUnderLoad() throws Exception {
        Path[] versions = {build("v0", "prefix,v\n10.0.0.0/8,0\n"), build("v1", "prefix,v\n10.0.0.0/8,1\n::/0,1\n")};
        Path file = folder.resolve("replaced.fib");
        replace(versions[0], file);
        Functions<String> functions = new Functions<>(new Strings(name -> new Functions.Source(name, false)));
        AtomicBoolean ends = new AtomicBoolean();
        AtomicLong[] seen = {new AtomicLong(), new AtomicLong()};
        List<Thread> threads = threads(3, () -> {
            while (!ends.get()) {
                seen[functions.number(file.toString(), "10.1.2.3", "v").intValue()].incrementAndGet();
                equal(functions.prefix(file.toString(), "10.1.2.3"), "10.0.0.0/8", "a lost row");
            }
        });
        for (int round = 1; round <= 12; round++) {
            replace(versions[round % 2], file);
            // For ever, if it is never answered from.
            while (functions.number(file.toString(), "10.1.2.3", "v") != round % 2) {
                Thread.sleep(1);
            }
        }
        ends.set(true);
        join(threads);
        check(seen[0].get() > 1000 && seen[1].get() > 1000, "each version is seen");
    }

    private static void moreTablesThanStayOpen() throws Exception {
        Path one = build("one", "prefix,v\n10.0.0.0/8,7\n");
        List<String> names = new ArrayList<>();
        for (int at = 0; at < Tables.MOST + 10; at++) {
            Path copy = folder.resolve("copy" + at + ".fib");
            names.add(Files.copy(one, copy, StandardCopyOption.REPLACE_EXISTING).toString());
        }
        Functions<String> functions = new Functions<>(new Strings(name -> new Functions.Source(name, false)));
        List<Thread> threads = threads(2, () -> {
            List<String> mine = new ArrayList<>(names);
            Collections.shuffle(mine);
            for (String name : mine) {
                equal(functions.number(name, "10.0.0.1", "v"), 7L, name);
            }
        });
        join(threads);
    }

    private static Path build(String name, String csv) throws Exception {
        Path text = Files.write(folder.resolve(name + ".csv"), csv.getBytes(StandardCharsets.UTF_8));
        Path file = folder.resolve(name + ".fib");
        Process process = new ProcessBuilder(command, "build", text.toString(), "-o", file.toString())
                .redirectErrorStream(true).redirectOutput(folder.resolve("build.log").toFile()).start();
        equal(process.waitFor(), 0, command + " build, see build.log");
        return file;
    }

    private static void replace(Path from, Path to) throws IOException {
        Path part = to.resolveSibling("part");
        Files.copy(from, part, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.COPY_ATTRIBUTES);
        Files.move(part, to, StandardCopyOption.ATOMIC_MOVE);
    }

    private interface Task {
        void run() throws Exception;
    }

    private static final AtomicReference<Throwable> FAILED = new AtomicReference<>();

    private static List<Thread> threads(int count, Task task) {
        List<Thread> threads = new ArrayList<>();
        for (int at = 0; at < count; at++) {
            Thread thread = new Thread(() -> {
                try {
                    task.run();
                } catch (Throwable e) {
                    FAILED.compareAndSet(null, e);
                }
            });
            thread.setDaemon(true);
            thread.start();
            threads.add(thread);
        }
        return threads;
    }

    private static void join(List<Thread> threads) throws Exception {
        for (Thread thread : threads) {
            thread.join();
        }
        if (FAILED.get() != null) {
            throw new AssertionError("in a thread", FAILED.get());
        }
    }

    private static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    private static void equal(Object found, Object expected, String what) {
        check(Objects.equals(found, expected), what + ": found " + found + ", expected " + expected);
    }

    private static void fails(Class<? extends Exception> with, String message, Task task) throws Exception {
        try {
            task.run();
        } catch (Exception e) {
            check(with.isInstance(e) && e.getMessage().contains(message), "another error: " + e);
            return;
        }
        throw new AssertionError("no error: " + message);
    }
}
