package fibula.spark;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/** {@code fibula.value(table, address, column)}, which Spark finds in {@link FibulaCatalog}. */
public final class ValueFunction extends Bound<UTF8String> {
    private static final long serialVersionUID = 1;

    ValueFunction(DataType[] inputs) {
        super(Signature.value, inputs, DataTypes.StringType);
    }

    /** Of an address as text. */
    public UTF8String invoke(UTF8String table, UTF8String address, UTF8String column) {
        return functions().value(table, address, column);
    }

    /** Of 4 or 16 bytes in network order. */
    public UTF8String invoke(UTF8String table, byte[] address, UTF8String column) {
        return functions().value(table, address, column);
    }

    /** Of an IPv4 address as a number. */
    public UTF8String invoke(UTF8String table, long address, UTF8String column) {
        return functions().value(table, address, column);
    }
}
