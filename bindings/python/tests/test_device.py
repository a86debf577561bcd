"""Lookups on a device: the answers are those of the CPU, and what looked up is counted."""

from __future__ import annotations

import ipaddress
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fibula
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from conftest import nested

# Two columns of so many are more than one piece.
ROWS = 600_000
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module", params=["cpu", "opencl:0"])
def device(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if name != "cpu" and name not in dict(fibula.devices()):
        pytest.skip(f"{name} is not here: {'; '.join(fibula.devices().absent)}")
    return name


@pytest.fixture(scope="module")
def large() -> fibula.Table:
    """Routes of both families in which most random addresses lie, too."""
    rows = nested(2, 2_000)
    rows.update({f"{n}.0.0.0/{5 + n % 4}": {"asn": n, "name": f"net{n % 7}"} for n in range(0, 224, 8)})
    rows.update({f"2001:{n:x}::/{20 + n % 30}": {"asn": n, "name": None} for n in range(0, 65536, 4096)})
    return fibula.Table.build(rows)


@pytest.fixture(scope="module")
def numbers() -> Any:
    return np.random.default_rng(7).integers(0, 2**32, ROWS, dtype=np.uint32)


@pytest.fixture(scope="module")
def texts(numbers: Any) -> list[str | None]:
    """Both families, nulls, empty cells, and what is no address."""
    found: list[str | None] = []
    for row, number in enumerate(numbers.tolist()):
        if row % 3 == 0:
            found.append(f"2001:{number >> 16:x}:{number & 0xFFFF:x}::{row & 0xFFFF:x}")
        elif row % 401 == 0:
            found.append([None, "", "none", "10.0.0.300", "::ffff:10.0.0.1"][row % 5])
        else:
            found.append(f"{number >> 24}.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}")
    return found


def same(table: fibula.Table, device: str, column: Any, add: list[str], **options: Any) -> fibula.Columns:
    """Looks up with and without the device, and compares."""
    expected = table.lookup_many(column, add, **options)
    found = table.lookup_many(column, add, device=device, **options)
    assert pa.table(found).equals(pa.table(expected))
    for chunks, others in zip(pa.table(found).columns, pa.table(expected).columns, strict=True):
        assert [len(chunk) for chunk in chunks.chunks] == [len(chunk) for chunk in others.chunks]
    for name in ("matched", "unmatched", "unparsable", "empty", "first_unparsable"):
        assert getattr(found, name) == getattr(expected, name), name
    assert (found.device_failures, found.device_error) == (0, None)
    assert (expected.on_device, expected.on_cpu) == (0, 0)
    return found


def addresses_in(found: fibula.Columns) -> int:
    return found.matched + found.unmatched


def test_many_rows_of_text(large: fibula.Table, texts: list[str | None], device: str) -> None:
    found = same(large, device, pa.array(texts), ["prefix", "asn", "name"], default={"asn": 7, "name": "nowhere"})
    assert found.empty > 200 and found.unparsable > 200 and found.matched > ROWS // 2
    # Once for the length of the prefix, once for the values.
    assert (found.on_device, found.on_cpu) == (2 * addresses_in(found), 0)


def test_forms_of_values(large: fibula.Table, texts: list[str | None], device: str) -> None:
    column = pa.array(texts[:200_000])
    found = same(large, device, column, ["covering", "asn"], text="plain")
    assert (found.on_device, found.on_cpu) == (addresses_in(found), 0)
    found = same(large, device, column.dictionary_encode(), ["prefix", "name"], prefix_form="binary", text="plain")
    assert found.on_device > 200_000


COLUMNS: dict[str, Callable[[Any, list[str | None]], Any]] = {
    "list": lambda _, texts: texts[:100_000],
    "large_string": lambda _, texts: pa.array(texts[:100_000], pa.large_string()),
    "string_view": lambda _, texts: pa.array(texts[:100_000], pa.string_view()),
    "slice": lambda _, texts: pa.array(texts[:120_000]).slice(11_111, 90_000),
    "polars": lambda _, texts: pl.Series(texts[:100_000]),
    "pandas": lambda _, texts: pd.Series(texts[:100_000]),
    "numbers": lambda numbers, _: numbers,
    "numbers of 64 bits": lambda numbers, _: numbers.astype(np.uint64) * np.uint64(2),
    "numbers and nulls": lambda numbers, _: pa.array(numbers[:100_000], mask=numbers[:100_000] % 3 == 0),
    "rows of 4": lambda numbers, _: numbers.astype(">u4").view(np.uint8).reshape(-1, 4),
    "rows of 16": lambda numbers, _: np.repeat(numbers, 4).view(np.uint8).reshape(-1, 16)[:100_000],
    "binary": lambda numbers, _: pa.array([n.to_bytes(4, "big") if n % 2 else None for n in numbers[:100_000].tolist()]),
    "lists": lambda _, texts: pa.array([texts[at : at + at % 5] for at in range(60_000)]),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_of_every_kind(
    large: fibula.Table, numbers: Any, texts: list[str | None], device: str, kind: str
) -> None:
    column = COLUMNS[kind](numbers, texts)
    found = same(large, device, column, ["asn", "prefix"])
    assert found.on_device > 50_000 and found.on_cpu < 8192 * 4


@pytest.mark.parametrize("of_numbers", [False, True])
def test_short_chunks_are_looked_up_together(
    large: fibula.Table, numbers: Any, texts: list[str | None], device: str, of_numbers: bool
) -> None:
    whole = pa.array(numbers) if of_numbers else pa.array(texts)
    lengths = [5_000, 0, 1, 30_000, 0, 15_000] * 2
    starts = np.cumsum([0, *lengths])
    short = pa.chunked_array([whole.slice(start, length) for start, length in zip(starts, lengths)])
    add = ["covering", "asn", "name", "prefix"]
    found = same(large, device, short, add)
    assert (found.on_device, found.on_cpu) == (addresses_in(found), 0)
    assert [len(chunk) for chunk in pa.table(found)["asn"].chunks] == lengths
    # Long ones, of which each is cut, beside short ones.
    more = [whole.slice(0, 5_000), pa.concat_arrays([whole, whole]), whole.slice(9, 20_000), whole.slice(7, 10_000)]
    found = same(large, device, pa.chunked_array(more), ["asn"])
    assert found.on_device > 2 * ROWS - 20_000 and found.on_cpu < 8192
    column = large.lookup_many(short, add="name", device=device)
    assert list(column) == large.lookup_many(short, add="name").to_pylist()


def test_a_bad_address_is_found_in_its_row(large: fibula.Table, texts: list[str | None], device: str) -> None:
    good = pa.array([text for text in texts if text and "300" not in text and text != "none"][:90_000])
    chunks = pa.chunked_array([good, pa.array(["10.0.0.1", "10.0.0.300"]), good])
    assert same(large, device, chunks, ["asn"]).first_unparsable == (90_001, "10.0.0.300")
    with pytest.raises(fibula.AddressError, match=r'row 90002, .*"10\.0\.0\.300"'):
        large.lookup_many(chunks, add="asn", strict=True, device=device)


def test_frames(large: fibula.Table, texts: list[str | None], device: str) -> None:
    frame = pa.table({"src": texts[:100_000], "dst": texts[100_000:200_000], "n": range(100_000)})
    counts: dict[str, dict[str, int]] = {}
    found = large.annotate(frame, ["src", "dst"], ["prefix", "asn"], device=device, counts=counts)
    assert found.equals(large.annotate(frame, ["src", "dst"], ["prefix", "asn"]))
    for of_column in counts.values():
        lookups = 2 * (of_column["matched"] + of_column["unmatched"])
        assert (of_column["on_device"], of_column["on_cpu"], of_column["device_failures"]) == (lookups, 0, 0)
    rows: Any
    for rows in (pl.DataFrame(frame), frame.to_pandas(), pl.DataFrame(frame).lazy()):
        expected = large.annotate(rows, ["src"], ["asn", "name"])
        found = large.annotate(rows, ["src"], ["asn", "name"], device=device)
        if isinstance(rows, pl.LazyFrame):
            expected, found = expected.collect(), found.collect()
        assert found.equals(expected)
    assert "on_device" not in annotated_counts(large, frame)


def annotated_counts(table: fibula.Table, frame: Any) -> dict[str, int]:
    counts: dict[str, dict[str, int]] = {}
    table.annotate(frame, "src", "asn", counts=counts)
    return counts["src"]


def test_short_columns_go_to_the_cpu(small: fibula.Table, device: str) -> None:
    found = same(small, device, ["10.20.0.1", None, "x", "2001:db8::1"], ["site", "prefix"])
    assert (found.on_device, found.on_cpu) == (0, 4)
    assert same(small, device, [], ["site"]).on_cpu == 0
    column = small.lookup_many(["10.20.0.1"], add="vlan", device=device)
    assert isinstance(column, fibula.Column) and column.to_pylist() == [20]


def test_tables_without_routes_and_without_a_kernel(numbers: Any, texts: list[str | None], device: str) -> None:
    column = pa.array(texts[:100_000])
    empty = fibula.Table.build({"prefix": [], "asn": []}, key="prefix", allow_empty=True)
    found = same(empty, device, column, ["asn", "prefix"])
    assert (found.matched, found.on_device) == (0, 0) and found.on_cpu == 2 * found.unmatched
    one = fibula.Table.build({"0.0.0.0/1": {"asn": 1}})
    found = same(one, device, column, ["asn"])
    assert found.on_cpu > 30_000 and found.on_device == addresses_in(found) - found.on_cpu
    rows = nested(5, 300)
    # dxr has no kernel, so runmap is compiled for the device.
    other = fibula.Table.build(rows, engine="dxr18")
    assert other.stats()["v4"]["engine"] == "dxr18"
    found = same(other, device, numbers, ["asn", "prefix"])
    assert (found.on_device, found.on_cpu) == (2 * ROWS, 0)


def test_a_stored_table(large: fibula.Table, numbers: Any, tmp_path: Path, device: str) -> None:
    large.save(tmp_path / "table.fib")
    found = same(fibula.Table.open(tmp_path / "table.fib"), device, numbers, ["asn"])
    assert (found.on_device, found.on_cpu) == (ROWS, 0)


def test_threads_share_a_device_and_count_their_own(large: fibula.Table, numbers: Any, device: str) -> None:
    failed: list[str] = []
    expected = large.lookup_many(numbers, add=["asn"]).to_pyarrow()

    def look(count: int) -> None:
        try:
            for _ in range(4):
                found = large.lookup_many(numbers[:count], add=["asn"], device=device)
                assert found.to_pyarrow().equals(expected.slice(0, count))
                assert (found.on_device, found.on_cpu) == ((count, 0) if count > 8192 else (0, count))
        except BaseException as error:
            failed.append(repr(error))

    threads = [threading.Thread(target=look, args=[count]) for count in (1000, 200_000, 400_000, ROWS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed


def test_what_is_no_device(small: fibula.Table) -> None:
    for name in ("gpu", "", "opencl", "opencl:x", "CPU"):
        with pytest.raises(fibula.DeviceError, match=r"is no device: use opencl:0.*fibula\.devices\(\) lists"):
            small.lookup_many(["10.0.0.1"], device=name)
    with pytest.raises(fibula.DeviceError, match=r"opencl"):
        small.lookup_many(["10.0.0.1"], device="opencl:99")
    with pytest.raises(fibula.DeviceError, match=r"cuda"):
        small.annotate(pa.table({"ip": ["10.0.0.1"]}), device="cuda:99")
    with pytest.raises(TypeError, match=r"device is the name of one, such as 'opencl:0', not a int"):
        small.lookup_many(["10.0.0.1"], device=0)  # type: ignore[call-overload]
    with pytest.raises(fibula.DeviceError):
        small.annotate(pl.LazyFrame({"ip": ["10.0.0.1"]}), "ip", device="gpu")
    assert issubclass(fibula.DeviceError, fibula.FibulaError)


LISTED = """
import fibula
found = fibula.devices()
assert isinstance(found, list) and found.absent and not [name for name, _ in found if name.startswith("opencl")], found
assert any(why.startswith("opencl: ") and "install" in why for why in found.absent), found
assert "absent" in repr(found)
try:
    fibula.Table.build({"10.0.0.0/8": {"n": 1}}).lookup_many(["10.0.0.1"], device="opencl:0")
except fibula.DeviceError as error:
    assert "install" in str(error), error
else:
    raise AssertionError("a device without a driver")
"""


def test_a_driver_that_is_absent(tmp_path: Path) -> None:
    # Where the loader of OpenCL is installed, it finds no driver in this folder.
    environment = {**os.environ, "OCL_ICD_VENDORS": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", LISTED], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


FAILING = """
import gc, warnings
import fibula
import numpy

table = fibula.Table.build({"10.0.0.0/8": {"n": 1}, "0.0.0.0/2": {"n": 2}})
column = numpy.random.default_rng(1).integers(0, 2**32, 1_000_000, dtype=numpy.uint32)
expected = table.lookup_many(column, add="n").to_pylist()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert table.lookup_many(column, add="n", device="cuda:0").to_pylist() == expected
    found = table.lookup_many(column, add=["n"], device="cuda:0")
assert found["n"].to_pylist() == expected
FAILS = %r
assert len(caught) == (2 if FAILS else 0), caught
for warning in caught:
    assert warning.category is fibula.DeviceWarning and warning.filename == "<string>", warning
    assert str(warning.message).startswith("cuda:0: ") and "the CPU looked them up" in str(warning.message)
if FAILS:
    assert found.device_failures > 0 and found.on_cpu > 0 and found.device_error.startswith("cuda:0: "), found
else:
    assert (found.on_device, found.on_cpu, found.device_failures) == (1_000_000, 0, 0), found
# The driver ends the program if something of the table is left on the device.
del table
gc.collect()
print("done")
"""


@pytest.mark.parametrize("fails", [False, True])
def test_a_device_that_fails_is_seen(tmp_path: Path, fails: bool) -> None:
    """On the driver of CUDA that computes on the CPU, of the tests of `fibula-accel`."""
    compiler = shutil.which("cc")
    if sys.platform != "linux" or compiler is None:
        pytest.skip("the driver needs Linux and a compiler of C")
    driver = ROOT / "crates/accel/tests/driver/cuda.c"
    how = ["-std=gnu11", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing"]
    kernels = str(ROOT / "crates/accel/src/kernels")
    library = tmp_path / "libcuda.so"
    subprocess.run([compiler, *how, "-I", kernels, driver, "-o", library, "-ldl", "-lpthread"], check=True)
    loads = [sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", library]
    if subprocess.run(loads, capture_output=True).returncode != 0:
        pytest.skip("the compiler makes no libraries for this Python: it runs in an emulator")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path), **({"DRIVER_FAILS": "3"} if fails else {})}
    program = FAILING % fails
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_an_address_of_every_boundary(table: fibula.Table, addresses: list[str], device: str) -> None:
    """Both ends of every prefix, often enough for the device."""
    column = pa.array([text for text in addresses for _ in range(100_000 // len(addresses) + 1)])
    found = same(table, device, column, ["prefix", "asn", "name"])
    assert found.on_device == 2 * len(column)
    assert len({ipaddress.ip_address(text).version for text in addresses}) == 2
