"""The examples of docs/python.md, docs/coming-from.md and of the package, executed."""

from __future__ import annotations

import ast
import doctest
import importlib
import os
import re
import subprocess
from pathlib import Path

import fibula
import pytest

PAGE = Path(__file__).parents[3] / "docs" / "python.md"
DATED = PAGE.parents[1] / "testdata/snapshots/three-days.fib"
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_page(command: str) -> None:
    # The page's file of several dates is the one that this block of another page makes.
    time = PAGE.with_name("time.md").read_text(encoding="utf-8")
    block = re.search(r"^```sh\n(mkdir tables\n.*?)^```$", time, re.MULTILINE | re.DOTALL)
    assert block is not None
    path = os.pathsep.join([str(Path(command).parent), os.environ["PATH"]])
    subprocess.run(["sh", "-ec", block[1]], env={**os.environ, "PATH": path}, check=True, capture_output=True)
    page = PAGE.read_text(encoding="utf-8")
    text = "\n".join(re.findall(r"^```pycon\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    found = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)
    assert len(found.examples) > 20
    result = doctest.DocTestRunner(optionflags=OPTIONS).run(found)
    assert result.failed == 0


def test_coming_from(command: str) -> None:
    """The blocks run, and each call of the tables beside its answer gives that answer."""
    page = PAGE.with_name("coming-from.md").read_text(encoding="utf-8")
    shown = re.search(r"^\$ cat ipasn.dat\n(.*?)^\$ ", page, re.MULTILINE | re.DOTALL)
    assert shown is not None
    Path("ipasn.dat").write_text(shown[1], encoding="utf-8")
    build = [command, "build", "ipasn.dat", "--names", "prefix,asn", "-o", "asn.fib"]
    subprocess.run(build, check=True, capture_output=True)
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    exec(blocks[0], names)
    answers = re.findall(r"\| `(table\.[^`]*)`[^|]*\| `([^`]*)` \|$", page, re.MULTILINE)
    for call, answer in answers:
        assert eval(call, names) == ast.literal_eval(answer), call
    for block in blocks[1:]:
        exec(block, names)
    assert len(answers) >= 4 and len(blocks) >= 2


MODULES = ["fibula", "fibula.table", "fibula._routes", "fibula.dated", "fibula.polars", "fibula.duckdb"]


@pytest.mark.parametrize("name", MODULES)
def test_the_package(name: str) -> None:
    module = importlib.import_module(name)
    Path("three-days.fib").symlink_to(DATED)
    table = fibula.Table.build(
        {"10.0.0.0/8": {"site": "hq", "vlan": 1}, "10.20.0.0/16": {"site": "zurich", "vlan": 20}}
    )
    given = {"table": table, "tables": fibula.DatedTable.open("three-days.fib")}
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    tests = [test for test in doctest.DocTestFinder().find(module, extraglobs=given) if test.examples]
    for test in tests:
        runner.run(test)
    assert tests and runner.summarize().failed == 0
