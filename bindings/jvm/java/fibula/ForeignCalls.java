package fibula;

import java.lang.invoke.MethodHandle;
import java.lang.reflect.Array;
import java.lang.reflect.Method;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.util.Optional;

/**
 * The native functions by java.lang.foreign.
 *
 * <p>That package is called by reflection while this class is initialised, so the same class file is loaded by older
 * versions of Java. A call is that of a constant method handle with plain numbers.
 */
final class ForeignCalls extends Calls {
    private static final MethodHandle OPEN = function("open", long.class, long.class, int.class, int.class);
    private static final MethodHandle CLOSE = function("close", int.class, long.class);
    private static final MethodHandle ERROR = function("error", int.class, long.class, int.class);
    private static final MethodHandle ROUTES = function("routes", long.class, long.class);
    private static final MethodHandle HEIGHT = function("height", int.class, long.class);
    private static final MethodHandle NAME = function("name", int.class, long.class, int.class, long.class, int.class);
    private static final MethodHandle NUMERIC = function("numeric", int.class, long.class, int.class);
    private static final MethodHandle COLUMN = function("column", int.class, long.class, long.class, int.class);
    private static final MethodHandle ROW = quick("row", int.class, long.class, long.class, int.class, int.class);
    private static final MethodHandle ROW4 = quick("row4", int.class, long.class, int.class);
    private static final MethodHandle ROWS =
            function("rows", int.class, long.class, long.class, int.class, int.class, long.class, long.class,
                    int.class);
    private static final MethodHandle ROWS4 =
            function("rows4", int.class, long.class, long.class, long.class, int.class);
    private static final MethodHandle PREFIX =
            function("prefix", int.class, long.class, long.class, int.class, int.class, long.class, int.class);
    private static final MethodHandle TEXT =
            function("text", int.class, long.class, int.class, int.class, long.class, int.class);
    private static final MethodHandle NUMBER =
            quick("number", int.class, long.class, int.class, int.class, long.class);
    private static final Method OF_BUFFER = method("MemorySegment", "ofBuffer", Buffer.class);
    private static final Method ADDRESS = method("MemorySegment", "address");

    private static Class<?> type(String name) throws ClassNotFoundException {
        return Class.forName("java.lang.foreign." + name);
    }

    private static Method method(String type, String name, Class<?>... parameters) {
        try {
            return type(type).getMethod(name, parameters);
        } catch (ReflectiveOperationException e) {
            throw new FibulaException("this Java has no java.lang.foreign as of version 22: leave fibula.calls out", e);
        }
    }

    private static MethodHandle function(String name, Class<?> result, Class<?>... arguments) {
        return function(name, false, result, arguments);
    }

    /** A function that takes less than a microsecond: the virtual machine may wait for it before it collects garbage. */
    private static MethodHandle quick(String name, Class<?> result, Class<?>... arguments) {
        return function(name, true, result, arguments);
    }

    private static MethodHandle function(String name, boolean quick, Class<?> result, Class<?>[] arguments) {
        try {
            Class<?> layout = type("MemoryLayout");
            Object layouts = Array.newInstance(layout, arguments.length);
            for (int at = 0; at < arguments.length; at++) {
                Array.set(layouts, at, layout(arguments[at]));
            }
            Object descriptor = method("FunctionDescriptor", "of", layout, layouts.getClass())
                    .invoke(null, layout(result), layouts);
            Object symbols = method("SymbolLookup", "loaderLookup").invoke(null);
            Optional<?> symbol =
                    (Optional<?>) method("SymbolLookup", "find", String.class).invoke(symbols, "fibula_jvm_" + name);
            Object options = Array.newInstance(type("Linker$Option"), quick ? 1 : 0);
            if (quick) {
                Array.set(options, 0, method("Linker$Option", "critical", boolean.class).invoke(null, false));
            }
            Object linker = method("Linker", "nativeLinker").invoke(null);
            return (MethodHandle) method("Linker", "downcallHandle", type("MemorySegment"),
                            type("FunctionDescriptor"), options.getClass())
                    .invoke(linker, symbol.get(), descriptor, options);
        } catch (ReflectiveOperationException e) {
            throw new FibulaException("the native function " + name + " cannot be called: " + e, e);
        }
    }

    private static Object layout(Class<?> of) throws ReflectiveOperationException {
        return type("ValueLayout").getField(of == long.class ? "JAVA_LONG" : "JAVA_INT").get(null);
    }

    /** What no call does: functions that return numbers throw nothing. */
    private static FibulaException thrown(Throwable e) {
        return new FibulaException("a fault in fibula: " + e, e);
    }

    @Override
    long open(long name, int bytes, int mapped) {
        try {
            return (long) OPEN.invokeExact(name, bytes, mapped);
        } catch (Throwable e) {
            throw thrown(e);
        }
    }

    @Override
    int close(long table) {
        try {
            return (int) CLOSE.invokeExact(table);
        } catch (Throwable e) {
            throw thrown(e);
        }
    }

    @Override
    int error(long text, int size) {
        try {
            return (int) ERROR.invokeExact(text, size);
        } catch (Throwable e) {
            throw thrown(e);
        }
    }

    @Override
    long routes(long table) {
        try {
            return (long) ROUTES.invokeExact(table);
        } catch (Throwable e) {
            throw thrown(e);
        }
    }

    @Override
    int height(long table) {
        try {
            return (int) HEIGHT.invokeExact(table);
        } catch (Throwable e) {
            throw thrown(e);
        }
    }

    @Override
    int name(long table, int column, long text, int size) {
        try {
            return (int) NAME.invokeExact(table, column, text, size);
        } catch (Throwable e) {
            throw thrown(e);
        }
    }

    @Override
    int numeric(long table, int column) {
        try {
            return (int) NUMERIC.invokeExact(table, column);
        } catch (Throwable e) {
            throw thrown(e);
        }
    }

    @Override
    int column(long table, long name, int bytes) {
        try {
            return (int) COLUMN.invokeExact(table, name, bytes);
        } catch (Throwable e) {
            throw thrown(e);
        }
    }

    @Override
    int row(long table, long cell, int bytes, int form) {
        try {
            return (int) ROW.invokeExact(table, cell, bytes, form);
        } catch (Throwable e) {
            throw thrown(e);
        }
    }

    @Override
    int row4(long table, int address) {
        try {
            return (int) ROW4.invokeExact(table, address);
        } catch (Throwable e) {
            throw thrown(e);
        }
    }

    @Override
    int rows(long table, long cells, int bytes, int form, long ends, long rows, int count) {
        try {
            return (int) ROWS.invokeExact(table, cells, bytes, form, ends, rows, count);
        } catch (Throwable e) {
            throw thrown(e);
        }
    }

    @Override
    int rows4(long table, long addresses, long rows, int count) {
        try {
            return (int) ROWS4.invokeExact(table, addresses, rows, count);
        } catch (Throwable e) {
            throw thrown(e);
        }
    }

    @Override
    int prefix(long table, long cell, int bytes, int form, long text, int size) {
        try {
            return (int) PREFIX.invokeExact(table, cell, bytes, form, text, size);
        } catch (Throwable e) {
            throw thrown(e);
        }
    }

    @Override
    int text(long table, int column, int row, long text, int size) {
        try {
            return (int) TEXT.invokeExact(table, column, row, text, size);
        } catch (Throwable e) {
            throw thrown(e);
        }
    }

    @Override
    int number(long table, int column, int row, long number) {
        try {
            return (int) NUMBER.invokeExact(table, column, row, number);
        } catch (Throwable e) {
            throw thrown(e);
        }
    }

    @Override
    long address(ByteBuffer direct) {
        try {
            return (long) ADDRESS.invoke(OF_BUFFER.invoke(null, direct));
        } catch (ReflectiveOperationException e) {
            throw thrown(e);
        }
    }
}
