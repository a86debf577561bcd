package fibula;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The longest prefix of an address and its values, which stay after the table was closed. */
public final class Match {
    private final String prefix;
    private final List<String> columns;
    private final String[] values;

    Match(String prefix, List<String> columns, String[] values) {
        this.prefix = prefix;
        this.columns = columns;
        this.values = values;
    }

    /** The prefix, such as {@code 10.20.0.0/16}. */
    public String prefix() {
        return prefix;
    }

    /** The value in the column of this name; null if there is none. Integers are decimal. */
    public String get(String column) {
        int at = columns.indexOf(column);
        if (at < 0) {
            throw new FibulaException("the table has no column \"" + column + "\", but " + String.join(", ", columns));
        }
        return values[at];
    }

    /** The same of a column of integers. */
    public Long number(String column) {
        String text = get(column);
        return text == null ? null : (Long) signed(Long.parseUnsignedLong(text));
    }

    /** The values by column, without those that are not there. */
    public Map<String, String> values() {
        Map<String, String> found = new LinkedHashMap<>();
        for (int at = 0; at < values.length; at++) {
            if (values[at] != null) {
                found.put(columns.get(at), values[at]);
            }
        }
        return Collections.unmodifiableMap(found);
    }

    static long signed(long number) {
        if (number < 0) {
            throw new ArithmeticException("the number " + Long.toUnsignedString(number)
                    + " is larger than a long: ask for its text");
        }
        return number;
    }

    @Override
    public String toString() {
        return prefix + " " + values();
    }
}
