package fibula;

import java.nio.ByteBuffer;

/**
 * The functions of the native library, which {@code src/calls.rs} describes. All arguments are numbers: a table is its
 * handle, and texts and arrays are addresses in a thread's {@link Scratch}.
 */
abstract class Calls {
    /** The result of a call that failed; {@link #error} has the reason. */
    static final int FAILED = Integer.MIN_VALUE;

    /** The result of a watched call that has looked nothing up: the caller looks at the file, and calls again. */
    static final int LOOK = Integer.MIN_VALUE + 1;

    /** Bits of a form: the address is 4 or 16 bytes, not text; the call is watched. */
    static final int BYTES = 1;
    static final int WATCHED = 2;

    /** Those of this virtual machine; null if there are none. */
    static final Calls NATIVE;

    private static final FibulaException FAILURE;

    static {
        Calls chosen = null;
        FibulaException failure = null;
        try {
            chosen = choose();
        } catch (FibulaException e) {
            failure = e;
        }
        NATIVE = chosen;
        FAILURE = failure;
    }

    /** Throws the reason if there are no calls: each time, where an error of this class would have it once. */
    static void check() {
        if (FAILURE != null) {
            throw new FibulaException(FAILURE.getMessage(), FAILURE);
        }
    }

    abstract long open(long name, int bytes, int mapped);

    abstract int close(long table);

    abstract int error(long text, int size);

    abstract long routes(long table);

    abstract int height(long table);

    abstract int name(long table, int column, long text, int size);

    abstract int numeric(long table, int column);

    abstract int column(long table, long name, int bytes);

    abstract int row(long table, long cell, int bytes, int form);

    abstract int row4(long table, int address);

    abstract int rows(long table, long cells, int bytes, int form, long ends, long rows, int count);

    abstract int rows4(long table, long addresses, long rows, int count);

    abstract int prefix(long table, long cell, int bytes, int form, long text, int size);

    abstract int text(long table, int column, int row, long text, int size);

    abstract int number(long table, int column, int row, long number);

    /** The address of a direct buffer. */
    abstract long address(ByteBuffer direct);

    /** Foreign functions where Java has them (22 and later), else JNI; {@code -Dfibula.calls=jni} wants JNI. */
    private static Calls choose() {
        Library.load();
        String wanted = System.getProperty("fibula.calls", "");
        switch (wanted) {
            case "":
                return hasForeign() ? new ForeignCalls() : new JniCalls();
            case "ffm":
                return new ForeignCalls();
            case "jni":
                return new JniCalls();
            default:
                throw new FibulaException("fibula.calls is " + wanted + ", not ffm or jni");
        }
    }

    /** Whether this Java has java.lang.foreign in its final form. */
    private static boolean hasForeign() {
        try {
            Class.forName("java.lang.foreign.Linker$Option").getMethod("critical", boolean.class);
            return true;
        } catch (ClassNotFoundException | NoSuchMethodException e) {
            return false;
        }
    }
}
