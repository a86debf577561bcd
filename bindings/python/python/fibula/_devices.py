"""The devices of this machine, and what a device did of a lookup."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING

from fibula import _fibula as native

if TYPE_CHECKING:
    from fibula._fibula import Columns


class DeviceWarning(UserWarning):
    """A device failed during a lookup, and the CPU looked up in its place. The answers are right, and were slow."""


class DeviceList(list[tuple[str, str]]):
    """Devices, each with its name and its description; and `absent`, why a kind of them has none."""

    def __init__(self, found: list[tuple[str, str]], absent: list[str]) -> None:
        super().__init__(found)
        self.absent = absent

    def __repr__(self) -> str:
        absent = f", absent: {self.absent}" if self.absent else ""
        return f"<fibula.DeviceList {super().__repr__()}{absent}>"


def devices() -> DeviceList:
    """The accelerators on which columns can be looked up, as name and description. The names are those that the option
    `device` of `Table.lookup_many` and `Table.annotate` takes.

    `absent` of the result has a sentence for OpenCL and for CUDA if there is no driver or device of that kind, which
    says what to install. The device "cpu", threads of the program that look up as a device would, is for tests and not
    listed.

    >>> for name, description in fibula.devices():
    ...     print(f"{name}: {description}")  # doctest: +SKIP
    opencl:0: pthread-skylake-avx512-Intel(R) Xeon(R) Processor, driver 3.1+debian
    """
    return DeviceList(*native.devices())


def warn_of_failures(found: Columns, device: str | None) -> None:
    """Warns if the device failed, where the package was called."""
    if found.device_failures == 0:
        return
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "fibula":
        level, frame = level + 1, frame.f_back
    warnings.warn(
        f"{device}: {found.device_failures:,} parts failed, and the CPU looked them up: {found.device_error}",
        DeviceWarning,
        stacklevel=level,
    )
