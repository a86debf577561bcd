package fibula;

/** A table cannot be opened, or has no such column or row. The message says what to do. */
public class FibulaException extends RuntimeException {
    private static final long serialVersionUID = 1;

    FibulaException(String message) {
        super(message);
    }

    FibulaException(String message, Throwable cause) {
        super(message, cause);
    }
}
