"""Spark with executors of their own: five million rows through a file that was shipped, against `Table.annotate`."""

from __future__ import annotations

import importlib.util
import ipaddress
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if importlib.util.find_spec("pyspark") is None or shutil.which("java") is None:
    pytest.skip("needs pyspark and a Java runtime", allow_module_level=True)

import numpy
import pyarrow
import pyarrow.compute
import pyarrow.parquet

import fibula
from fibula import spark as fibula_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

ROWS = 5_000_000
NULL, BAD, NOWHERE = 1_234_567, 3_333_333, 4_999_999


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nested prefixes of both families, with text, a number and one that needs 64 bits."""
    random = numpy.random.default_rng(1)
    routes = {}
    for at in range(20_000):
        length = int(random.integers(8, 29))
        address = int(random.integers(1, 224)) << 24 | int(random.integers(2**24))
        network = ipaddress.ip_network((address, length), False)
        routes[str(network)] = {"asn": at, "site": f"s{at % 97}", "id": 2**63 + at}
    for at in range(5_000):
        six = ipaddress.ip_network((0x2001 << 112 | int(random.integers(2**24)) << 88, 40))
        routes[str(six)] = {"asn": at, "site": f"six{at % 7}", "id": at}
    path = tmp_path_factory.mktemp("table") / "networks.fib"
    fibula.Table.build(routes.items()).save(path)
    return path


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five million rows in eight row groups: row, address as text, as a number, and other columns."""
    random = numpy.random.default_rng(2)
    v4 = random.integers(2**24, 224 << 24, ROWS, dtype=numpy.uint32)
    octets = [(v4 >> shift & 255).astype("U3") for shift in (24, 16, 8, 0)]
    text = pyarrow.compute.binary_join_element_wise(*map(pyarrow.array, octets), ".").to_pylist()
    groups = random.integers(2**24, size=ROWS // 10)
    text[::10] = [f"2001:{group >> 8:x}:{group & 255:x}00::7" for group in groups.tolist()]
    text[NULL], text[BAD], text[NOWHERE] = None, "10.0.0.256", "255.0.0.1"
    table = pyarrow.table(
        {
            "row": numpy.arange(ROWS),
            "ip": text,
            "number": v4.astype(numpy.int64),
            "when": pyarrow.array(numpy.arange(ROWS) * 1_000_003, pyarrow.timestamp("us", "UTC")),
            "share": random.random(ROWS),
            "tags": pyarrow.array([["a", None], None, []] * (ROWS // 3) + [["b"]] * (ROWS % 3)),
        }
    )
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    pyarrow.parquet.write_table(table, path, row_group_size=ROWS // 8)
    return path


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A cluster of two executors, processes of their own, on the loopback interface."""
    import pyspark

    home = str(Path(pyspark.__file__).parent)
    local = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost", "SPARK_HOME": home}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (local | {"PYSPARK_PYTHON": sys.executable}).items():
            patch.setenv(name, value)
        builder = pyspark.sql.SparkSession.builder.master("local-cluster[2,1,1024]").appName("fibula")
        settings = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.files.maxPartitionBytes": "24m",
        }
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        try:
            yield session
        finally:
            session.stop()
            # The virtual machine would live as long as this process.
            gateway = pyspark.SparkContext._gateway
            if gateway is not None:
                gateway.shutdown()
                gateway.proc.stdin.close()
                gateway.proc.wait(60)
                pyspark.SparkContext._gateway = pyspark.SparkContext._jvm = None


def in_rows(table: pyarrow.Table) -> pyarrow.Table:
    return table.sort_by("row").combine_chunks()


def test_five_million_rows(spark: SparkSession, snapshot: Path, log: Path, tmp_path: Path) -> None:
    frame = spark.read.parquet(str(log))
    joined = fibula_spark.annotate(frame, "ip", snapshot, ["asn", "prefix", "site", "id"], default={"asn": 7})
    assert joined.columns == [*frame.columns, "ip_asn", "ip_prefix", "ip_site", "ip_id"]
    assert joined.schema.fields[: len(frame.columns)] == frame.schema.fields
    assert [kind for _, kind in joined.dtypes[-4:]] == ["bigint", "string", "string", "decimal(20,0)"]
    joined.write.parquet(str(tmp_path / "joined"))

    found = in_rows(pyarrow.parquet.read_table(tmp_path / "joined"))
    before = pyarrow.parquet.read_table(log)
    table = fibula.Table.open(snapshot)
    want = table.annotate(before, "ip", ["asn", "prefix", "site", "id"], default={"asn": 7}, text="plain")
    assert found.num_rows == ROWS
    for name in before.column_names:
        assert found[name].cast(before[name].type).equals(before[name]), name
    for name in want.column_names[-4:]:
        assert found[name].cast(want[name].type).equals(want[name]), name
    for row in (NULL, BAD):
        assert [found[name][row].as_py() for name in want.column_names[-4:]] == [None] * 4
    assert [found[name][NOWHERE].as_py() for name in want.column_names[-4:]] == [7, None, None, None]
    matched = ROWS - found["ip_prefix"].null_count
    assert ROWS // 10 < matched < ROWS, f"{matched} rows with a prefix test little"


def test_executors_are_processes_apart(spark: SparkSession, snapshot: Path, log: Path) -> None:
    # Inside of the test, so that it goes to the executors as code: they cannot import this module.
    def where(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for batch in batches:
            line = {"executor": os.environ["SPARK_EXECUTOR_DIRS"], "daemon": os.getppid(), "rows": batch.num_rows}
            yield pyarrow.RecordBatch.from_pylist([line])

    joined = fibula_spark.annotate(spark.read.parquet(str(log)), "ip", snapshot, "asn")
    lines = joined.select("ip_asn").mapInArrow(where, "executor string, daemon bigint, rows bigint").collect()
    rows: dict[str, int] = {}
    for line in lines:
        rows[line.executor] = rows.get(line.executor, 0) + line.rows
    assert len(rows) == 2 and sum(rows.values()) == ROWS and min(rows.values()) > 0, rows
    assert len({line.daemon for line in lines}) == 2
    assert os.getpid() not in {line.daemon for line in lines}


def small(spark: SparkSession) -> Any:
    rows = [(1, "10.0.0.1", 167772161), (2, None, None), (3, "never", -1)]
    return spark.createDataFrame(rows, "row long, ip string, number long")


def test_strict_names_the_text(spark: SparkSession, snapshot: Path) -> None:
    with pytest.raises(Exception, match="never"):
        fibula_spark.annotate(small(spark), "ip", snapshot, "asn", strict=True).collect()


def test_a_path_that_all_nodes_have_may_get_another_file(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "here.fib"
    for vlan in (1, 2):
        fibula.Table.build([("10.0.0.0/8", {"vlan": vlan})]).save(path)
        joined = fibula_spark.annotate(small(spark), ["ip", "number"], path, ship=False).orderBy("row")
        shipped = fibula_spark.annotate(small(spark), ["ip", "number"], fibula.Table.open(path)).orderBy("row")
        for frame in (joined, shipped):
            found = [(row.ip_vlan, row.number_vlan) for row in frame.collect()]
            assert found == [(vlan, vlan), (None, None), (None, None)]


def test_prefixes_in_other_forms(spark: SparkSession, snapshot: Path) -> None:
    table = fibula.Table.build([("10.0.0.0/8", {"v": 1}), ("10.0.0.0/24", {"v": 2})])
    table.save(snapshot.with_name("nested.fib"))
    joined = fibula_spark.annotate(small(spark), "ip", table, ["prefix", "covering"], prefix_form="binary")
    first = joined.orderBy("row").first()
    assert first is not None
    assert dict(joined.dtypes)["ip_prefix_len"] == "smallint"
    assert (bytes(first.ip_prefix), first.ip_prefix_len) == (b"\x0a\0\0\0", 24)
    assert first.ip_covering == ["10.0.0.0/24", "10.0.0.0/8"]


def test_what_is_wrong_is_said_before_any_job(spark: SparkSession, snapshot: Path) -> None:
    frame = small(spark)
    with pytest.raises(fibula.ColumnError, match="no column 'src'; it has: row, ip, number"):
        fibula_spark.annotate(frame, "src", snapshot)
    with pytest.raises(fibula.ColumnError, match="'row' is int; addresses are string, binary or bigint"):
        fibula_spark.annotate(frame.withColumn("row", frame.row.cast("int")), "row", snapshot)
    with pytest.raises(fibula.ColumnError, match="already has a column 'ip_asn'"):
        fibula_spark.annotate(frame.withColumnRenamed("number", "ip_asn"), "ip", snapshot)
    with pytest.raises(fibula.FibulaError, match="country"):
        fibula_spark.annotate(frame, "ip", snapshot, "country")
    with pytest.raises(FileNotFoundError):
        fibula_spark.annotate(frame, "ip", snapshot.with_name("gone.fib"))
    with pytest.raises(ValueError, match="table.save"):
        fibula_spark.annotate(frame, "ip", fibula.Table.build([("10.0.0.0/8", {"v": 1})]))


def test_names_with_dots_and_names_that_come_twice(spark: SparkSession, snapshot: Path) -> None:
    rows = [(1, "10.0.0.1", "x", "y"), (2, None, None, None)]
    frame = spark.createDataFrame(rows, "`a.b` long, `src.ip` string, `c``d` string, e string").toDF("a.b", "src.ip", "c`d", "a.b")
    before = fibula_spark.annotate(frame, "src.ip", snapshot, "asn")
    assert before.columns == ["a.b", "src.ip", "c`d", "a.b", "src.ip_asn"]
    assert before.schema.fields[:4] == frame.schema.fields
    table = fibula.Table.open(snapshot)
    assert [tuple(row) for row in before.collect()] == [(*rows[0], table.lookup("10.0.0.1", "asn")), (*rows[1], None)]


def test_workers_map_what_was_shipped(spark: SparkSession, snapshot: Path) -> None:
    fibula_spark.annotate(small(spark), "ip", snapshot, "asn").collect()
    mapped = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            lines = (process / "maps").read_text().splitlines()
        except OSError:  # it has ended
            continue
        mapped += [process.name for line in lines if "/fibula-" in line and line.endswith(".fib")]
    assert mapped and str(os.getpid()) not in mapped


def test_a_file_that_is_no_snapshot_is_named_as_it_was_given(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("prefix,asn\n10.0.0.0/8,1\n")
    with pytest.raises(fibula.SnapshotError, match=f"^{path}: "):
        fibula_spark.annotate(small(spark), "ip", path, "asn")


def test_a_worker_opens_a_file_once(tmp_path: Path) -> None:
    path = tmp_path / "table.fib"
    fibula.Table.build([("10.0.0.0/8", {"v": 1})]).save(path)
    table = fibula_spark._open(path)
    assert fibula_spark._open(path) is table
    fibula.Table.build([("10.0.0.0/8", {"v": 2})]).save(path)
    assert fibula_spark._open(path).lookup("10.0.0.1") == {"prefix": "10.0.0.0/8", "v": 2}
    assert table.lookup("10.0.0.1") == {"prefix": "10.0.0.0/8", "v": 1}
    for at in range(fibula_spark.KEPT):
        shutil.copy(path, tmp_path / f"{at}.fib")
        fibula_spark._open(tmp_path / f"{at}.fib")
    assert len(fibula_spark._opened) == fibula_spark.KEPT and str(path) not in fibula_spark._opened
