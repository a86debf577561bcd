package fibula.spark;

import fibula.Functions.Source;
import fibula.Host;
import fibula.Scratch;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** Spark's own form of texts: bytes of UTF-8 in its memory. */
enum Texts implements Host<UTF8String> {
    SPARK;

    @Override
    public Source source(String name) {
        return Functions.source(name);
    }

    @Override
    public boolean isText(Object argument) {
        return argument instanceof UTF8String;
    }

    @Override
    public String string(UTF8String text) {
        return text.toString();
    }

    @Override
    public UTF8String text(String text) {
        return UTF8String.fromString(text);
    }

    @Override
    public int write(UTF8String text, Scratch to) {
        int bytes = text.numBytes();
        if (bytes > Scratch.LONGEST) {
            return to.put(text.toString());
        }
        if (bytes >= 8 && bytes <= 16) {
            // Two words that overlap, which takes half the time of a copy. Most addresses of IPv4 are such texts.
            Object from = text.getBaseObject();
            long begin = text.getBaseOffset();
            Platform.putLong(null, to.address(), Platform.getLong(from, begin));
            Platform.putLong(null, to.address() + bytes - 8, Platform.getLong(from, begin + bytes - 8));
        } else {
            text.writeToMemory(null, to.address());
        }
        return bytes;
    }

    @Override
    public UTF8String read(Scratch from, int bytes) {
        byte[] text = new byte[bytes];
        Platform.copyMemory(null, from.address(), text, Platform.BYTE_ARRAY_OFFSET, bytes);
        return UTF8String.fromBytes(text);
    }
}
