package fibula;

/** Many addresses of one call, which go to the native library by the thousand. */
final class Batch {
    /** Addresses that are looked up together; also a bound for how long {@link Table#close} waits. */
    private static final int MOST = 1024;
    /** Bytes for the addresses of a block. */
    private static final int ROOM = 32 << 10;

    /** Places in the scratch memory: where each address ends, the rows, the addresses. */
    private static final int ENDS = 0;
    private static final int ROWS = 4 * MOST;
    private static final int CELLS = 8 * MOST;

    private final Table table;
    private final Scratch scratch = Scratch.mine();
    private int binary;
    private int[] rows;
    private int done;
    private int count;
    private int bytes;

    Batch(Table table) {
        this.table = table;
        scratch.reserve(CELLS + ROOM);
    }

    int[] texts(String[] addresses) {
        rows = new int[addresses.length];
        for (String address : addresses) {
            fit();
            add(scratch.put(CELLS + bytes, address));
        }
        flush();
        return rows;
    }

    int[] bytes(byte[][] addresses) {
        rows = new int[addresses.length];
        binary = 1;
        for (byte[] address : addresses) {
            boolean fits = address != null && (address.length == 4 || address.length == 16);
            fit();
            if (fits) {
                scratch.put(CELLS + bytes, address);
            }
            add(fits ? address.length : 0);
        }
        flush();
        return rows;
    }

    int[] numbers(int[] addresses) {
        rows = new int[addresses.length];
        while (done < rows.length) {
            count = Math.min(MOST, rows.length - done);
            for (int at = 0; at < count; at++) {
                scratch.putInt(ENDS + 4 * at, addresses[done + at]);
            }
            long open = table.enter(scratch);
            try {
                Table.checked(Calls.NATIVE.rows4(open, scratch.at(ENDS), scratch.at(ROWS), count), scratch);
            } finally {
                scratch.leave();
            }
            take();
        }
        return rows;
    }

    /** Makes room for one more address. */
    private void fit() {
        if (count == MOST || bytes > ROOM - Scratch.LONGEST) {
            flush();
        }
    }

    private void add(int length) {
        bytes += length;
        scratch.putInt(ENDS + 4 * count, bytes);
        count++;
    }

    private void flush() {
        if (count > 0) {
            long open = table.enter(scratch);
            try {
                int result = Calls.NATIVE.rows(
                        open, scratch.at(CELLS), bytes, binary, scratch.at(ENDS), scratch.at(ROWS), count);
                Table.checked(result, scratch);
            } finally {
                scratch.leave();
            }
            take();
        }
    }

    private void take() {
        for (int at = 0; at < count; at++) {
            rows[done + at] = scratch.getInt(ROWS + 4 * at);
        }
        done += count;
        count = 0;
        bytes = 0;
    }
}
