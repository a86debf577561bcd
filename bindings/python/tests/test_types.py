"""What type checkers see: the package itself, its users, and the stubs beside the compiled part."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
CONFIG = str(HERE.parent / "pyproject.toml")


def run(*command: str) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=HERE, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_users() -> None:
    run("mypy", "--config-file", CONFIG, "sample_typed.py")


def test_the_package() -> None:
    run("mypy", "--config-file", CONFIG, "-p", "fibula")


def test_the_stubs() -> None:
    assert importlib.util.find_spec("fibula._fibula") is not None
    run("mypy.stubtest", "fibula._fibula", "--ignore-disjoint-bases", "--mypy-config-file", CONFIG)
