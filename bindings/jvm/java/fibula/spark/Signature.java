package fibula.spark;

import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** The functions of the catalog, before Spark knows the types of their arguments. */
enum Signature implements UnboundFunction {
    value("value(table, address, column): the longest match's value in a column, as text", 3) {
        @Override
        BoundFunction of(DataType[] inputs) {
            return new ValueFunction(inputs);
        }
    },
    number("number(table, address, column): the longest match's value in a column of integers", 3) {
        @Override
        BoundFunction of(DataType[] inputs) {
            return new NumberFunction(inputs);
        }
    },
    prefix("prefix(table, address): the prefix of the longest match", 2) {
        @Override
        BoundFunction of(DataType[] inputs) {
            return new PrefixFunction(inputs);
        }
    };

    private final String description;
    private final int arguments;

    Signature(String description, int arguments) {
        this.description = description;
        this.arguments = arguments;
    }

    /** The function for arguments of these types. */
    abstract BoundFunction of(DataType[] inputs);

    @Override
    public String description() {
        return description;
    }

    /** Spark makes what this throws an error of the query, and casts arguments to the types that the function wants. */
    @Override
    public BoundFunction bind(StructType input) {
        StructField[] fields = input.fields();
        if (fields.length != arguments) {
            throw new UnsupportedOperationException("it has " + arguments + " arguments: " + description);
        }
        DataType[] inputs = new DataType[arguments];
        for (int at = 0; at < arguments; at++) {
            inputs[at] = at == 1 ? address(fields[at].dataType()) : text(fields[at].dataType());
        }
        return of(inputs);
    }

    private DataType text(DataType type) {
        if (type instanceof StringType || type instanceof NullType) {
            return address(type);
        }
        throw new UnsupportedOperationException("the table and the column are texts: " + description);
    }

    private static DataType address(DataType type) {
        if (type instanceof StringType) {
            return type; // with its collation, from which Spark does not cast
        }
        if (type instanceof NullType) {
            return DataTypes.StringType;
        }
        if (type instanceof BinaryType) {
            return DataTypes.BinaryType;
        }
        if (type instanceof LongType || type instanceof IntegerType || type instanceof ShortType
                || type instanceof ByteType) {
            return DataTypes.LongType;
        }
        throw new UnsupportedOperationException(
                "addresses are text, 4 or 16 bytes, or integers, not " + type.catalogString() + ": cast them");
    }
}
