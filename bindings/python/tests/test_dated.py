"""The tables of several dates, beside an oracle of plain Python for each date."""

from __future__ import annotations

import copy
import datetime
import ipaddress
import pickle
import random
import subprocess
from pathlib import Path
from typing import Any

import fibula
import numpy
import pandas
import polars
import pyarrow
import pytest
from conftest import Oracle, nested, probes

UTC = datetime.timezone.utc
SMALL = Path(__file__).parents[3] / "testdata/snapshots/three-days.fib"
DAYS = [datetime.datetime(2024, 5, day, tzinfo=UTC) for day in (1, 2, 3)]
TIMES = [
    datetime.datetime(2024, 4, 30, 23, 59, 59, tzinfo=UTC),
    *DAYS,
    datetime.datetime(2024, 5, 2, 23, 59, 59, tzinfo=UTC),
    datetime.datetime(2031, 1, 1, tzinfo=UTC),
]


@pytest.fixture(scope="module")
def small() -> fibula.DatedTable:
    return fibula.DatedTable.open(SMALL)


@pytest.fixture(scope="module")
def days() -> list[dict[str, dict[str, Any]]]:
    """Tables that share most of their prefixes."""
    source, before = random.Random(7), nested(3, 120)
    found = [before]
    for day in range(2):
        now = {prefix: values for prefix, values in found[-1].items() if source.random() < 0.8}
        now.update({prefix: {"asn": day, "name": "moved"} for prefix in now if source.random() < 0.1})
        now.update(nested(10 + day, 30))
        found.append(now)
    return found


@pytest.fixture(scope="module")
def tables(
    days: list[dict[str, dict[str, Any]]], tmp_path_factory: pytest.TempPathFactory, command: str
) -> fibula.DatedTable:
    folder = tmp_path_factory.mktemp("dated")
    sources = []
    for date, rows in zip(DAYS, days):
        path = folder / f"{date:%F}.fib"
        fibula.Table.build(rows).save(path)
        sources.append(str(path))
    output = folder / "all.fib"
    subprocess.run([command, "build", "--as-of", *sources, "-o", output], check=True)
    return fibula.DatedTable.open(output)


@pytest.fixture(scope="module")
def oracles(days: list[dict[str, dict[str, Any]]]) -> list[Oracle]:
    return [Oracle(rows) for rows in days]


def expected(oracles: list[Oracle], text: str, time: datetime.datetime) -> dict[str, Any] | None:
    before = [oracle for date, oracle in zip(DAYS, oracles) if date <= time]
    return before[-1].lookup(text) if before else None


def test_what_is_in_the_file(small: fibula.DatedTable) -> None:
    assert small.dates == DAYS and len(small) == 3 and small.path == SMALL
    assert small.columns == {"asn": int, "country": str}
    assert repr(small) == "<fibula.DatedTable three-days.fib: 3 tables from 2024-05-01 to 2024-05-03, columns ['asn', 'country']>"
    assert pickle.loads(pickle.dumps(small)).dates == DAYS
    assert copy.copy(small) is small and copy.deepcopy(small) is small


def test_every_boundary_at_every_time(
    days: list[dict[str, dict[str, Any]]], oracles: list[Oracle], tables: fibula.DatedTable
) -> None:
    addresses = sorted(set().union(*map(probes, days)))
    rows = [(text, time) for text in addresses for time in TIMES]
    wanted = [expected(oracles, text, time) for text, time in rows]
    assert sum(found is not None for found in wanted) > 1000
    assert [tables.lookup(text, time) for text, time in rows] == wanted
    texts, times = map(list, zip(*rows))
    for threads in (1, 2):
        found = tables.lookup_many(texts, times, ["prefix", "asn", "name"], threads=threads).to_pydict()
        for name, column in found.items():
            assert column == [None if want is None else want.get(name) for want in wanted], name


def test_one_of_the_tables_and_histories(
    days: list[dict[str, dict[str, Any]]], oracles: list[Oracle], tables: fibula.DatedTable
) -> None:
    for text in probes(days[0])[::7]:
        history = dict(tables.history(text))
        assert min(history) == DAYS[0]
        now = None
        for date in DAYS:
            now = history.get(date, now)
            assert now == expected(oracles, text, date) == tables.at(date).lookup(text), (text, date)


def test_a_long_column_in_pieces(small: fibula.DatedTable) -> None:
    rows = (1 << 20) + 70_000  # more than are looked up at once
    time = numpy.arange(rows) % 4 * 86_400 + 1_714_435_200  # from 2024-04-30 on
    address = numpy.full(rows, int(ipaddress.ip_address("10.1.2.3")), dtype=numpy.uint32)
    chunked = pyarrow.chunked_array([pyarrow.array(time[:3]), pyarrow.array(time[3:])])
    for times in (time, chunked):
        found = small.lookup_many(address, times, ["asn"], threads=2)
        assert (found.before, found.untimed, found.matched) == ((rows + 3) // 4, 0, rows - (rows + 3) // 4)
        wanted = numpy.array([0, 64501, 64503, 64501])[numpy.arange(rows) % 4]
        assert (pyarrow.chunked_array(found["asn"]).fill_null(0).to_numpy() == wanted).all()


@pytest.mark.parametrize(
    "times",
    [
        [datetime.datetime(2024, 5, 1), datetime.date(2024, 5, 2), None],
        ["2024-05-01", "2024-05-02T00:00:00+00:00", ""],
        [1714521600, 1714608000.5, float("nan")],
        numpy.array(["2024-05-01", "2024-05-02", "NaT"], dtype="datetime64[ns]"),
        numpy.array([1714521600.0, 1714608000.0, numpy.nan]),
        pandas.Series(pandas.to_datetime(["2024-05-01", "2024-05-02", None])),
        pandas.Series(pandas.to_datetime(["2024-05-01", "2024-05-02", None])).dt.tz_localize("UTC"),
        pandas.Series(["2024-05-01", "2024-05-02", None]),
        pandas.Series([1714521600.0, 1714608000.0, None]),
        polars.Series([datetime.datetime(2024, 5, 1), datetime.datetime(2024, 5, 2), None]),
        polars.Series([datetime.date(2024, 5, 1), datetime.date(2024, 5, 2), None]),
        pyarrow.array([1714521600, 1714608000, None], pyarrow.timestamp("s")),
        pyarrow.array(["2024-05-01", "2024-05-02", None]).dictionary_encode(),
    ],
)
def test_columns_of_times(small: fibula.DatedTable, times: object) -> None:
    found = small.lookup_many(["10.1.2.3"] * 3, times, ["asn"])
    assert found.to_pydict() == {"asn": [64501, 64503, None]}
    assert (found.before, found.untimed, found.first_untimed) == (0, 1, None)


EIGHT = [20240501, 20240502, 20241301]  # the last is no date, so seconds since 1970
NANOSECONDS = [1714521600e9, 1714608000e9, -1.5]


@pytest.mark.parametrize(
    "times",
    [
        EIGHT,
        [str(number) for number in EIGHT],
        [f"{number}.0" for number in EIGHT],
        list(map(float, EIGHT)),
        list(map(numpy.int64, EIGHT)),
        list(map(numpy.float64, EIGHT)),
        numpy.array(EIGHT),
        numpy.array(EIGHT, dtype=numpy.int32),
        numpy.array(EIGHT, dtype=numpy.uint32),
        numpy.array(EIGHT, dtype=float),
        pandas.Series(EIGHT),
        pandas.Series(EIGHT, dtype="Int64"),
        pandas.Series(EIGHT, dtype=object),
        polars.Series(EIGHT),
        pyarrow.array(EIGHT),
        pyarrow.array(EIGHT, pyarrow.uint64()),
        pyarrow.array(EIGHT, pyarrow.float64()),
        pyarrow.array(EIGHT).dictionary_encode(),
        NANOSECONDS,
        [f"{number:f}" for number in NANOSECONDS],
        list(map(numpy.float64, NANOSECONDS)),
        numpy.array(NANOSECONDS),
        pandas.Series(NANOSECONDS, dtype=object),
        pyarrow.array(NANOSECONDS),
    ],
)
def test_numbers_are_read_as_their_digits_in_every_column(small: fibula.DatedTable, times: object) -> None:
    found = small.lookup_many(["10.1.2.3"] * 3, times, ["asn"])
    assert found.to_pydict() == {"asn": [64501, 64503, None]}
    assert (found.before, found.untimed) == (1, 0)


def test_what_is_missing_in_lists_of_times(small: fibula.DatedTable) -> None:
    missing: list[Any] = [
        None, pandas.NA, pandas.NaT, float("nan"), numpy.float32("nan"), numpy.datetime64("NaT"), "", "\udcff", float("inf"), 1e30,
    ]  # fmt: skip
    day = numpy.datetime64("2024-05-02")
    for first in (day, day.astype("M8[ns]"), numpy.datetime64("2024-05-02T23:59:59.999"), numpy.uint32(1714608000)):
        times = [first, *missing]
        for column in (times, pandas.Series(times, dtype=object), numpy.array(times, dtype=object)):
            found = small.lookup_many(["10.1.2.3"] * len(times), column, "asn")
            assert found.to_pylist() == [64503] + [None] * len(missing)
        assert small.lookup("10.1.2.3", first) == small.lookup("10.1.2.3", "2024-05-02")
    found = small.lookup_many(["10.1.2.3"] * len(missing), missing)
    assert (found.before, found.untimed) == (0, len(missing))
    with pytest.raises(TypeError, match="bool is no time"):
        small.lookup_many(["10.1.2.3"], [numpy.bool_(True)])
    with pytest.raises(TypeError, match="list is no time"):
        small.lookup_many(["10.1.2.3"], [[1]])
    # What cannot be read as it was told to is named.
    strict = {"time_format": "rfc3339", "strict": True}
    for numbers in ([1714608000], numpy.array([1714608000]), numpy.array([1714608000], dtype=numpy.int32), numpy.array([1714608000.0])):
        with pytest.raises(fibula.FibulaError, match='row 1: "1714608000" is not a time'):
            small.lookup_many(["10.1.2.3"], numbers, **strict)  # type: ignore[call-overload]


def frames() -> list[Any]:
    columns = {"ts": ["2024-05-02", "2024-04-30", "soon"], "src": ["10.1.2.3", "10.1.2.3", "10.1.2.3"]}
    return [pyarrow.table(columns), polars.DataFrame(columns), pandas.DataFrame(columns, index=[7, 8, 9])]


@pytest.mark.parametrize("frame", frames())
def test_frames(small: fibula.DatedTable, frame: Any) -> None:
    counts: dict[str, dict[str, int]] = {}
    found = small.annotate(frame, "src", ["asn", "prefix"], time="ts", counts=counts)
    assert type(found) is type(frame)
    assert counts == {
        "src": {"rows": 3, "matched": 1, "unmatched": 0, "unparsable": 0, "empty": 0, "before": 1, "untimed": 1}
    }
    table = pyarrow.Table.from_pandas(found) if isinstance(found, pandas.DataFrame) else pyarrow.table(found)
    assert table.column("src_asn").to_pylist() == [64503, None, None]
    assert table.column("src_prefix").to_pylist() == ["10.1.2.0/24", None, None]
    with pytest.raises(fibula.ColumnError, match="no column 'when' for the times; it has: ts, src"):
        small.annotate(frame, "src", ["asn"], time="when")
    with pytest.raises(fibula.FibulaError, match="row 3: \"soon\" is not a time"):
        small.annotate(frame, "src", ["asn"], time="ts", strict=True)


def test_lazy_frames_and_relations(small: fibula.DatedTable) -> None:
    import duckdb

    _, frame, _ = frames()
    lazy = small.annotate(frame.lazy(), "src", ["asn"], time="ts")
    assert lazy.collect_schema().names() == ["ts", "src", "src_asn"]
    assert lazy.collect()["src_asn"].to_list() == [64503, None, None]
    assert lazy.filter(polars.col("src_asn") > 1).select("src_asn").collect().rows() == [(64503,)]
    with pytest.raises(fibula.ColumnError, match="no column 'when' for the times"):
        small.annotate(frame.lazy(), "src", ["asn"], time="when")
    connection = duckdb.connect()
    relation = connection.query("SELECT TIMESTAMP '2024-05-02 08:00:00' AS ts, '10.1.2.3' AS src")
    assert small.annotate(relation, "src", ["asn"], time="ts").fetchall()[0][2] == 64503


def test_what_is_wrong_is_said(small: fibula.DatedTable, tmp_path: Path) -> None:
    found = small.lookup_many(["10.1.2.3"] * 2, [None, "soon"], "asn", default=7)
    assert found.to_pylist() == [None, None]
    assert small.lookup_many(["10.1.2.3"] * 2, [None, "soon"]).first_untimed == (1, "soon")
    with pytest.raises(fibula.FibulaError, match="1 times for 2 addresses"):
        small.lookup_many(["10.1.2.3"] * 2, ["2024-05-01"])
    with pytest.raises(TypeError, match=r"a column of type Boolean holds no times"):
        small.lookup_many(["10.1.2.3"], pyarrow.array([True]))
    with pytest.raises(TypeError, match="bool is no time"):
        small.lookup_many(["10.1.2.3"], [True])
    with pytest.raises(TypeError, match="None is no time"):
        small.lookup("10.1.2.3", None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="times are auto, rfc3339"):
        small.lookup_many(["10.1.2.3"], ["2024-05-01"], time_format="days")
    with pytest.raises(ValueError, match="a time is 2024-05-01"):
        small.at("soon")
    with pytest.raises(fibula.SourceError, match="the first is that of 2024-05-01"):
        small.at(datetime.date(2024, 4, 30))
    with pytest.raises(fibula.SourceError, match="2024"):
        small.at("1999-01-01")
    with pytest.raises(FileNotFoundError):
        fibula.DatedTable.open(tmp_path / "none.fib")
    plain = tmp_path / "plain.fib"
    fibula.Table.build({"10.0.0.0/8": {"asn": 1}}).save(plain)
    with pytest.raises(fibula.SnapshotError):
        fibula.DatedTable.open(plain)
    (tmp_path / "half.fib").write_bytes(SMALL.read_bytes()[:-100])
    with pytest.raises(fibula.SnapshotError, match="half.fib"):
        fibula.DatedTable.open(tmp_path / "half.fib")
