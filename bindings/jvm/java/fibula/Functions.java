package fibula;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;

/**
 * The functions of SQL, as an engine calls them row by row: with the name of a table, which may differ from row to row,
 * an address and the name of a column. An instance remembers the names of tables. Any number of threads may use an
 * instance, and all instances share open tables.
 *
 * <p>An address is a {@link String}, 4 or 16 bytes, or of IPv4 a {@link Number}. The answer is null if an argument is
 * null, or there is no address, no prefix or no value.
 */
public final class Functions {
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

    /** Names of tables that an instance remembers. */
    private static final int MOST = Tables.MOST;

    private static final class Known {
        final String name;
        final Tables.Opened opened;

        Known(String name, Tables.Opened opened) {
            this.name = name;
            this.opened = opened;
        }
    }

    private final Function<String, Source> sources;
    private final Map<String, Known> all = new ConcurrentHashMap<>();
    private Known last; // of final fields, so whatever a thread sees is whole

    /** Functions that find the file of a name so. */
    public Functions(Function<String, Source> sources) {
        this.sources = sources;
    }

    /** The value in a column, as text. */
    public String value(String table, Object address, String column) {
        if (table == null || address == null || column == null) {
            return null;
        }
        for (;;) {
            try {
                Table of = table(table);
                return of.text(of.column(column), row(of, address));
            } catch (Table.Closed e) {
                forget(table); // its file was replaced a moment ago, and another thread has seen that first
            }
        }
    }

    /** The value in a column of integers. */
    public Long number(String table, Object address, String column) {
        if (table == null || address == null || column == null) {
            return null;
        }
        for (;;) {
            try {
                Table of = table(table);
                int at = of.column(column);
                if (!of.isNumeric(at)) {
                    throw new FibulaException(
                            table + ": the column \"" + column + "\" has no integers: use fibula_value");
                }
                return of.number(at, row(of, address));
            } catch (Table.Closed e) {
                forget(table);
            }
        }
    }

    /** The prefix of the longest match. */
    public String prefix(String table, Object address) {
        if (table == null || address == null) {
            return null;
        }
        for (;;) {
            try {
                Table of = table(table);
                if (address instanceof String) {
                    return of.prefix((String) address);
                }
                return of.prefix(address instanceof byte[] ? (byte[]) address : bytes(address));
            } catch (Table.Closed e) {
                forget(table);
            }
        }
    }

    private static int row(Table of, Object address) {
        if (address instanceof String) {
            return of.row((String) address);
        }
        return of.row(address instanceof byte[] ? (byte[]) address : bytes(address));
    }

    /** A number as an IPv4 address; null if it is none. */
    private static byte[] bytes(Object address) {
        if (!(address instanceof Long || address instanceof Integer || address instanceof Short
                || address instanceof Byte)) {
            throw new FibulaException("addresses are text, 4 or 16 bytes, or integers, not "
                    + address.getClass().getSimpleName() + ": cast them");
        }
        long number = ((Number) address).longValue();
        if (number >>> 32 != 0) {
            return null;
        }
        return new byte[] {(byte) (number >> 24), (byte) (number >> 16), (byte) (number >> 8), (byte) number};
    }

    private Table table(String name) {
        Known known = last;
        if (known == null || !known.name.equals(name)) {
            known = all.get(name);
        }
        Tables.Opened opened;
        if (known == null) {
            Source source = sources.apply(name);
            opened = Tables.open(source.file, source.mapped);
        } else {
            opened = known.opened.current();
        }
        if (known == null || opened != known.opened) {
            known = new Known(name, opened);
            if (all.size() >= MOST) {
                all.clear();
            }
            all.put(name, known);
        }
        last = known;
        return opened.table;
    }

    private void forget(String name) {
        all.remove(name);
        last = null;
    }
}
