"""The jar on each virtual machine, in Spark and in Flink: ten million rows of each against `Table.annotate`."""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import conftest as shared
import fibula
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ANSWERS = "fibula_value({0}, ip, 'site') AS site, fibula_number({0}, ip, 'asn') AS asn, fibula_prefix({0}, ip) AS prefix"
# Spark has them twice: registered, and in a catalog.
FORMS = {"registered": "fibula_", "catalog": "fibula."}
of_both_forms = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
CREATE = "".join(
    f"CREATE TEMPORARY FUNCTION fibula_{name.lower()} AS 'fibula.flink.Fibula{name}';\n"
    for name in ("Value", "Number", "Prefix")
)


@pytest.fixture(scope="module")
def parquet(addresses: pyarrow.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    pyarrow.parquet.write_table(addresses, path, shared.ROWS // 8, compression="none")
    return path


@pytest.fixture(scope="module")
def csv(addresses: pyarrow.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For Flink: a column of numbers of rows, and the address, of which null has a word."""
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    filled = addresses.set_column(1, "ip", addresses["ip"].fill_null("\\N"))
    pyarrow.csv.write_csv(filled, path, pyarrow.csv.WriteOptions(include_header=False, quoting_style="none"))
    return path


def flink_tables(csv: Path, out: Path) -> str:
    """Statements that declare the rows and the place for answers."""
    options = "'connector' = 'filesystem', 'format' = 'csv', 'path' = 'file://{}', 'csv.null-literal' = '{}'"
    columns = "n BIGINT, site STRING, asn BIGINT, prefix STRING"
    return CREATE + (
        f"CREATE TABLE flows (n BIGINT, ip STRING) WITH ({options.format(csv, chr(92) + 'N')});\n"
        f"CREATE TABLE answers ({columns}) WITH ({options.format(out, '')}, 'csv.disable-quote-character' = 'true');\n"
    )


def flink_answers(out: Path) -> pyarrow.Table:
    files = sorted(path for path in out.rglob("*") if path.is_file() and not path.name.startswith((".", "_")))
    return shared.read(files, ["n", "site", "asn", "prefix"]).sort_by("n")


@pytest.mark.parametrize("machine", shared.javas())
def test_rows_of_the_jar(
    machine: str, snapshot: Path, addresses: pyarrow.Table, expected: pyarrow.Table, tmp_path: Path
) -> None:
    lines, out = tmp_path / "lines", tmp_path / "out"
    lines.write_text("\n".join(text or "" for text in addresses["ip"].to_pylist()) + "\n", encoding="utf-8")
    shared.java("RunRows", str(snapshot), str(lines), str(out), machine=machine)
    shared.compare(shared.read([out], ["site", "asn", "prefix"]), expected)


@of_both_forms
def test_rows_of_spark(
    form: str, spark: SparkSession, snapshot: Path, parquet: Path, expected: pyarrow.Table, tmp_path: Path
) -> None:
    spark.sparkContext.addFile(str(snapshot))
    spark.read.parquet(str(parquet)).createOrReplaceTempView("flows")
    found = spark.sql(f"SELECT n, {ANSWERS.replace('fibula_', form).format(repr(snapshot.name))} FROM flows")
    assert [kind for _, kind in found.dtypes] == ["bigint", "string", "bigint", "string"]
    found.write.option("compression", "none").parquet(str(tmp_path / "answers"))
    shared.compare(pyarrow.parquet.read_table(tmp_path / "answers").sort_by("n"), expected)
    executors = mapped("/" + snapshot.name)
    assert len(executors) == 2, executors
    # Of one file: an executor has one mapping of it, whatever the number of its tasks and functions.
    assert {len(files) for files in executors.values()} == {1}, executors


def mapped(ending: str) -> dict[str, set[str]]:
    """The files with this ending that Spark's executors map."""
    found: dict[str, set[str]] = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if b"CoarseGrainedExecutorBackend" in (process / "cmdline").read_bytes():
                lines = (process / "maps").read_text().splitlines()
                found[process.name] = {line.split()[-1] for line in lines if line.endswith(ending)}
        except OSError:  # it has ended
            continue
    return found


def test_rows_of_flink(snapshot: Path, csv: Path, expected: pyarrow.Table, tmp_path: Path) -> None:
    script, out = tmp_path / "rows.sql", tmp_path / "answers"
    name = "'" + str(snapshot) + "'"
    statement = f"INSERT INTO answers SELECT n, {ANSWERS.format(name)} FROM flows;\n"
    script.write_text(flink_tables(csv, out) + statement, encoding="utf-8")
    shared.flink(script)
    shared.compare(flink_answers(out), expected)


@pytest.fixture
def two(tmp_path: Path) -> list[str]:
    """Two tables with other answers."""
    paths = []
    for at in range(2):
        paths.append(str(tmp_path / f"two{at}.fib"))
        fibula.Table.build([("10.0.0.0/8", {"v": at}), ("2001:db8::/32", {"v": at + 10})]).save(paths[-1])
    return paths


CASES = ["10.0.0.1", "2001:db8::1", "192.0.2.1", "no", None, "[2001:db8::1]:53"]


def expected_of(two: list[str]) -> list[tuple[int, int | None]]:
    """The number of a row, and its answer from the table that the row names: none, or one of both."""
    found = []
    for n in range(1000):
        table, case = [*two, None][n % 3], CASES[n % len(CASES)]
        number = {"10.0.0.1": 0, "2001:db8::1": 10, "[2001:db8::1]:53": 10}.get(case or "")
        found.append((n, None if table is None or number is None else number + n % 3))
    return found


@of_both_forms
def test_spark_takes_a_column_of_tables(form: str, spark: SparkSession, two: list[str]) -> None:
    rows = [(n, [*two, None][n % 3], CASES[n % len(CASES)]) for n in range(1000)]
    spark.createDataFrame(rows, "n long, t string, ip string").createOrReplaceTempView("varying")
    found = spark.sql(f"SELECT n, {form}number(t, ip, 'v') FROM varying ORDER BY n").collect()
    assert [tuple(row) for row in found] == expected_of(two)


def test_flink_takes_a_column_of_tables(two: list[str], tmp_path: Path) -> None:
    cells = [[n, [*two, None][n % 3], CASES[n % len(CASES)]] for n in range(1000)]
    lines = [",".join("\\N" if cell is None else str(cell) for cell in row) for row in cells]
    (tmp_path / "varying.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    script = tmp_path / "varying.sql"
    options = f"'connector' = 'filesystem', 'format' = 'csv', 'path' = 'file://{tmp_path}/varying.csv'"
    script.write_text(
        f"{CREATE}CREATE TABLE v (n BIGINT, t STRING, ip STRING) WITH ({options}, 'csv.null-literal' = '\\N');\n"
        "SELECT n, fibula_number(t, ip, 'v') FROM v ORDER BY n;\n",
        encoding="utf-8",
    )
    found = [line.split(" | ") for line in shared.flink(script)]
    assert [(int(n), None if v == "NULL" else int(v)) for n, v in found] == expected_of(two)


@contextmanager
def replaced(path: Path, versions: list[str]) -> Iterator[Callable[[], int]]:
    """A file that is another one every few milliseconds. Gives how often it was replaced."""
    ends, count = threading.Event(), 0

    def run() -> None:
        nonlocal count
        while not ends.wait(0.05):
            part = path.with_name("part")
            shutil.copy(versions[count % 2], part)
            part.replace(path)
            count += 1

    shutil.copy(versions[1], path)
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield lambda: count
    finally:
        ends.set()
        thread.join()


@of_both_forms
def test_spark_while_a_table_is_replaced(form: str, spark: SparkSession, two: list[str], tmp_path: Path) -> None:
    path = tmp_path / "replaced.fib"
    rows = 16_000_000
    with replaced(path, two) as count:
        query = f"SELECT v, count(*) FROM (SELECT {form}number('{path}', concat('10.0.0.', id % 256), 'v') AS v"
        found = dict(map(tuple, spark.sql(f"{query} FROM range({rows})) GROUP BY v").collect()))
        assert count() > 5
    assert sorted(found) == [0, 1] and sum(found.values()) == rows, found
    shutil.copy(two[1], tmp_path / "part")
    (tmp_path / "part").replace(path)
    sql = f"SELECT DISTINCT {form}number('{path}', concat('10.0.0.', id % 256), 'v') FROM range(1000)"
    while [tuple(row) for row in spark.sql(sql).collect()] != [(1,)]:
        pass  # for ever, if a task goes on with the old one


def test_flink_while_a_table_is_replaced(two: list[str], tmp_path: Path) -> None:
    path, script = tmp_path / "replaced.fib", tmp_path / "replaced.sql"
    rows = 8_000_000
    # Without a bound it is not for batches, and by itself it makes 10,000 rows a second.
    made = f"'connector' = 'datagen', 'number-of-rows' = '{rows}', 'rows-per-second' = '100000000',"
    made += " 'fields.n.kind' = 'sequence', 'fields.n.start' = '1'"
    script.write_text(
        CREATE + f"CREATE TABLE made (n BIGINT) WITH ({made}, 'fields.n.end' = '{rows}');\n"
        f"SELECT v, count(*) FROM (SELECT fibula_number('{path}', 167772160 + n, 'v') AS v FROM made) GROUP BY v;\n",
        encoding="utf-8",
    )
    with replaced(path, two) as count:
        found = dict(tuple(map(int, line.split(" | "))) for line in shared.flink(script))
        assert count() > 5
    assert sorted(found) == [0, 1] and sum(found.values()) == rows, found


@of_both_forms
def test_types_of_addresses_in_spark(form: str, spark: SparkSession, two: list[str]) -> None:
    for address, found in {
        "167772161": 0, "167772161L": 0, "-1": None, "4294967296L": None, "X'0A000001'": 0, "X'0A0000'": None,
        "X'20010db8000000000000000000000001'": 10, "X'00000000000000000000FFFF0A000001'": 0, "'::ffff:10.0.0.1'": 0,
        "CAST(NULL AS STRING)": None, "NULL": None, "CAST(10 AS TINYINT)": None, "CAST(10 AS SMALLINT)": None,
        "'10.0.0.1' COLLATE UTF8_LCASE": 0, "CAST('10.0.0.1' AS VARCHAR(20))": 0,
        "concat(repeat(' ', 300), '10.0.0.1')": 0,
    }.items():  # fmt: skip
        call = f"{form}number('{two[0]}', {{}}, 'v')"
        assert spark.sql(f"SELECT {call.format(address)}").first()[0] == found, address
        # As above Spark computes it while it plans; of a column it does so row by row, with the types of the column.
        rows = f"(SELECT {address} AS a, id FROM range(5)) WHERE id > 1"
        assert [row[0] for row in spark.sql(f"SELECT {call.format('a')} FROM {rows}").collect()] == [found] * 3, address


def test_types_of_addresses_in_flink(two: list[str], tmp_path: Path) -> None:
    cases = {
        "167772161": "0", "CAST(167772161 AS BIGINT)": "0", "-1": "NULL", "x'0A000001'": "0", "x'0A0000'": "NULL",
        "x'20010db8000000000000000000000001'": "10", "'::ffff:10.0.0.1'": "0", "CAST(NULL AS STRING)": "NULL",
    }  # fmt: skip
    script = tmp_path / "types.sql"
    calls = ", ".join(f"fibula_number('{two[0]}', {address}, 'v')" for address in cases)
    script.write_text(f"{CREATE}SELECT {calls};\n", encoding="utf-8")
    assert shared.flink(script)[0].split(" | ") == list(cases.values())


ERRORS = {
    "fibula_value('/gone.fib', ip, 'v')": "/gone.fib: there is no such file",
    "fibula_value('{0}', ip, 'x')": 'the table has no column "x", but v',
    "fibula_value('{1}', ip, 'v')": "text.csv: ",
    "fibula_number('{2}', ip, 'site')": 'the column "site" has no integers: take its value as text',
}


@pytest.mark.parametrize("call", ERRORS)
def test_errors_are_the_hosts(call: str, spark: SparkSession, two: list[str], snapshot: Path, tmp_path: Path) -> None:
    (tmp_path / "text.csv").write_text("prefix,v\n10.0.0.0/8,1\n")
    sql = call.format(two[0], tmp_path / "text.csv", snapshot)
    for form in FORMS.values():
        query = sql.replace("fibula_", form)
        with pytest.raises(Exception, match=re.escape("fibula.FibulaException: ")) as error:
            spark.sql(f"SELECT {query} FROM (SELECT concat('10.0.0.', id) AS ip FROM range(10))").collect()
        assert ERRORS[call] in str(error.value)
    script = tmp_path / "error.sql"
    script.write_text(f"{CREATE}SELECT {sql} FROM (VALUES ('10.0.0.1')) v(ip);\n", encoding="utf-8")
    with pytest.raises(AssertionError, match=re.escape("fibula.FibulaException: ")) as error:
        shared.flink(script)
    assert ERRORS[call] in str(error.value)


@pytest.mark.parametrize(
    ("call", "reason"),
    {
        "value('t', ip)": "it has 3 arguments: value(table, address, column)",
        "prefix('t', ip, 'v')": "it has 2 arguments: prefix(table, address)",
        "prefix('t', 1.5)": "addresses are text, 4 or 16 bytes, or integers, not decimal(2,1): cast them",
        "value('t', ip, 7)": "the table and the column are texts",
        "values('t', ip)": "fibula.values",
    }.items(),
)
def test_spark_refuses_a_call_of_the_catalog_before_it_runs(call: str, reason: str, spark: SparkSession) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException) as error:
        spark.sql(f"SELECT fibula.{call} FROM (SELECT '10.0.0.1' AS ip)")
    assert reason in str(error.value).replace("`", "")


def test_spark_plans_with_the_functions_of_the_catalog(spark: SparkSession, two: list[str]) -> None:
    import pyspark.sql.functions as F

    names = spark.sql("SHOW USER FUNCTIONS IN fibula").collect()
    assert {row[0] for row in names if "." in row[0]} == {"fibula.number", "fibula.prefix", "fibula.value"}
    rows = spark.range(1000).select("id", F.concat(F.lit("10.0.0."), F.col("id") % 256).alias("ip"))
    with_value = rows.withColumn("v", F.call_function("fibula.value", F.lit(two[1]), "ip", F.lit("v")))

    def plan(frame: DataFrame) -> str:
        return frame._jdf.queryExecution().optimizedPlan().toString()

    frame = with_value.join(rows.withColumnRenamed("ip", "other"), "id").where("v = '1'")
    assert frame.count() == 1000
    assert plan(frame).index("Join") < plan(frame).index("fibula.value"), "the filter is below the join"
    assert "fibula.value" in plan(with_value)
    assert "fibula.value" not in plan(with_value.select("id")), "not needed, so left out"
    # The call in the list of results is that of the groups.
    call = f"fibula.number('{two[1]}', concat('10.0.0.', id), 'v')"
    found = spark.sql(f"SELECT {call}, count(*) FROM range(300) GROUP BY {call} ORDER BY 1 NULLS LAST").collect()
    assert [tuple(row) for row in found] == [(1, 256), (None, 44)]


@pytest.mark.parametrize("option", ["spark.sql.codegen.wholeStage=false", "spark.sql.codegen.factoryMode=NO_CODEGEN"])
def test_spark_without_compiled_code(option: str, spark: SparkSession, two: list[str]) -> None:
    name, value = option.split("=")
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    try:
        calls = f"fibula.number('{two[1]}', ip, 'v'), fibula.value('{two[1]}', ip, 'v'), fibula.prefix('{two[1]}', ip)"
        query = f"SELECT {calls} FROM (SELECT concat('10.0.0.', id) AS ip FROM range(300)) ORDER BY 1 NULLS LAST"
        found = [tuple(row) for row in spark.sql(query).collect()]
    finally:
        spark.conf.unset("spark.sql.codegen.wholeStage")
        spark.conf.unset(name) if before is None else spark.conf.set(name, before)
    assert found == [(1, "1", "10.0.0.0/8")] * 256 + [(None, None, None)] * 44


def test_flink_sends_a_file_by_its_cache(two: list[str], tmp_path: Path) -> None:
    script = tmp_path / "cached.sql"
    script.write_text(
        f"SET 'pipeline.cached-files' = 'name:networks.fib,path:{two[1]}';\n{CREATE}"
        "SELECT fibula_number('networks.fib', ip, 'v') FROM (VALUES ('10.0.0.1')) v(ip);\n",
        encoding="utf-8",
    )
    assert shared.flink(script) == ["1"]


def page(language: str) -> list[str]:
    """The examples of the page in this language."""
    return re.findall(rf"^```{language}\n(.*?)^```", shared.PAGE.read_text(encoding="utf-8"), re.S | re.M)


@pytest.fixture
def networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the page's examples run, with its table."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "networks.csv").write_text(page("csv")[0], encoding="utf-8")
    rows = [line.split(",") for line in page("csv")[0].splitlines()[1:]]
    table = [(prefix, {"site": site, "vlan": int(vlan) if vlan else None}) for prefix, site, vlan in rows]
    fibula.Table.build(table).save(tmp_path / "networks.fib")
    return tmp_path


def comments(example: str, mark: str) -> list[str]:
    return [line.strip().removeprefix(f"{mark} ") for line in example.splitlines() if line.strip().startswith(f"{mark} ")]


@pytest.mark.parametrize("machine", shared.javas())
def test_the_pages_example_of_java(machine: str, networks: Path) -> None:
    [example] = page("java")
    imports = "".join(line + "\n" for line in example.splitlines() if line.startswith("import "))
    body = example.replace(imports, "")
    source = networks / "Example.java"
    main = "public static void main(String[] arguments) throws Exception {\n"
    source.write_text(f"{imports}class Example {{ {main}{body}}} }}\n", encoding="utf-8")
    os.system(f"javac --release 8 -Xlint:-options -cp {shared.JAR} -d {networks} {source}")
    assert shared.java("Example", machine=machine, libraries=str(networks)).splitlines() == comments(body, "//")


def test_the_pages_examples_of_spark(spark: SparkSession, networks: Path) -> None:
    names: dict[str, Any] = {"spark": spark}
    for example in page("python"):
        # The folder of Spark's virtual machine is not this one.
        example = example.replace('addFile("networks.fib")', f'addFile("{networks}/networks.fib")')
        exec(compile(example, "docs/jvm.md", "exec"), names)
        found = names.pop("found").collect()
        lines = [" | ".join("NULL" if cell is None else str(cell) for cell in row) for row in found]
        assert lines == comments(example, "#")


def test_the_pages_example_of_flink(networks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [example] = page("sql")
    script = networks / "example.sql"
    script.write_text(re.sub(r"\nUSING JAR '[^']*'", "", example), encoding="utf-8")
    assert shared.flink(script) == comments(example, "--")
