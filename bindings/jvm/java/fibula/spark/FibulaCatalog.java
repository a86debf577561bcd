package fibula.spark;

import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A catalog of the functions {@code value}, {@code number} and {@code prefix}: with {@code
 * spark.sql.catalog.fibula=fibula.spark.FibulaCatalog} they are {@code fibula.value(table, address, column)} and so on.
 * Spark calls them with its own form of texts, which those of {@link Functions} get as Java's.
 */
public final class FibulaCatalog implements FunctionCatalog {
    private String name;

    @Override
    public void initialize(String name, CaseInsensitiveStringMap options) {
        this.name = name;
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public Identifier[] listFunctions(String[] namespace) throws NoSuchNamespaceException {
        if (namespace.length > 0) {
            throw new NoSuchNamespaceException(namespace);
        }
        Signature[] all = Signature.values();
        Identifier[] found = new Identifier[all.length];
        for (int at = 0; at < all.length; at++) {
            found[at] = Identifier.of(namespace, all[at].name());
        }
        return found;
    }

    @Override
    public UnboundFunction loadFunction(Identifier identifier) throws NoSuchFunctionException {
        for (Signature each : Signature.values()) {
            if (identifier.namespace().length == 0 && identifier.name().equalsIgnoreCase(each.name())) {
                return each;
            }
        }
        throw new NoSuchFunctionException(identifier);
    }
}
