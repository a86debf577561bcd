package fibula;

import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * An open table of {@code fibula build}: the longest prefix that matches an address, and its values by column.
 *
 * <p>An address is a text, also with blanks around it, a port, brackets, or {@code /32} and {@code /128}; or 4 or 16
 * bytes in network order; or an {@link InetAddress}; or, of IPv4, an {@code int} whose bits are the address. An
 * IPv4-mapped IPv6 address is the IPv4 address. Of {@code null}, and of what is no address, the row is
 * {@link #NO_ADDRESS} and every other answer {@code null}.
 *
 * <p>Prefixes with the same values share a row of values, so answers for many addresses are rows first
 * ({@link #rows(String[])}) and then values ({@link #text}, {@link #number}), which are kept once they were read.
 *
 * <p>A table never changes, and any number of threads may use it. A call after {@link #close} is an
 * {@link IllegalStateException}; one that runs meanwhile ends first.
 */
public final class Table implements AutoCloseable {
    /** In place of a row: no prefix matches the address. */
    public static final int NO_MATCH = -1;
    /** In place of a row: that is no address. */
    public static final int NO_ADDRESS = -2;

    /** For a value of the table that is not there, since null stands for one that was not read. */
    @SuppressWarnings("StringOperationCanBeSimplified") // it is not the same object as any other
    private static final String NONE = new String("");

    private final String name;
    private final List<String> columns;
    private final boolean[] numeric;
    private final long routes;
    private final int height;
    /** By column and row. Threads may read a value twice; a String is whole for every thread that sees it. */
    private final String[][] texts;

    /** By form and column: those of {@link Functions}. */
    private final Map<List<?>, AtomicReferenceArray<Object>> values = new ConcurrentHashMap<>();
    private final Map<Integer, AtomicLongArray> numbers = new ConcurrentHashMap<>();

    private volatile long handle;

    private Table(String name, long handle) {
        Calls calls = Calls.NATIVE;
        Scratch scratch = Scratch.mine();
        this.name = name;
        List<String> names = new ArrayList<>();
        for (int bytes; (bytes = calls.name(handle, names.size(), scratch.at(0), scratch.size())) >= 0; ) {
            if (bytes > scratch.size()) {
                scratch.reserve(bytes);
                continue;
            }
            names.add(scratch.text(0, bytes));
        }
        columns = Collections.unmodifiableList(names);
        numeric = new boolean[names.size()];
        for (int column = 0; column < numeric.length; column++) {
            numeric[column] = calls.numeric(handle, column) == 1;
        }
        routes = calls.routes(handle);
        height = calls.height(handle);
        texts = new String[names.size()][];
        this.handle = handle;
    }

    /** Opens a file. If nobody may write to it, as {@code fibula build} makes it, it is mapped, otherwise read. */
    public static Table open(Path file) {
        return open(file.toString());
    }

    /** The same; of a checkpoint, {@code rib.fib#NAME} is the table of that name. */
    public static Table open(String file) {
        return open(file, false);
    }

    /** The same; with `mapped` also a writable file is mapped, which nobody may write to as long as it is open. */
    static Table open(String file, boolean mapped) {
        Calls.check();
        Scratch scratch = Scratch.mine();
        byte[] path = file.getBytes(StandardCharsets.UTF_8);
        scratch.reserve(path.length);
        scratch.put(0, path);
        long handle = Calls.NATIVE.open(scratch.at(0), path.length, mapped ? 1 : 0);
        if (handle == 0) {
            throw failure(scratch);
        }
        return new Table(file, handle);
    }

    /** Closes the table, as soon as the calls that use it have ended. A second call does nothing. */
    @Override
    public synchronized void close() {
        long closing = handle;
        if (closing != 0) {
            handle = 0;
            Scratch.await(this);
            Calls.NATIVE.close(closing);
        }
    }

    /** The names of the columns. */
    public List<String> columns() {
        return columns;
    }

    /** The number of the column of this name. */
    public int column(String of) {
        int known = columns.indexOf(of);
        if (known >= 0) {
            return known;
        }
        Scratch scratch = Scratch.mine();
        byte[] text = of.getBytes(StandardCharsets.UTF_8);
        scratch.reserve(text.length);
        scratch.put(0, text);
        long table = enter(scratch);
        try {
            return checked(Calls.NATIVE.column(table, scratch.at(0), text.length), scratch);
        } finally {
            scratch.leave();
        }
    }

    /** Whether all values of a column are integers. */
    public boolean isNumeric(int column) {
        return numeric[column];
    }

    /** Number of prefixes of both families. */
    public long routes() {
        return routes;
    }

    /** The prefix of an address with its values; null if there is none. */
    public Match lookup(String address) {
        return match(prefix(address), row(address));
    }

    /** The same. */
    public Match lookup(byte[] address) {
        return match(prefix(address), row(address));
    }

    /** The same. */
    public Match lookup(InetAddress address) {
        return lookup(address == null ? null : address.getAddress());
    }

    private Match match(String prefix, int row) {
        if (row < 0) {
            return null;
        }
        String[] values = new String[columns.size()];
        for (int column = 0; column < values.length; column++) {
            values[column] = text(column, row);
        }
        return new Match(prefix, columns, values);
    }

    /** The row of values of an address, {@link #NO_MATCH} or {@link #NO_ADDRESS}. */
    public int row(String address) {
        Scratch scratch = Scratch.mine();
        return row(scratch, scratch.put(0, address), 0);
    }

    /** The same. */
    public int row(byte[] address) {
        if (address == null || (address.length != 4 && address.length != 16)) {
            return NO_ADDRESS;
        }
        Scratch scratch = Scratch.mine();
        scratch.put(0, address);
        return row(scratch, address.length, 1);
    }

    /** The same. */
    public int row(InetAddress address) {
        return row(address == null ? null : address.getAddress());
    }

    /** The same of an IPv4 address. */
    public int row(int address) {
        Scratch scratch = Scratch.mine();
        long table = enter(scratch);
        try {
            return checked(Calls.NATIVE.row4(table, address), scratch);
        } finally {
            scratch.leave();
        }
    }

    private int row(Scratch scratch, int bytes, int binary) {
        long table = enter(scratch);
        try {
            return checked(Calls.NATIVE.row(table, scratch.at(0), bytes, binary), scratch);
        } finally {
            scratch.leave();
        }
    }

    /** The rows of many addresses, which is quicker than one by one. */
    public int[] rows(String[] addresses) {
        return new Batch(this).texts(addresses);
    }

    /** The same. */
    public int[] rows(byte[][] addresses) {
        return new Batch(this).bytes(addresses);
    }

    /** The same. */
    public int[] rows(InetAddress[] addresses) {
        byte[][] bytes = new byte[addresses.length][];
        for (int at = 0; at < bytes.length; at++) {
            bytes[at] = addresses[at] == null ? null : addresses[at].getAddress();
        }
        return rows(bytes);
    }

    /** The same of IPv4 addresses. */
    public int[] rows(int[] addresses) {
        return new Batch(this).numbers(addresses);
    }

    /** The prefix of an address, such as {@code 10.20.0.0/16}; null if none matches. */
    public String prefix(String address) {
        Scratch scratch = Scratch.mine();
        return prefix(scratch, scratch.put(0, address), 0);
    }

    /** The same. */
    public String prefix(byte[] address) {
        if (address == null || (address.length != 4 && address.length != 16)) {
            return null;
        }
        Scratch scratch = Scratch.mine();
        scratch.put(0, address);
        return prefix(scratch, address.length, 1);
    }

    /** The same. */
    public String prefix(InetAddress address) {
        return prefix(address == null ? null : address.getAddress());
    }

    private String prefix(Scratch scratch, int bytes, int binary) {
        long table = enter(scratch);
        try {
            // Written over the address, which is read before.
            long text = scratch.at(0);
            int found = Calls.NATIVE.prefix(table, text, bytes, binary, text, scratch.size());
            return checked(found, scratch) < 0 ? null : scratch.text(0, found);
        } finally {
            scratch.leave();
        }
    }

    /** A value as text; null if there is none, or the row is {@link #NO_MATCH} or {@link #NO_ADDRESS}. */
    public String text(int column, int row) {
        if (row < 0) {
            return null;
        }
        if (column >= 0 && column < texts.length && row < height) {
            String[] known = texts[column];
            String text = known == null ? null : known[row];
            if (text != null && handle != 0) {
                return text == NONE ? null : text;
            }
        }
        Scratch scratch = Scratch.mine();
        String text = read(scratch, column, row);
        if (texts[column] == null) {
            texts[column] = new String[height];
        }
        texts[column][row] = text == null ? NONE : text;
        return text;
    }

    private String read(Scratch scratch, int column, int row) {
        for (;;) {
            int bytes;
            long table = enter(scratch);
            try {
                bytes = checked(Calls.NATIVE.text(table, column, row, scratch.at(0), scratch.size()), scratch);
            } finally {
                scratch.leave();
            }
            if (bytes <= scratch.size()) {
                return bytes < 0 ? null : scratch.text(0, bytes);
            }
            scratch.reserve(bytes);
        }
    }

    /**
     * A value of a column of integers; null as of {@link #text}. A number above {@link Long#MAX_VALUE} is an
     * {@link ArithmeticException}; its text has it.
     */
    public Long number(int column, int row) {
        if (row < 0) {
            return null;
        }
        Scratch scratch = Scratch.mine();
        long table = enter(scratch);
        try {
            if (checked(Calls.NATIVE.number(table, column, row, scratch.at(0)), scratch) == 0) {
                return null;
            }
        } finally {
            scratch.leave();
        }
        return Match.signed(scratch.getLong(0));
    }

    /** As {@link #row} of an address that is in the scratch memory, or {@link Calls#LOOK}. */
    int nextRow(Scratch scratch, int bytes, int form) {
        long table = enter(scratch);
        try {
            return checked(Calls.NATIVE.row(table, scratch.at(0), bytes, form | Calls.WATCHED), scratch);
        } finally {
            scratch.leave();
        }
    }

    /** The same for the prefix, which is written to the scratch memory. Returns its bytes. */
    int nextPrefix(Scratch scratch, int bytes, int form) {
        long table = enter(scratch);
        try {
            // Written over the address, which is read before.
            long text = scratch.at(0);
            int watched = form | Calls.WATCHED;
            return checked(Calls.NATIVE.prefix(table, text, bytes, watched, text, scratch.size()), scratch);
        } finally {
            scratch.leave();
        }
    }

    /** The values of a column, in a form of which there may be several; null those that were not read. */
    AtomicReferenceArray<Object> values(Class<?> form, int column) {
        return values.computeIfAbsent(Arrays.asList(form, column), key -> new AtomicReferenceArray<>(height));
    }

    /** The same for a column of integers; 0 those that were not read. */
    AtomicLongArray numbers(int column) {
        return numbers.computeIfAbsent(column, key -> new AtomicLongArray(height));
    }

    /** Begins a use of the table, which ends with {@link Scratch#leave}. */
    long enter(Scratch scratch) {
        scratch.enter(this);
        long open = handle;
        if (open == 0) {
            scratch.leave();
            throw new Closed("the table " + name + " is closed");
        }
        return open;
    }

    /** A use of a table that was closed. */
    static final class Closed extends IllegalStateException {
        private static final long serialVersionUID = 1;

        Closed(String message) {
            super(message);
        }
    }

    static int checked(int result, Scratch scratch) {
        if (result == Calls.FAILED) {
            throw failure(scratch);
        }
        return result;
    }

    private static FibulaException failure(Scratch scratch) {
        int bytes = Calls.NATIVE.error(scratch.at(0), scratch.size());
        if (bytes > scratch.size()) {
            scratch.reserve(bytes);
            Calls.NATIVE.error(scratch.at(0), scratch.size());
        }
        return new FibulaException(scratch.text(0, bytes));
    }

    @Override
    public String toString() {
        return "Table(" + name + ", " + routes + " routes)";
    }
}
