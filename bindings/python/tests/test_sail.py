"""Sail with workers that are processes of their own: every row is compared with `Table.annotate`."""

from __future__ import annotations

import importlib.util
import os
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if importlib.util.find_spec("pysail") is None:
    pytest.skip("needs pysail", allow_module_level=True)

import pyarrow
import pyarrow.compute
import pyarrow.parquet

import fibula
from sail_cluster import Cluster
from spark_sample import Log, save_networks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

ROWS = int(os.environ.get("FIBULA_SAIL_ROWS", 200_000))
ADD = ["asn", "prefix", "site", "id"]


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_networks(tmp_path_factory.mktemp("table") / "networks.fib")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Log:
    return Log(tmp_path_factory.mktemp("log") / "log.parquet", ROWS)


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    cluster = Cluster(tmp_path_factory.mktemp("sail"))
    try:
        session = SparkSession.builder.remote(cluster.address).getOrCreate()
        session.conf.set("spark.sql.session.timeZone", "UTC")
        yield session
        session.stop()
    finally:
        cluster.stop()


def annotate(*args: Any, **options: Any) -> Any:
    from fibula.spark import annotate

    return annotate(*args, ship=False, **options)


def test_all_rows(spark: SparkSession, snapshot: Path, log: Log, tmp_path: Path) -> None:
    frame = spark.read.parquet(str(log.path))
    joined = annotate(frame, "ip", snapshot, ADD, default={"asn": 7})
    assert joined.columns == [*frame.columns, "ip_asn", "ip_prefix", "ip_site", "ip_id"]
    assert joined.schema.fields[: len(frame.columns)] == frame.schema.fields
    assert [kind for _, kind in joined.dtypes[-4:]] == ["bigint", "string", "string", "decimal(20,0)"]
    joined.write.parquet(str(tmp_path / "joined"))
    log.check(snapshot, pyarrow.parquet.read_table(tmp_path / "joined"))


def test_workers_are_processes_apart_that_share_the_mapped_file(spark: SparkSession, snapshot: Path, log: Log) -> None:
    # Inside of the test, so that it goes to the workers as code: they cannot import this module.
    def where(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for batch in batches:
            maps = Path("/proc/self/maps").read_text().splitlines()
            mapped = any(line.endswith("/networks.fib") for line in maps)
            yield pyarrow.RecordBatch.from_pylist([{"process": os.getpid(), "mapped": mapped, "rows": batch.num_rows}])

    joined = annotate(spark.read.parquet(str(log.path)), "ip", snapshot, "asn")
    lines = joined.select("ip_asn").mapInArrow(where, "process bigint, mapped boolean, rows bigint").collect()
    rows: Counter[int] = Counter()
    for line in lines:
        rows[line.process] += line.rows
    assert len(rows) == 2 and rows.total() == ROWS and os.getpid() not in rows, rows
    assert all(line.mapped for line in lines)


def test_a_table_that_is_replaced_under_load(spark: SparkSession, log: Log, tmp_path: Path) -> None:
    versions = [save_networks(tmp_path / f"{add}.fib", add) for add in (0, 1_000_000)]
    path, done = tmp_path / "now.fib", threading.Event()
    os.link(versions[0], path)

    def replace() -> None:
        at = 0
        while not done.wait(0.01):
            at += 1
            os.link(versions[at % 2], tmp_path / "next.fib")
            (tmp_path / "next.fib").replace(path)

    replacing = threading.Thread(target=replace)
    replacing.start()
    frame = spark.read.parquet(str(log.path)).select("row", "ip")
    before = pyarrow.parquet.read_table(log.path, columns=["row", "ip"])
    old, new = (fibula.Table.open(version).annotate(before, "ip", "asn", text="plain") for version in versions)
    seen: Counter[str] = Counter()
    try:
        for _ in range(8):
            found = annotate(frame, "ip", path, "asn").toArrow().sort_by("row")
            assert found["row"].equals(before["row"])
            now = found["ip_asn"]
            is_old, is_new = (equal(now, version["ip_asn"]) for version in (old, new))
            is_none = pyarrow.compute.and_(is_old, is_new)  # no prefix covers it in either
            assert pyarrow.compute.all(pyarrow.compute.or_(is_old, is_new)).as_py()
            for name, rows in (("old", is_old), ("new", is_new), ("none", is_none)):
                seen[name] += pyarrow.compute.sum(rows).as_py()
    finally:
        done.set()
        replacing.join()
    assert seen["old"] + seen["new"] - seen["none"] == 8 * ROWS, seen
    assert min(seen["old"], seen["new"]) > seen["none"] > 0, f"one version alone tests nothing: {seen}"


def equal(one: Any, other: Any) -> Any:
    """Whether rows are equal, nulls among them."""
    both_null = pyarrow.compute.and_(one.is_null(), other.is_null())
    return pyarrow.compute.or_(both_null, pyarrow.compute.equal(one, other.cast(one.type)).fill_null(False))


def small(spark: SparkSession) -> Any:
    rows = [(1, "10.0.0.1", 167772161), (2, None, None), (3, "never", -1)]
    return spark.createDataFrame(rows, "row long, ip string, number long")


def test_errors_of_workers_have_our_sentence(spark: SparkSession, snapshot: Path, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match="never"):
        annotate(small(spark), "ip", snapshot, "asn", strict=True).collect()
    gone = tmp_path / "gone.fib"
    fibula.Table.build([("10.0.0.0/8", {"v": 1})]).save(gone)
    joined = annotate(small(spark), "ip", gone)
    assert [row.ip_v for row in joined.orderBy("row").collect()] == [1, None, None]
    gone.unlink()
    with pytest.raises(PySparkException, match="gone.fib"):
        joined.collect()
    assert [row.ip_asn for row in annotate(small(spark), "ip", snapshot, "asn").collect()], "the workers go on"


def test_what_is_wrong_is_said_before_any_job(spark: SparkSession, snapshot: Path) -> None:
    from fibula.spark import annotate as shipping

    with pytest.raises(ValueError, match="ship=False"):
        shipping(small(spark), "ip", snapshot)
    with pytest.raises(fibula.ColumnError, match="no column 'src'; it has: row, ip, number"):
        annotate(small(spark), "src", snapshot)
    with pytest.raises(FileNotFoundError):
        annotate(small(spark), "ip", snapshot.with_name("missing.fib"))


def test_forms_of_addresses_and_prefixes(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "nested.fib"
    fibula.Table.build([("10.0.0.0/8", {"v": 1}), ("10.0.0.0/24", {"v": 2}), ("2001:db8::/32", {"v": 6})]).save(path)
    six = bytes.fromhex("20010db8" + 12 * "00")
    rows = [(1, "10.0.0.1", 167772161, b"\x0a\0\0\1"), (2, None, None, None), (3, "2001:db8::1", -1, six)]
    frame = spark.createDataFrame(rows, "`a.b` long, ip string, number long, raw binary")
    joined = annotate(frame, ["ip", "number", "raw"], path, ["v", "prefix", "covering"], prefix_form="binary")
    first, second, third = joined.orderBy("`a.b`").collect()
    for name in ("ip", "number", "raw"):
        assert (first[f"{name}_v"], second[f"{name}_v"]) == (2, None)
        assert (bytes(first[f"{name}_prefix"]), first[f"{name}_prefix_len"]) == (b"\x0a\0\0\0", 24)
        assert first[f"{name}_covering"] == ["10.0.0.0/24", "10.0.0.0/8"]
    assert (third.ip_v, third.number_v, third.raw_v) == (6, None, 6)
