package fibula.spark;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/** {@code fibula.number(table, address, column)}, which Spark finds in {@link FibulaCatalog}. */
public final class NumberFunction extends Bound<Long> {
    private static final long serialVersionUID = 1;

    NumberFunction(DataType[] inputs) {
        super(Signature.number, inputs, DataTypes.LongType);
    }

    /** Of an address as text. */
    public Long invoke(UTF8String table, UTF8String address, UTF8String column) {
        return functions().number(table, address, column);
    }

    /** Of 4 or 16 bytes in network order. */
    public Long invoke(UTF8String table, byte[] address, UTF8String column) {
        return functions().number(table, address, column);
    }

    /** Of an IPv4 address as a number. */
    public Long invoke(UTF8String table, long address, UTF8String column) {
        return functions().number(table, address, column);
    }
}
