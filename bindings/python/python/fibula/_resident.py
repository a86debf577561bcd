"""Addresses that lie on a device: whose memory it is, and a table there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeVar, overload

from fibula import _columns
from fibula import _fibula as native
from fibula._fibula import Column, ColumnError, Columns

Out = TypeVar("Out")


class _Array(NamedTuple):
    """An array in a device's memory."""

    place: int
    shape: tuple[int, ...]
    kind: str
    is_read_only: bool
    stream: int | None


def _array(what: str, array: object, is_of_program: bool) -> _Array:
    protocol = "__array_interface__" if is_of_program else "__cuda_array_interface__"
    given: Mapping[str, Any] | None = getattr(array, protocol, None)
    if given is None:
        raise TypeError(
            f"{what}: a {type(array).__name__} is no array on the device: it has no {protocol}, as arrays of"
            f" {'NumPy' if is_of_program else 'CuPy, PyTorch, Numba and JAX, and columns of cuDF,'} have"
        )
    shape, kind = tuple(given["shape"]), str(given["typestr"])
    place, is_read_only = given["data"]
    if given.get("mask") is not None:
        raise ValueError(f"{what}: an array with a mask: fill in its missing values first")
    strides = given.get("strides")
    if strides is not None:
        expected = int(kind[2:])
        for size, step in zip(reversed(shape), reversed(strides), strict=True):
            if size > 1 and step != expected:
                raise ValueError(f"{what}: an array with gaps, or with its rows in another order: make it contiguous")
            expected *= size
    return _Array(place or 0, shape, kind, is_read_only, given.get("stream"))


def _addresses(array: _Array) -> tuple[bool, bool]:
    """Whether they are of IPv6, and whether their bytes are in the order of the network."""
    match array.kind, array.shape:
        case ("<u4" | "<i4"), (_,):
            return False, False
        case ">u4", (_,):
            return False, True
        case "|u1", (_, 4):
            return False, True
        case "|u1", (_, 16):
            return True, True
        case _:
            raise TypeError(
                f"an array of {array.kind} and shape {array.shape} holds no addresses: they are uint32 for IPv4, or rows of 4 or"
                " 16 uint8, in the order of the network"
            )


class DeviceTable:
    """A table on a device, for addresses that lie there: nothing is copied. `Table.on_device` makes it.

    The memory belongs to the caller. Until a lookup is done, the array of addresses may not be written and `out` may not
    be used, except by work that comes before or after it in the same stream; neither may be freed, unless its library
    frees it in the order of the stream, as those of CuPy and PyTorch do.
    """

    def __init__(self, table: native.DeviceTable) -> None:
        self._native = table
        self._name, self._description = table.device()

    @property
    def device(self) -> str:
        """The name of the device."""
        return self._name

    @property
    def description(self) -> str:
        """What the device is, in the words of its driver."""
        return self._description

    @property
    def context(self) -> int | None:
        """The driver's context in which the table lies, `CUcontext` or `cl_context`, as a number. None for "cpu"."""
        return self._native.context()

    def __repr__(self) -> str:
        return f"<fibula.DeviceTable on {self._name}: {self._description}>"

    def rows(self, addresses: object, out: Out, *, stream: int | None = None) -> Out:
        """Writes for each address the number of its row into `out`, -1 where no prefix covers it, and returns `out`. The
        values of the rows are those of `values`: with `asn` as an array, `asn[out]` are the values of the addresses,
        because -1 is the last one.

        Both are arrays of the device, of any library with the CUDA array interface: CuPy, cuDF, PyTorch, Numba, JAX; for
        the device "cpu" of NumPy. Addresses are uint32 for IPv4, or rows of 4 or 16 uint8; `out` is int32 (or uint32,
        with 4294967295 in place of -1), as long as they are many. On a device of OpenCL use `rows_at`.

        The lookups are done in the order of `stream`, a number such as `cupy.cuda.get_current_stream().ptr`; without it,
        of the stream that the arrays name, or of the legacy default stream. The call does not wait for them.

        >>> import numpy
        >>> there = table.on_device("cpu")
        >>> rows = there.rows(numpy.array([167772161, 3221225985], "uint32"), numpy.empty(2, "int32"))
        >>> numpy.asarray(there.values("vlan", default=0))[rows]
        array([10,  0], dtype=uint32)
        """
        is_of_program = self._name == "cpu"
        given = _array("addresses", addresses, is_of_program)
        taken = _array("out", out, is_of_program)
        is_v6, is_network = _addresses(given)
        count = given.shape[0]
        if taken.kind not in ("<i4", "<u4") or len(taken.shape) != 1:
            raise TypeError(f"out is an array of int32, not of {taken.kind} and shape {taken.shape}")
        if taken.shape[0] != count:
            raise ValueError(f"{count:,} addresses, and room for {taken.shape[0]:,} rows in out")
        if taken.is_read_only:
            raise ValueError("out cannot be written: it is read-only")
        if stream is None:
            named = {array.stream for array in (given, taken) if array.stream is not None}
            if len(named) > 1:
                raise ValueError(f"the arrays belong to different streams, {sorted(named)}: name one with stream=")
            stream = named.pop() if named else None
        self.rows_at(6 if is_v6 else 4, given.place, taken.place, count, is_network=is_network, stream=stream)
        return out

    def rows_at(
        self,
        family: int,
        addresses: int,
        out: int,
        count: int,
        *,
        is_network: bool = False,
        stream: int | None = None,
    ) -> None:
        """`rows` for memory of which there is only the place: `count` addresses of the family, 4 or 6, at `addresses`, and
        room for as many int32 at `out`. They are addresses of CUDA, `cl_mem` of OpenCL in the `context`, or addresses
        of the program for "cpu"; `stream` is a `CUstream` or a `cl_command_queue`. Nothing of it can be checked: a
        wrong place is read and written as a right one.

        IPv4 addresses are uint32; IPv6 addresses are pairs of uint64, the lower half first. With `is_network` the bytes
        of both are in the order of the network.
        """
        if family not in (4, 6):
            raise ValueError(f"family is 4 or 6, not {family!r}")
        if not 0 <= count < 1 << 32:
            raise ValueError(f"{count:,} addresses: at most 4,294,967,295 at once")
        if min(addresses, out, stream or 0) < 0:
            raise ValueError("places and streams are not negative")
        self._native.rows_at(
            {
                "is_v6": family == 6,
                "addresses": addresses,
                "out": out,
                "count": count,
                "is_network": is_network,
                "stream": stream,
            }
        )

    def wait(self) -> None:
        """Waits until all lookups that were begun are done. A `DeviceError` if the device has failed."""
        self._native.wait()

    @overload
    def values(  # type: ignore[overload-overlap]  # a str is an iterable of str, but one name
        self, add: str, *, default: Mapping[str, float | str] | float | str | None = None, text: str = "dictionary"
    ) -> Column: ...

    @overload
    def values(
        self,
        add: Iterable[str] | None = None,
        *,
        default: Mapping[str, float | str] | float | str | None = None,
        text: str = "dictionary",
    ) -> Columns: ...

    def values(
        self,
        add: str | Iterable[str] | None = None,
        *,
        default: Mapping[str, float | str] | float | str | None = None,
        text: str = "dictionary",
    ) -> Column | Columns:
        """The values of the table's rows, by their numbers, and behind them what addresses without a prefix get: null,
        or the `default`. The options are those of `Table.lookup_many`; a prefix is none of a row's values.
        """
        asked = _columns.options(add, default, False, "text", text, None)
        for name in ("prefix", "covering"):
            if name in asked["add"]:
                raise ColumnError(f"{name!r} is not a value of rows: many prefixes may have the same row")
        found = self._native.values(asked)
        return _columns.one(found, add) if isinstance(add, str) else found


__all__ = ["DeviceTable"]
