package fibula.spark;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/** {@code fibula.prefix(table, address)}, which Spark finds in {@link FibulaCatalog}. */
public final class PrefixFunction extends Bound<UTF8String> {
    private static final long serialVersionUID = 1;

    PrefixFunction(DataType[] inputs) {
        super(Signature.prefix, inputs, DataTypes.StringType);
    }

    /** Of an address as text. */
    public UTF8String invoke(UTF8String table, UTF8String address) {
        return functions().prefix(table, address);
    }

    /** Of 4 or 16 bytes in network order. */
    public UTF8String invoke(UTF8String table, byte[] address) {
        return functions().prefix(table, address);
    }

    /** Of an IPv4 address as a number. */
    public UTF8String invoke(UTF8String table, long address) {
        return functions().prefix(table, address);
    }
}
