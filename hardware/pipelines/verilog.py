"""Writes a pipeline as Verilog."""

from pathlib import Path

from amaranth.back import verilog

BANK = Path(__file__).parent / "bank.v"


def write(pipeline, path):
    """The file, and beside it a copy of the one with the banks."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = verilog.convert(pipeline, name="pipeline", ports=pipeline.ports, strip_internal_attrs=True)
    path.write_text(text)
    bank = path.with_name(BANK.name)
    bank.write_text(BANK.read_text())
    return [path, bank]
