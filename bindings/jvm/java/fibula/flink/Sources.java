package fibula.flink;

import fibula.Functions.Source;
import java.io.File;
import java.util.function.Function;
import org.apache.flink.table.functions.FunctionContext;

/** Where Flink's tasks find a table. */
final class Sources {
    private Sources() {}

    /** A file of the distributed cache ({@code pipeline.cached-files}) by its name; else the file of this path. */
    static Function<String, Source> of(FunctionContext context) {
        return name -> {
            File sent = null;
            if (!new File(name).isAbsolute()) {
                try {
                    sent = context.getCachedFile(name);
                } catch (RuntimeException e) {
                    sent = null; // no file of that name was registered
                }
            }
            return sent == null ? new Source(name, false) : new Source(sent.getPath(), true);
        };
    }
}
