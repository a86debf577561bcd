"""Lookup schemes as pipelines: one lookup a clock. See docs/hardware.md."""

from .component import FAULTS, Pipeline
from .dxr import Dxr
from .planb import PlanB
from .runmap import Runmap
from .sail import SailB, SailL, SailU

__all__ = ["FAULTS", "SCHEMES", "Pipeline", "of_map"]

SCHEMES = {"sail-l": SailL, "sail-u": SailU, "sail-b": SailB, "planb": PlanB, "dxr": Dxr, "runmap": Runmap}


def of_map(tables, fault=None):
    """The pipeline for exported tables, with memories as large as these."""
    return SCHEMES[tables.scheme].of_tables(tables, fault)
