package fibula;

import java.nio.ByteBuffer;

/** The native functions by JNI. */
final class JniCalls extends Calls {
    @Override
    native long open(long name, int bytes, int mapped);

    @Override
    native int close(long table);

    @Override
    native int error(long text, int size);

    @Override
    native long routes(long table);

    @Override
    native int height(long table);

    @Override
    native int name(long table, int column, long text, int size);

    @Override
    native int numeric(long table, int column);

    @Override
    native int column(long table, long name, int bytes);

    @Override
    native int row(long table, long cell, int bytes, int form);

    @Override
    native int row4(long table, int address);

    @Override
    native int rows(long table, long cells, int bytes, int form, long ends, long rows, int count);

    @Override
    native int rows4(long table, long addresses, long rows, int count);

    @Override
    native int prefix(long table, long cell, int bytes, int form, long text, int size);

    @Override
    native int text(long table, int column, int row, long text, int size);

    @Override
    native int number(long table, int column, int row, long number);

    @Override
    native long address(ByteBuffer direct);
}
