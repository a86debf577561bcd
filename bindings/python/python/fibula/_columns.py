"""Whatever holds addresses, as the compiled part takes it, and options in one form.

The compiled part takes what has Arrow's PyCapsule interface, NumPy arrays that lie as it reads them, and lists.
"""

from __future__ import annotations

import datetime
import math
import sys
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from fibula._fibula import ColumnError

if TYPE_CHECKING:
    from fibula._fibula import Column, Columns, _Requested

ACCEPTED = (
    "a column is a pyarrow array, a Polars or pandas Series, a NumPy array (integers; rows of 4 or 16 uint8),"
    " anything else with Arrow's PyCapsule interface, or an iterable of str, int, bytes, ipaddress objects and None"
)


def loaded(name: str) -> Any:
    """A library if the program uses it: an object of it cannot come from a program that does not.

    One that another thread is still importing has made no objects yet, and lacks some of its names.
    """
    module = sys.modules.get(name)
    return None if getattr(getattr(module, "__spec__", None), "_initializing", False) else module


def index(values: object) -> object | None:
    """The index of pandas that a result for these values has."""
    pandas = loaded("pandas")
    if pandas is not None and isinstance(values, pandas.Series):
        return values.index  # type: ignore[no-any-return]
    return values if pandas is not None and isinstance(values, pandas.Index) else None


def column(values: object) -> object:
    """The column in a form that the compiled part takes."""
    if isinstance(values, (str, bytes, bytearray, Mapping)):
        raise TypeError(f"one {type(values).__name__} is no column: lookup() takes one address; {ACCEPTED}")
    numpy, pandas, polars, pyarrow = (loaded(name) for name in ("numpy", "pandas", "polars", "pyarrow"))
    frames = [(pandas, ("DataFrame",)), (polars, ("DataFrame", "LazyFrame")), (pyarrow, ("Table", "RecordBatch"))]
    for library, kinds in frames:
        if library is not None and isinstance(values, tuple(getattr(library, kind) for kind in kinds)):
            raise TypeError(
                f"a {type(values).__name__} is no column: give one of its columns, frame['src'], or let annotate() add columns to"
                f" the frame; {ACCEPTED}"
            )
    if numpy is not None and isinstance(values, numpy.ndarray):
        return _from_numpy(numpy, values)
    if pandas is not None and isinstance(values, (pandas.Series, pandas.Index)):
        return _from_pandas(numpy, values)
    if polars is not None and isinstance(values, polars.Series):
        # Polars gives columns of nulls a buffer, which Arrow does not have and arrow-rs refuses.
        return values.to_list() if values.dtype in (polars.Object, polars.Null) else values
    if hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__"):
        return values
    if isinstance(values, Iterable):
        return values if isinstance(values, list) else list(values)
    raise TypeError(f"{type(values).__name__} is no column; {ACCEPTED}")


def _from_numpy(numpy: Any, array: Any) -> object:
    kind, width = array.dtype.kind, array.dtype.itemsize
    if array.ndim == 1 and (kind in "OUT" or isinstance(array, numpy.ma.MaskedArray)):
        return array.tolist()
    if array.ndim == 1 and kind == "V" and array.dtype.names is None and width in (4, 16):
        array = numpy.ascontiguousarray(array).view(numpy.uint8).reshape(-1, width)
    rows = array.ndim == 2 and array.dtype == numpy.uint8 and array.shape[1] in (4, 16)
    if rows and isinstance(array, numpy.ma.MaskedArray):
        return [_of_bytes(row) for row in array.tolist()]
    if not rows and (array.ndim != 1 or kind not in "iu"):
        raise TypeError(f"a NumPy array of {array.dtype} and shape {array.shape} holds no addresses; {ACCEPTED}")
    if array.size == 0:
        return []
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    # Where it lies is where it is read: without gaps, and aligned.
    return numpy.require(array, requirements=["C", "A"])


def _of_bytes(row: list[int | None]) -> bytes | str | None:
    """An address, or what is no address because a byte is masked; None if all are."""
    known = bytes(byte for byte in row if byte is not None)
    return known if len(known) == len(row) else str(row) if known else None


def _from_pandas(numpy: Any, series: Any) -> object:
    if isinstance(series.dtype, numpy.dtype):
        return _from_numpy(numpy, series.to_numpy())
    try:
        import pyarrow
    except ImportError:
        return series.tolist()
    try:
        return pyarrow.array(series, from_pandas=True)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):
        return series.tolist()  # categories of Python objects


def is_missing(value: object) -> bool:
    """Whether it stands for no value: None, NaN, and what pandas has for it, without importing pandas."""
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def time(value: object) -> str | None:
    """A time as text; None for what is missing."""
    numpy = loaded("numpy")
    if numpy is not None and isinstance(value, numpy.datetime64):
        # As text: as an object, a year beyond 9999 would be a number.
        return None if numpy.isnat(value) else str(value.astype("datetime64[s]"))
    if numpy is not None and isinstance(value, numpy.generic):
        value = value.item()
    if is_missing(value):
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        return format(Decimal(repr(value)), "f")  # without an exponent
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, str):
        return value
    raise TypeError(f"{type(value).__name__} is no time: a date, a datetime, a str, or a number since 1970")


def times(values: object) -> object:
    """A column of times in a form that the compiled part takes."""
    if isinstance(values, (datetime.date, str)):
        raise TypeError("one time is no column: at(time) is the table of one time, whose lookup_many() takes addresses alone")
    numpy, pandas, pyarrow = loaded("numpy"), loaded("pandas"), loaded("pyarrow")
    kind = getattr(getattr(values, "dtype", None), "kind", None)
    if pandas is not None and isinstance(values, (pandas.Series, pandas.Index)) and kind in ("M", "f"):
        values = values.tolist() if pyarrow is None else pyarrow.array(values, from_pandas=True)
    elif numpy is not None and isinstance(values, numpy.ndarray) and kind in ("M", "f"):
        whole = values.astype("datetime64[us]") if kind == "M" else values
        values = whole.tolist() if pyarrow is None else pyarrow.array(whole, from_pandas=True)
    found = column(values)
    return [time(value) for value in found] if isinstance(found, list) else found


def names(asked: str | Iterable[str] | None) -> list[str]:
    """Names, asked for one by one or together."""
    if asked is None:
        return []
    found = [asked] if isinstance(asked, str) else list(asked)
    for name in found:
        if not isinstance(name, str):
            raise TypeError(f"a column's name is a str, not {type(name).__name__}")
    return found


def options(
    add: str | Iterable[str] | None,
    default: Mapping[str, float | str] | float | str | None,
    strict: bool,
    prefix_form: str,
    text: str,
    threads: int | None,
    device: str | None = None,
) -> _Requested:
    """The options of a lookup, checked."""
    asked = names(add)
    if default is None:
        default = {}
    elif not isinstance(default, Mapping):
        if len(asked) != 1:
            raise ColumnError("a default for several columns names them: default={'asn': 0}")
        default = {asked[0]: default}
    for name, value in zip(names(default), default.values()):
        if not isinstance(value, (int, float, bool, str)):
            raise TypeError(f"the default for {name!r} is a number, a bool or a str, not {type(value).__name__}")
    if prefix_form not in ("text", "binary"):
        raise ValueError(f"prefix_form is 'text' or 'binary', not {prefix_form!r}")
    if text not in ("dictionary", "plain"):
        raise ValueError(f"text is 'dictionary' or 'plain', not {text!r}")
    if threads is not None and threads < 1:
        raise ValueError(f"threads is at least 1, not {threads}")
    if device is not None and not isinstance(device, str):
        raise TypeError(f"device is the name of one, such as 'opencl:0', not a {type(device).__name__}: devices() lists them")
    return {
        "add": asked,
        "defaults": [(name, _value(value)) for name, value in default.items()],
        "strict": strict,
        "plain": text == "plain",
        "binary": prefix_form == "binary",
        "threads": threads,
        "device": device,
    }


def conditions(given: Mapping[str, object] | None, named: Mapping[str, object]) -> list[tuple[str, str | None]]:
    """Columns and values as text, a pair for each value; None for what has none."""
    pairs: list[tuple[str, str | None]] = []
    asked = {**(given or {}), **named}
    for name, value in zip(names(asked), asked.values()):
        several = isinstance(value, (list, tuple, set, frozenset))
        for one in value if several else [value]:  # type: ignore[attr-defined]
            pairs.append((name, None if one is None else _value(one)))
        if several and not value:
            raise ColumnError(f"no value for {name!r}: a list of them has one at least")
    return pairs


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def kind_names(given: Mapping[str, type]) -> list[tuple[str, str]]:
    """Columns with the names of their kinds."""
    for name, kind in zip(names(given), given.values()):
        if not isinstance(kind, type):
            raise TypeError(f"the kind of column {name!r} is a type, int, float, bool or str, not {kind!r}")
    return [(name, kind.__name__) for name, kind in given.items()]


def kinds(columns: Iterable[tuple[str, str]]) -> dict[str, type]:
    """Value columns with Python's types for their kinds."""
    types: dict[str, type] = {"int": int, "float": float, "bool": bool, "str": str}
    return {name: types[kind] for name, kind in columns}


def search_of(table: Any) -> Any:
    """How the table looks up columns; an error if it is none."""
    search = getattr(table, "_search", None)
    if search is None:
        raise TypeError(f"table is a fibula.Table, not a {type(table).__name__}: Table.open(path) and Table.build(source) make one")
    return search


def one_name(add: str | None) -> str | None:
    """The name of a column, checked."""
    if add is not None and not isinstance(add, str):
        raise TypeError(f"add is the name of one column, not a {type(add).__name__}: without it, lookup() gives all in a dict")
    return add


def one(found: Columns, add: str) -> Column:
    """The only added column."""
    if len(found.names) > 1:
        raise ColumnError(f"{add!r} is two columns, bytes and lengths: add=[{add!r}] gives both")
    return found[0]
