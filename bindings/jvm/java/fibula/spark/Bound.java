package fibula.spark;

import java.util.StringJoiner;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A function of the catalog for arguments of some types.
 *
 * <p>Spark's compiled code calls the method {@code invoke} of the class that extends this one, with parameters of those
 * types in Spark's own form. Each task has an instance of its own, since Spark sends it as Java's serialization does.
 *
 * @param <R> the result in Spark's own form
 */
abstract class Bound<R> implements ScalarFunction<R> {
    private static final long serialVersionUID = 1;

    private final Signature signature;
    private final DataType[] inputs;
    private final DataType result;
    private transient fibula.Functions<UTF8String> functions;

    Bound(Signature signature, DataType[] inputs, DataType result) {
        this.signature = signature;
        this.inputs = inputs;
        this.result = result;
    }

    /** Those of this instance. Threads that come at the same time may make two, which does no harm. */
    final fibula.Functions<UTF8String> functions() {
        fibula.Functions<UTF8String> mine = functions;
        if (mine == null) {
            mine = new fibula.Functions<>(Texts.SPARK);
            functions = mine;
        }
        return mine;
    }

    @Override
    public final DataType[] inputTypes() {
        return inputs.clone();
    }

    @Override
    public final DataType resultType() {
        return result;
    }

    /** The same call has the same result, so Spark may move it, leave it out, or call it once for two. */
    @Override
    public final boolean isDeterministic() {
        return true;
    }

    @Override
    public final String name() {
        return signature.name();
    }

    @Override
    public final String canonicalName() {
        StringJoiner types = new StringJoiner(", ", "fibula." + name() + "(", ")");
        for (DataType input : inputs) {
            types.add(input.catalogString());
        }
        return types.toString();
    }

    @Override
    public final boolean equals(Object other) {
        return other instanceof Bound && canonicalName().equals(((Bound<?>) other).canonicalName());
    }

    @Override
    public final int hashCode() {
        return canonicalName().hashCode();
    }

    @Override
    public final String toString() {
        return "fibula." + name();
    }
}
