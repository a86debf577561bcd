"""Spark with executors of their own: five million rows through a file that was shipped, against `Table.annotate`."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if importlib.util.find_spec("pyspark") is None or shutil.which("java") is None:
    pytest.skip("needs pyspark and a Java runtime", allow_module_level=True)

import pyarrow
import pyarrow.parquet

import fibula
from fibula import spark as fibula_spark
from spark_sample import Log, save_networks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

ROWS = 5_000_000


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_networks(tmp_path_factory.mktemp("table") / "networks.fib")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Log:
    return Log(tmp_path_factory.mktemp("log") / "log.parquet", ROWS)


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


def test_five_million_rows(spark: SparkSession, snapshot: Path, log: Log, tmp_path: Path) -> None:
    frame = spark.read.parquet(str(log.path))
    joined = fibula_spark.annotate(frame, "ip", snapshot, ["asn", "prefix", "site", "id"], default={"asn": 7})
    assert joined.columns == [*frame.columns, "ip_asn", "ip_prefix", "ip_site", "ip_id"]
    assert joined.schema.fields[: len(frame.columns)] == frame.schema.fields
    assert [kind for _, kind in joined.dtypes[-4:]] == ["bigint", "string", "string", "decimal(20,0)"]
    joined.write.parquet(str(tmp_path / "joined"))
    log.check(snapshot, pyarrow.parquet.read_table(tmp_path / "joined"))


def test_executors_are_processes_apart(spark: SparkSession, snapshot: Path, log: Log) -> None:
    # Inside of the test, so that it goes to the executors as code: they cannot import this module.
    def where(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for batch in batches:
            line = {"executor": os.environ["SPARK_EXECUTOR_DIRS"], "daemon": os.getppid(), "rows": batch.num_rows}
            yield pyarrow.RecordBatch.from_pylist([line])

    joined = fibula_spark.annotate(spark.read.parquet(str(log.path)), "ip", snapshot, "asn")
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
