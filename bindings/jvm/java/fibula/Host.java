package fibula;

/**
 * What {@link Functions} have to know of an engine: its form of texts, and where its tables are.
 *
 * @param <T> the engine's texts, which are equal if their characters are
 */
public interface Host<T> {
    /** Where the table of this name is. */
    Functions.Source source(String name);

    /** Whether an argument is a text. */
    boolean isText(Object argument);

    /** A text of the engine as one of Java's. */
    String string(T text);

    /** One of Java's texts as one of the engine. */
    T text(String text);

    /** Writes a text of at most {@link Scratch#LONGEST} bytes, or by {@link Scratch#put(String)}. Returns its bytes. */
    int write(T text, Scratch to);

    /** The text of so many bytes of ASCII. */
    T read(Scratch from, int bytes);
}
