"""Spark and Sail: columns added on the executors, each of which maps the snapshot once.

    from fibula.spark import annotate
    flows = annotate(flows, "src_ip", "table.fib", ["asn", "prefix"])

The file goes to the executors by `SparkContext.addFile`. A Python worker maps it when its first task needs it, and
keeps it for later ones. Over Spark Connect, which is also Sail's protocol, nothing is sent: all nodes have the file.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow
from pyspark.sql import types

from fibula import _columns
from fibula._fibula import ColumnError
from fibula.table import Table

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame

ADDRESSES: dict[type[types.DataType], pyarrow.DataType] = {
    types.StringType: pyarrow.string(),
    types.BinaryType: pyarrow.binary(),
    types.LongType: pyarrow.int64(),
}
"""What a column of addresses may be: text, 4 or 16 bytes in network order, IPv4 as numbers."""

ADDED: dict[pyarrow.DataType, tuple[types.DataType, pyarrow.DataType]] = {
    pyarrow.string(): (types.StringType(), pyarrow.string()),
    pyarrow.binary(): (types.BinaryType(), pyarrow.binary()),
    pyarrow.float64(): (types.DoubleType(), pyarrow.float64()),
    pyarrow.bool_(): (types.BooleanType(), pyarrow.bool_()),
    # Spark has no unsigned numbers: the next that holds all values.
    pyarrow.uint8(): (types.ShortType(), pyarrow.int16()),
    pyarrow.uint32(): (types.LongType(), pyarrow.int64()),
    pyarrow.uint64(): (types.DecimalType(20, 0), pyarrow.decimal128(20, 0)),
}
"""What an added column is in Spark."""

_opened: dict[str, tuple[tuple[int, ...], Table]] = {}
"""Of this process: the table of a path, and which file it was."""

_opening = threading.Lock()
"""Sail's tasks are threads of one process."""

KEPT = 8
"""Tables that a worker keeps: one that runs for weeks sees many versions of a table."""


def annotate(
    df: DataFrame,
    column: str | Iterable[str],
    snapshot: str | os.PathLike[str] | Table,
    add: str | Iterable[str] | None = None,
    *,
    default: Mapping[str, float | str] | float | str | None = None,
    strict: bool = False,
    prefix_form: str = "text",
    ship: bool = True,
) -> DataFrame:
    """The DataFrame with columns added for its columns of addresses: `src_ip_asn` and `src_ip_prefix` for `src_ip`.

    `column` names one column of addresses or several: strings, binary (4 or 16 bytes), or long (IPv4 as numbers).
    `snapshot` is a snapshot file on the driver, or a `Table` that has one. `add`, `default` and `prefix_form` are those
    of `Table.lookup_many`. Numbers of the table become `bigint`, or `decimal(20,0)` if one needs 64 bits, lengths of
    prefixes `smallint`, text `string`. Other columns are as they were. Null where there is no address, no prefix that
    covers it, or text that is no address; with `strict` the last fails the job.

    `ship=False` sends nothing: the path is that of a file which every node has, the driver too. It is looked at when a
    task starts, so a file that was replaced serves the next tasks. Spark Connect and Sail need it.

    Nothing is computed before Spark is asked for rows. Raises `ColumnError` for columns that are not there or of
    another type, OSError and `SnapshotError` if the file cannot be opened here.
    """
    columns = _columns.names(column)
    options: dict[str, Any] = {"add": _columns.names(add) or None, "default": default}
    options |= {"strict": strict, "prefix_form": prefix_form}
    path = snapshot.path if isinstance(snapshot, Table) else Path(snapshot).absolute()
    if path is None:
        raise ValueError("the table is in memory only: table.save(path) gives it a file that Spark can send")
    added = _open(path).annotate(_example(df, columns), columns, text="plain", threads=1, **options)
    if ship:
        if "connect" in type(df).__module__:
            raise ValueError("Spark Connect and Sail send no files: put the snapshot on all nodes, and set ship=False")
        path = _ship(df.sparkSession.sparkContext, path)
    fields = [field for field in added.schema if field.name not in columns]
    for field in fields:
        if field.name in df.columns:
            raise ColumnError(f"the DataFrame already has a column {field.name!r}: rename or drop it")
    names = [*df.columns, *(field.name for field in fields)]
    # Spark looks columns up by name on both ways, takes a dot in one as a path, and fails if one comes twice.
    plain = [f"c{at}" for at in range(len(names))]
    kinds = [field.dataType for field in (*df.schema.fields, *map(_field, fields))]
    schema = types.StructType([types.StructField(*field) for field in zip(plain, kinds)])
    where, given = (path.name if ship else str(path), ship), df.columns

    # Spark sends this function as code; what it imports it finds on the worker.
    def run(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        from fibula.spark import _annotated

        for batch in _annotated((batch.rename_columns(given) for batch in batches), where, columns, options):
            yield batch.rename_columns(plain)

    return df.toDF(*plain[: len(given)]).mapInArrow(run, schema).toDF(*names)


def _example(df: DataFrame, columns: list[str]) -> pyarrow.RecordBatch:
    """No rows, but columns of the types that the workers will see."""
    arrays = []
    for name in columns:
        if df.columns.count(name) != 1:
            problem = "no column" if name not in df.columns else "several columns"
            raise ColumnError(f"the DataFrame has {problem} {name!r}; it has: {', '.join(df.columns)}")
        found = df.schema[name].dataType
        arrow = next((arrow for kind, arrow in ADDRESSES.items() if isinstance(found, kind)), None)
        if arrow is None:
            raise ColumnError(f"{name!r} is {found.simpleString()}; addresses are string, binary or bigint: cast it")
        arrays.append(pyarrow.array([], arrow))
    return pyarrow.RecordBatch.from_arrays(arrays, columns)


def _field(field: pyarrow.Field) -> types.StructField:
    if pyarrow.types.is_list(field.type):
        return types.StructField(field.name, types.ArrayType(types.StringType()))
    return types.StructField(field.name, ADDED[field.type][0])


def _ship(context: SparkContext, snapshot: Path) -> Path:
    """Sends the file to all executors, once, by a name that no other file has. Returns where it is on the driver."""
    from pyspark import SparkFiles  # which the packages of Spark Connect alone do not have

    # Spark removes this directory in the end, and what lies in it.
    directory = Path(tempfile.mkdtemp(prefix="fibula-", dir=SparkFiles.getRootDirectory()))
    copy = directory / "snapshot"
    try:
        os.link(snapshot, copy)
        about = copy.stat()
    except OSError:  # another file system
        about = snapshot.stat()
        shutil.copyfile(snapshot, copy)
    name = f"fibula-{about.st_dev:x}-{about.st_ino:x}-{about.st_mtime_ns:x}-{about.st_size:x}.fib"
    sent = Path(SparkFiles.get(name))
    if sent.exists():
        copy.unlink()
        directory.rmdir()
    else:
        context.addFile(str(copy.rename(directory / name)))
    return sent


def _annotated(
    batches: Iterator[pyarrow.RecordBatch], where: tuple[str, bool], columns: list[str], options: dict[str, Any]
) -> Iterator[pyarrow.RecordBatch]:
    """On a worker: the batches with their added columns."""
    path, shipped = where
    if shipped:
        from pyspark import SparkFiles

        # Spark's copies are writable, but nobody writes to them.
        table = _open(Path(SparkFiles.get(path)), load="map")
    else:
        table = _open(Path(path))
    for batch in batches:
        # Spark runs as many workers as an executor has cores.
        found = table.annotate(batch, columns, text="plain", threads=1, **options)
        arrays = [
            array.cast(ADDED[array.type][1]) if at >= batch.num_columns and array.type in ADDED else array
            for at, array in enumerate(found.columns)
        ]
        yield pyarrow.RecordBatch.from_arrays(arrays, found.schema.names)


def _open(path: Path, load: str = "auto") -> Table:
    """The table of a path, opened once in this process and again only if another file is there."""
    with _opening:
        about = path.stat()
        which = (about.st_dev, about.st_ino, about.st_mtime_ns, about.st_size)
        known = _opened.get(str(path))
        if known is None or known[0] != which:
            _opened.pop(str(path), None)
            while len(_opened) >= KEPT:
                del _opened[next(iter(_opened))]  # the one opened first
            known = _opened[str(path)] = (which, Table.open(path, load=load))
        return known[1]
