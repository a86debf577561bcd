package fibula;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;

/** Finds the native library and loads it. */
final class Library {
    private static final String NAME = "fibula_jvm";

    private Library() {}

    /**
     * The file that the property {@code fibula.library} names; else that of this platform in the jar; else that of this
     * name in {@code java.library.path}.
     */
    static void load() {
        String file = System.getProperty("fibula.library");
        if (file != null) {
            System.load(java.nio.file.Paths.get(file).toAbsolutePath().toString());
            return;
        }
        String resource = "native/" + platform() + "/" + System.mapLibraryName(NAME);
        try (InputStream library = Library.class.getResourceAsStream(resource)) {
            if (library != null) {
                extract(library);
                return;
            }
        } catch (IOException e) {
            throw new FibulaException("the native library cannot be written to " + System.getProperty("java.io.tmpdir")
                    + " (" + e.getMessage() + "): name another folder by -Djava.io.tmpdir", e);
        }
        try {
            System.loadLibrary(NAME);
        } catch (UnsatisfiedLinkError e) {
            throw new FibulaException("this jar has no native library for " + platform() + ", and " + e.getMessage()
                    + ": build it there (./dev jvm) and name it by -Dfibula.library", e);
        }
    }

    /** Each class loader gets a file of its own, since Java loads a file for one alone. */
    private static void extract(InputStream library) throws IOException {
        Path file = Files.createTempFile("fibula-", System.mapLibraryName(NAME));
        try {
            Files.copy(library, file, StandardCopyOption.REPLACE_EXISTING);
            System.load(file.toString());
        } catch (UnsatisfiedLinkError e) {
            throw new FibulaException("the native library does not load (" + e.getMessage()
                    + "): if programs may not be run in that folder, name another by -Djava.io.tmpdir", e);
        } finally {
            try {
                Files.delete(file);
            } catch (IOException e) {
                file.toFile().deleteOnExit(); // Windows keeps what is loaded
            }
        }
    }

    /** Such as linux-x86_64. */
    static String platform() {
        String system = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String machine = System.getProperty("os.arch").toLowerCase(Locale.ROOT);
        system = system.startsWith("mac") ? "macos" : system.startsWith("windows") ? "windows" : system;
        machine = machine.equals("amd64") ? "x86_64" : machine.equals("arm64") ? "aarch64" : machine;
        return system + "-" + machine;
    }
}
