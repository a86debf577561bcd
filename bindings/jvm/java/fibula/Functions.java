package fibula;

import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * The functions of SQL, as an engine calls them row by row: with the name of a table, which may differ from row to row,
 * an address and the name of a column. An instance remembers what the last row named. Any number of threads may use an
 * instance, and all instances share open tables and the values that were read.
 *
 * <p>An address is a text of the host, 4 or 16 bytes, or of IPv4 a {@link Number}. The answer is null if an argument is
 * null, or there is no address, no prefix or no value.
 *
 * @param <T> the host's texts
 */
public final class Functions<T> {
    /** Where a table is. */
    public static final class Source {
        private final String file;
        private final boolean mapped;

        /** A file; mapped also if it is writable if it is a copy that the engine has made. */
        public Source(String file, boolean isCopy) {
            this.file = file;
            this.mapped = isCopy;
        }
    }

    private enum Kind { VALUE, NUMBER, PREFIX }

    /** What a row names. */
    private static final class Names<T> {
        final Kind kind;
        final T table;
        final T column;

        Names(Kind kind, T table, T column) {
            this.kind = kind;
            this.table = table;
            this.column = column;
        }

        @Override
        public boolean equals(Object other) {
            if (!(other instanceof Names)) {
                return false;
            }
            Names<?> names = (Names<?>) other;
            return kind == names.kind && table.equals(names.table) && Objects.equals(column, names.column);
        }

        @Override
        public int hashCode() {
            return 31 * table.hashCode() + Objects.hashCode(column) + kind.ordinal();
        }
    }

    /** What its names are, all in final fields, so whatever a thread sees is whole. */
    private static final class Known<T> {
        /** With texts of our own. */
        final Names<T> names;
        /** The objects by which it was found. Their texts are never read again: the host may have reused the memory. */
        private final Names<T> seen;
        final Tables.Opened opened;
        final Table table;
        final int column;
        /** The column's values as the host has them, null those that were not read; of a column of numbers none. */
        final AtomicReferenceArray<Object> values;
        /** The column's numbers, inverted; 0 those that were not read, {@link #NO_NUMBER} where there is none. */
        final AtomicLongArray numbers;

        Known(
                Names<T> names, Names<T> seen, Tables.Opened opened, int column, AtomicReferenceArray<Object> values,
                AtomicLongArray numbers) {
            this.names = names;
            this.seen = seen;
            this.opened = opened;
            this.table = opened.table;
            this.column = column;
            this.values = values;
            this.numbers = numbers;
        }

        /** Whether these are its names: most often they are literals of a query, so the same objects in each row. */
        boolean is(Kind kind, T table, T column) {
            return kind == names.kind && (table == seen.table || names.table.equals(table))
                    && (column == seen.column || Objects.equals(names.column, column));
        }
    }

    /** Names that an instance remembers. */
    private static final int MOST = Tables.MOST;

    /** For a value that is not there. */
    private static final Object NONE = new Object();
    private static final long NO_NUMBER = 1;

    private final Host<T> host;
    private final Map<Names<T>, Known<T>> all = new ConcurrentHashMap<>();
    private Known<T> last;

    /** Functions for a host. */
    public Functions(Host<T> host) {
        this.host = host;
    }

    /** The value in a column, as text. */
    @SuppressWarnings("unchecked")
    public T value(T table, Object address, T column) {
        if (table == null || address == null || column == null) {
            return null;
        }
        for (;;) {
            Known<T> known = known(Kind.VALUE, table, column);
            try {
                int row = row(known.table, address);
                if (row >= 0) {
                    Object value = known.values.get(row);
                    if (value == null) {
                        String text = known.table.text(known.column, row);
                        value = text == null ? NONE : host.text(text);
                        known.values.set(row, value);
                    }
                    return value == NONE ? null : (T) value;
                }
                if (row != Calls.LOOK) {
                    return null;
                }
                look(known);
            } catch (Table.Closed e) {
                forget(known); // its file was replaced a moment ago, and another thread has seen that first
            }
        }
    }

    /** The value in a column of integers. */
    public Long number(T table, Object address, T column) {
        if (table == null || address == null || column == null) {
            return null;
        }
        for (;;) {
            Known<T> known = known(Kind.NUMBER, table, column);
            try {
                int row = row(known.table, address);
                if (row >= 0) {
                    long number = known.numbers.get(row);
                    if (number == 0) {
                        Long read = known.table.number(known.column, row);
                        number = read == null ? NO_NUMBER : ~read;
                        known.numbers.set(row, number);
                    }
                    return number == NO_NUMBER ? null : (Long) ~number;
                }
                if (row != Calls.LOOK) {
                    return null;
                }
                look(known);
            } catch (Table.Closed e) {
                forget(known);
            }
        }
    }

    /** The prefix of the longest match. */
    public T prefix(T table, Object address) {
        if (table == null || address == null) {
            return null;
        }
        for (;;) {
            Known<T> known = known(Kind.PREFIX, table, null);
            try {
                Scratch scratch = Scratch.mine();
                int bytes = write(address, scratch);
                int found = bytes < 0
                        ? Table.NO_ADDRESS
                        : known.table.nextPrefix(scratch, bytes, isText(address) ? 0 : Calls.BYTES);
                if (found >= 0) {
                    return host.read(scratch, found);
                }
                if (found != Calls.LOOK) {
                    return null;
                }
                look(known);
            } catch (Table.Closed e) {
                forget(known);
            }
        }
    }

    private int row(Table table, Object address) {
        Scratch scratch = Scratch.mine();
        int bytes = write(address, scratch);
        return bytes < 0 ? Table.NO_ADDRESS : table.nextRow(scratch, bytes, isText(address) ? 0 : Calls.BYTES);
    }

    private static boolean isText(Object address) {
        return !(address instanceof byte[] || address instanceof Number);
    }

    /** Writes an address. Returns its bytes, or -1 if it cannot be one. */
    @SuppressWarnings("unchecked")
    private int write(Object address, Scratch scratch) {
        if (host.isText(address)) {
            return host.write((T) address, scratch);
        }
        if (address instanceof byte[]) {
            byte[] bytes = (byte[]) address;
            if (bytes.length != 4 && bytes.length != 16) {
                return -1;
            }
            scratch.put(0, bytes);
            return bytes.length;
        }
        if (address instanceof Long || address instanceof Integer || address instanceof Short
                || address instanceof Byte) {
            long number = ((Number) address).longValue();
            if (number >>> 32 != 0) {
                return -1;
            }
            scratch.putNetworkOrder(0, (int) number);
            return 4;
        }
        throw new FibulaException("addresses are text, 4 or 16 bytes, or integers, not "
                + address.getClass().getSimpleName() + ": cast them");
    }

    private Known<T> known(Kind kind, T table, T column) {
        Known<T> known = last;
        if (known != null && known.is(kind, table, column)) {
            return known;
        }
        return find(new Names<>(kind, table, column));
    }

    private Known<T> find(Names<T> names) {
        Known<T> known = all.get(names);
        if (known == null) {
            known = open(names);
            if (all.size() >= MOST) {
                all.clear();
            }
            all.put(known.names, known);
        }
        last = known;
        return known;
    }

    private Known<T> open(Names<T> names) {
        String name = host.string(names.table);
        Source source = host.source(name);
        for (;;) {
            Tables.Opened opened = Tables.open(source.file, source.mapped);
            try {
                return of(names, name, opened);
            } catch (Table.Closed e) {
                continue; // replaced again
            }
        }
    }

    private Known<T> of(Names<T> names, String name, Tables.Opened opened) {
        if (names.kind == Kind.PREFIX) {
            return new Known<>(new Names<>(names.kind, host.text(name), null), names, opened, 0, null, null);
        }
        String column = host.string(names.column);
        int at = opened.table.column(column);
        boolean isNumber = names.kind == Kind.NUMBER;
        if (isNumber && !opened.table.isNumeric(at)) {
            throw new FibulaException(name + ": the column \"" + column + "\" has no integers: take its value as text");
        }
        Names<T> kept = new Names<>(names.kind, host.text(name), host.text(column));
        AtomicReferenceArray<Object> values = isNumber ? null : opened.table.values(host.getClass(), at);
        return new Known<>(kept, names, opened, at, values, isNumber ? opened.table.numbers(at) : null);
    }

    /** Looks whether the file is still the one that was opened. */
    private void look(Known<T> known) {
        if (known.opened.look() != known.opened) {
            forget(known);
        }
    }

    private void forget(Known<T> known) {
        all.remove(known.names, known);
        last = null;
    }
}
