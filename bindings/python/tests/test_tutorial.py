"""docs/tutorial.md is executed cell by cell, as a notebook is, and prints what it says.

A cell is a block of `python`; the block of `text` behind it, if there is one, is all that it prints, with the value of
its last line if that is an expression. `FIBULA_TUTORIAL=write pytest tests/test_tutorial.py` writes what was printed
into the page, to be read before it is committed.
"""

import ast
import contextlib
import io
import os
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "tutorial.md"
CELL = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def run(code: str, line: int, names: dict[str, object]) -> str:
    """What the cell prints."""
    cell = ast.increment_lineno(ast.parse(code), line)
    last = cell.body.pop() if isinstance(cell.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(cell, PAGE, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), PAGE, "eval"), names)
            if value is not None:
                print(value if hasattr(value, "columns") else repr(value))
    # Frames pad their lines.
    return "".join(line.rstrip() + "\n" for line in printed.getvalue().splitlines())


def test_tutorial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("duckdb", "pandas", "polars", "pyarrow"):
        pytest.importorskip(package)
    page = PAGE.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    cells = list(CELL.finditer(page))
    assert len(cells) == page.count("```python\n") > 10
    assert sum(cell["output"] is not None for cell in cells) == page.count("```text\n")
    written, at = "", 0
    for cell in cells:
        line = page.count("\n", 0, cell.start("code"))
        printed = run(cell["code"], line, names)
        if os.environ.get("FIBULA_TUTORIAL") == "write":
            shown = f"\n```text\n{printed}```\n" if printed else ""
            written += page[at : cell.start()] + f"```python\n{cell['code']}```\n" + shown
            at = cell.end()
        else:
            assert printed == (cell["output"] or ""), f"{PAGE.name}, cell at line {line + 1}"
    if written:
        PAGE.write_text(written + page[at:], encoding="utf-8")
