package fibula;

import java.util.function.Function;

/** An engine that has Java's texts. */
public final class Strings implements Host<String> {
    private final Function<String, Functions.Source> sources;

    /** With what finds the table of a name. */
    public Strings(Function<String, Functions.Source> sources) {
        this.sources = sources;
    }

    @Override
    public Functions.Source source(String name) {
        return sources.apply(name);
    }

    @Override
    public boolean isText(Object argument) {
        return argument instanceof String;
    }

    @Override
    public String string(String text) {
        return text;
    }

    @Override
    public String text(String text) {
        return text;
    }

    @Override
    public int write(String text, Scratch to) {
        return to.put(text);
    }

    @Override
    public String read(Scratch from, int bytes) {
        return from.text(0, bytes);
    }
}
