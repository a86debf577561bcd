package fibula;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.HashMap;
import java.util.Map;

/** Tables that stay open for all functions of this virtual machine, by their files. */
final class Tables {
    /** How many tables stay open. */
    static final int MOST = 64;

    private static final Map<String, Opened> OPEN = new HashMap<>();

    private Tables() {}

    /** A table and the file that it was. */
    static final class Opened {
        final String file;
        final boolean mapped;
        final Table table;
        private final Object stamp;
        private volatile long looked = System.nanoTime();

        private Opened(String file, boolean mapped) {
            this.file = file;
            this.mapped = mapped;
            // Before it is opened: a file that replaces it meanwhile is noticed at the next look.
            stamp = stamp(file);
            table = Table.open(file, mapped);
        }

        /** The table for the next row: this one, or the one of a file that has replaced it. */
        Opened look() {
            looked = System.nanoTime();
            return stamp(file).equals(stamp) ? this : open(file, mapped);
        }
    }

    /** The open table of a file. It is opened if it is not, or if another file has its name. */
    static synchronized Opened open(String file, boolean mapped) {
        Opened known = OPEN.get(file);
        if (known != null && known.mapped == mapped && stamp(file).equals(known.stamp)) {
            return known;
        }
        Opened opened = new Opened(file, mapped);
        OPEN.put(file, opened);
        if (known != null) {
            known.table.close();
        } else if (OPEN.size() > MOST) {
            Opened oldest = opened;
            for (Opened each : OPEN.values()) {
                if (each.looked - oldest.looked < 0) {
                    oldest = each;
                }
            }
            OPEN.remove(oldest.file);
            oldest.table.close();
        }
        return opened;
    }

    /** What tells one file from the next one of its name. */
    private static Object stamp(String file) {
        try {
            Path path = Paths.get(file);
            int part = file.lastIndexOf('#');
            if (part > 0 && !Files.exists(path)) {
                path = Paths.get(file.substring(0, part)); // rib.fib#NAME is a table in a checkpoint
            }
            BasicFileAttributes about = Files.readAttributes(path, BasicFileAttributes.class);
            return about.fileKey() + " " + about.size() + " " + about.lastModifiedTime().toInstant();
        } catch (NoSuchFileException e) {
            throw new FibulaException(file + ": there is no such file", e);
        } catch (IOException e) {
            throw new FibulaException(file + ": " + e.getMessage(), e);
        }
    }
}
