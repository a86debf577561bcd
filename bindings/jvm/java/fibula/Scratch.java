package fibula;

import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;

/**
 * Memory of one thread that native functions read and write, and the table that the thread is using. A {@link Host}
 * writes addresses to it, and reads answers.
 */
public final class Scratch {
    private static final ConcurrentLinkedQueue<WeakReference<Scratch>> ALL = new ConcurrentLinkedQueue<>();
    private static final ThreadLocal<Scratch> MINE = ThreadLocal.withInitial(Scratch::register);
    private static final AtomicReferenceFieldUpdater<Scratch, Table> USING =
            AtomicReferenceFieldUpdater.newUpdater(Scratch.class, Table.class, "using");

    private ByteBuffer buffer;
    private long address;
    private volatile Table using;

    private Scratch() {
        reserve(4096);
    }

    static Scratch mine() {
        return MINE.get();
    }

    private static Scratch register() {
        Scratch made = new Scratch();
        for (Iterator<WeakReference<Scratch>> all = ALL.iterator(); all.hasNext(); ) {
            if (all.next().get() == null) {
                all.remove(); // its thread has ended
            }
        }
        ALL.add(new WeakReference<>(made));
        return made;
    }

    /** Announces a use. Its caller looks whether the table is open after that, and calls {@link #leave} in any case. */
    void enter(Table table) {
        using = table;
    }

    void leave() {
        USING.lazySet(this, null);
    }

    /** Waits for the calls that use a table, of which no more begin. A call takes microseconds. */
    static void await(Table table) {
        for (WeakReference<Scratch> each : ALL) {
            Scratch scratch = each.get();
            while (scratch != null && scratch.using == table) {
                Thread.yield();
            }
        }
    }

    /** Makes room for so many bytes. What was in the buffer is lost if it has to grow. */
    void reserve(int bytes) {
        if (buffer == null || buffer.capacity() < bytes) {
            buffer = ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
            address = Calls.NATIVE.address(buffer);
        }
    }

    int size() {
        return buffer.capacity();
    }

    /** The address of the byte at this place. */
    long at(int place) {
        return address + place;
    }

    void put(int place, byte[] bytes) {
        ByteBuffer to = buffer.duplicate();
        ((java.nio.Buffer) to).position(place);
        to.put(bytes);
    }

    /** Characters of the longest text that the library gets. No address has more, with all that may be around it. */
    public static final int LONGEST = 256;

    /** The address of the memory, in which a host may write {@link #LONGEST} bytes. */
    public long address() {
        return address;
    }

    /** Writes a text of any length that a host has as one of Java's. Returns its bytes. */
    public int put(String text) {
        return put(0, text);
    }

    /**
     * Writes a text to a place with room for {@link #LONGEST} bytes. Returns its bytes: 0 if it cannot be an address,
     * being null, longer than any, or not ASCII.
     */
    int put(int place, String text) {
        if (text == null) {
            return 0;
        }
        int begin = 0;
        int end = text.length();
        if (end > LONGEST) { // blanks do not count, however many they are
            while (end > 0 && isBlank(text.charAt(end - 1))) {
                end--;
            }
            while (begin < end && isBlank(text.charAt(begin))) {
                begin++;
            }
            if (end - begin > LONGEST) {
                return 0;
            }
        }
        ByteBuffer to = buffer;
        for (int at = begin; at < end; at++) {
            char next = text.charAt(at);
            if (next > 127) {
                return 0;
            }
            to.put(place + at - begin, (byte) next);
        }
        return end - begin;
    }

    private static boolean isBlank(char next) {
        return next == ' ' || next == '\t' || next == '\n' || next == '\r' || next == '\f';
    }

    void putInt(int place, int value) {
        buffer.putInt(place, value);
    }

    void putNetworkOrder(int place, int value) {
        buffer.putInt(place, buffer.order() == ByteOrder.BIG_ENDIAN ? value : Integer.reverseBytes(value));
    }

    int getInt(int place) {
        return buffer.getInt(place);
    }

    long getLong(int place) {
        return buffer.getLong(place);
    }

    String text(int place, int bytes) {
        byte[] text = new byte[bytes];
        ByteBuffer from = buffer.duplicate();
        ((java.nio.Buffer) from).position(place);
        from.get(text);
        return new String(text, StandardCharsets.UTF_8);
    }
}
