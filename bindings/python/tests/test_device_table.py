"""Addresses that lie on a device: the rows are those of the table, in memory of NumPy, of OpenCL and of CUDA."""

from __future__ import annotations

import ipaddress
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import fibula
import numpy as np
import pyarrow as pa
import pytest

from conftest import probes

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def table(rows: dict[str, dict[str, Any]]) -> fibula.Table:
    """Without the shortest prefixes, so that some addresses have none."""
    return fibula.Table.build({prefix: row for prefix, row in rows.items() if int(prefix.rpartition("/")[2]) >= 8})


@pytest.fixture(scope="module")
def addresses(rows: dict[str, dict[str, Any]]) -> dict[int, list[str]]:
    """By family. Those of IPv4 that are written as IPv6 are not IPv4 addresses to a device."""
    found: dict[int, list[str]] = {4: [], 6: []}
    for text in probes(rows):
        address = ipaddress.ip_address(text)
        if getattr(address, "ipv4_mapped", None) is None:
            found[address.version].append(text)
    return found


def packed(texts: list[str]) -> Any:
    """Rows of bytes in the order of the network."""
    data = b"".join(ipaddress.ip_address(text).packed for text in texts)
    return np.frombuffer(data, np.uint8).reshape(len(texts), -1).copy()


def values(there: fibula.DeviceTable, rows: Any, name: str) -> list[Any]:
    """The values of rows; -1 is the last one."""
    column = there.values(name).to_pylist()
    return [column[row] for row in rows.tolist()]


def test_rows_are_those_of_the_table(table: fibula.Table, addresses: dict[int, list[str]]) -> None:
    there = table.on_device("cpu")
    assert (there.device, there.context) == ("cpu", None)
    assert "cpu" in repr(there)
    for texts in addresses.values():
        expected = table.lookup_many(texts, ["asn", "name"])
        for kind in ("int32", "uint32"):
            out = np.full(len(texts), 7, kind)
            assert there.rows(packed(texts), out) is out
            rows = out.view("int32")
            assert values(there, rows, "asn") == expected["asn"].to_pylist()
            assert values(there, rows, "name") == expected["name"].to_pylist()
        assert (out.view("int32") == -1).any() and len(set(out.tolist())) > 20


def test_numbers_in_either_order(table: fibula.Table, addresses: dict[int, list[str]]) -> None:
    there, texts = table.on_device("cpu"), addresses[4]
    expected = there.rows(packed(texts), np.empty(len(texts), "int32"))
    numbers = np.array([int(ipaddress.ip_address(text)) for text in texts], "uint32")
    for column in (numbers, numbers.view("int32"), numbers.astype(">u4")):
        assert (there.rows(column, np.empty(len(texts), "int32")) == expected).all()


def test_values_have_a_default_at_the_end(table: fibula.Table) -> None:
    there = table.on_device("cpu")
    both = pa.table(there.values(default={"asn": 0}))
    assert both.column_names == ["asn", "name"] and both.num_rows == table.stats()["rows"] + 1
    assert both.to_pylist()[-1] == {"asn": 0, "name": None}
    assert pa.types.is_dictionary(both.schema.field("name").type)
    assert there.values("name", text="plain").type == "Utf8"
    for name in ("prefix", "covering"):
        with pytest.raises(fibula.ColumnError, match="many prefixes may have the same row"):
            there.values(name)
    with pytest.raises(fibula.ColumnError, match="nothing"):
        there.values("nothing")


def test_a_family_without_routes(addresses: dict[int, list[str]]) -> None:
    there = fibula.Table.build({"10.0.0.0/8": {"asn": 1}}).on_device("cpu")
    rows = there.rows(packed(addresses[6]), np.empty(len(addresses[6]), "int32"))
    assert (rows == -1).all()
    assert there.rows(np.empty(0, "uint32"), np.empty(0, "int32")).size == 0
    there.wait()


def test_what_is_no_array_of_addresses(table: fibula.Table) -> None:
    there, out = table.on_device("cpu"), np.empty(4, "int32")
    good = np.zeros(4, "uint32")
    wrong: list[tuple[Any, Any, type[Exception], str]] = [
        ([1, 2, 3, 4], out, TypeError, "addresses: a list is no array on the device"),
        (good, [1, 2, 3, 4], TypeError, "out: a list is no array"),
        (np.zeros(4, "uint64"), out, TypeError, "of <u8 and shape .4,. holds no addresses"),
        (np.zeros((4, 8), "uint8"), out, TypeError, "holds no addresses"),
        (np.zeros(8, "uint32")[::2], out, ValueError, "gaps"),
        (np.zeros((16, 4), "uint8").T, out, ValueError, "gaps"),
        (good, np.empty(4, "int64"), TypeError, "out is an array of int32"),
        (good, np.empty((4, 1), "int32"), TypeError, "out is an array of int32"),
        (good, np.empty(3, "int32"), ValueError, "4 addresses, and room for 3 rows"),
        (good, np.empty(8, "int32")[::2], ValueError, "out: .*gaps"),
        (np.zeros(9, "uint8")[1:].view("uint32"), out[:2], fibula.DeviceError, "no multiple of 4"),
    ]
    for column, room, error, text in wrong:
        if error is fibula.DeviceError and column.__array_interface__["data"][0] % 4 == 0:
            continue
        with pytest.raises(error, match=text):
            there.rows(column, room)
    fixed = np.empty(4, "int32")
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        there.rows(good, fixed)
    with pytest.raises(ValueError, match="family is 4 or 6"):
        there.rows_at(5, 0, 0, 0)
    with pytest.raises(ValueError, match="at most"):
        there.rows_at(4, 0, 0, 1 << 32)
    with pytest.raises(ValueError, match="not negative"):
        there.rows_at(4, -1, 0, 1)
    with pytest.raises(fibula.DeviceError, match=r"devices\(\)"):
        table.on_device("gpu")


def test_it_outlives_the_table(rows: dict[str, dict[str, Any]]) -> None:
    there = fibula.Table.build(rows).on_device("cpu")
    first = next(prefix for prefix in rows if ":" not in prefix)
    found = there.rows(packed([first.partition("/")[0]]), np.empty(1, "int32"))
    assert found[0] >= 0


def test_in_a_queue_of_opencl(table: fibula.Table, addresses: dict[int, list[str]]) -> None:
    cl = pytest.importorskip("pyopencl")
    if "opencl:0" not in dict(fibula.devices()):
        pytest.skip("no OpenCL driver is here")
    there = table.on_device("opencl:0")
    context = cl.Context.from_int_ptr(there.context)
    queue = cl.CommandQueue(context)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    for family, texts in addresses.items():
        keys = cl.Buffer(context, flags, hostbuf=packed(texts))
        out = np.full(len(texts), 7, "int32")
        rows = cl.Buffer(context, flags, hostbuf=out)
        there.rows_at(family, keys.int_ptr, rows.int_ptr, len(texts), is_network=True, stream=queue.int_ptr)
        # Behind the lookups, in the same queue.
        cl.enqueue_copy(queue, out, rows)
        expected = table.on_device("cpu").rows(packed(texts), np.empty(len(texts), "int32"))
        assert (out == expected).all()
    there.wait()


CUDA = """
import ctypes, ipaddress, sys
import fibula
import numpy as np

cuda = ctypes.CDLL("libcuda.so")
def call(name, *arguments):
    assert getattr(cuda, name)(*arguments) == 0, name

class Array:
    '''An array of CUDA, as CuPy has it.'''
    def __init__(self, host, stream=None):
        self.host, self.stream, self.at = host, stream, ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(self.at), ctypes.c_size_t(host.nbytes))
        self.copy("cuMemcpyHtoDAsync_v2", self.at, host.ctypes.data_as(ctypes.c_void_p))
    def copy(self, name, to, source):
        call(name, to, source, ctypes.c_size_t(self.host.nbytes), ctypes.c_void_p(self.stream))
    @property
    def __cuda_array_interface__(self):
        about = {"shape": self.host.shape, "typestr": self.host.dtype.str, "data": (self.at.value, False),
                 "strides": None, "version": 3}
        return about if self.stream is None else {**about, "stream": self.stream}
    def get(self):
        # Behind all that its stream has.
        self.copy("cuMemcpyDtoHAsync_v2", self.host.ctypes.data_as(ctypes.c_void_p), self.at)
        call("cuStreamSynchronize", ctypes.c_void_p(self.stream))
        return self.host
    def free(self):
        call("cuMemFree_v2", self.at)

table = fibula.Table.build({"10.0.0.0/8": {"vlan": 1}, "10.20.0.0/16": {"vlan": 2}, "2001:db8::/32": {"vlan": 3}})
there = table.on_device("cuda:0")
context = ctypes.c_void_p(there.context)
call("cuCtxPushCurrent_v2", context)
stream = ctypes.c_void_p()
call("cuStreamCreate", ctypes.byref(stream), 1)
vlans = there.values("vlan", default=0).to_pylist()
v4 = np.array([0x0a000001, 0x0a140001, 0xc0000201], "uint32")
v6 = np.frombuffer(b"".join(ipaddress.ip_address(text).packed for text in ("2001:db8::1", "::1")), np.uint8).reshape(2, 16).copy()
for host, expected in ((v4, [1, 2, 0]), (v4.byteswap().view(np.uint8).reshape(3, 4), [1, 2, 0]), (v6, [3, 0])):
    for own in (None, stream.value):
        keys, out = Array(host, own), Array(np.full(len(host), 7, "int32"), own)
        assert there.rows(keys, out) is out
        assert [vlans[row] for row in out.get()] == expected, (host, own)
        there.wait()
        keys.free()
        out.free()
keys, out = Array(v4, stream.value), Array(np.full(3, 7, "int32"), 1)
try:
    there.rows(keys, out)
except ValueError as error:
    assert "different streams" in str(error), error
else:
    raise AssertionError("arrays of two streams")
call("cuStreamSynchronize", stream)
call("cuStreamSynchronize", None)
for array in (keys, out):
    array.free()
try:
    there.rows(v4, v4)
except TypeError as error:
    assert "__cuda_array_interface__" in str(error), error
else:
    raise AssertionError("an array of NumPy")
call("cuStreamDestroy_v2", stream)
call("cuCtxPopCurrent_v2", ctypes.byref(context))
del there, table
print("done")
"""


def test_in_a_stream_of_cuda(tmp_path: Path) -> None:
    """With the driver of the crate's tests, which computes on the CPU and ends the program at every mistake."""
    kernels, source = ROOT / "crates/accel/src/kernels", ROOT / "crates/accel/tests/driver/cuda.c"
    if sys.platform != "linux" or shutil.which("cc") is None or not source.exists():
        pytest.skip("a driver for the test needs the repository, Linux and a C compiler")
    if "FIBULA_TEST_EMULATOR" in os.environ:
        pytest.skip("the compiler makes no libraries for this Python: it runs in an emulator")
    options = ["-std=gnu11", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing"]
    library = tmp_path / "libcuda.so"
    subprocess.run(
        ["cc", *options, f"-I{kernels}", str(source), "-o", str(library), "-ldl", "-lpthread"], check=True, timeout=120
    )
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-c", CUDA], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert (run.returncode, run.stdout) == (0, "done\n"), run.stderr
