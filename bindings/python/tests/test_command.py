"""The command inside of the package: the same answers, exit codes and signals as the program of its own."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import fibula
import pytest

MODULE = [sys.executable, "-m", "fibula"]


def run(*arguments: str, text: str = "", program: list[str] = MODULE) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*program, *arguments], input=text, capture_output=True, text=True)


def test_answers() -> None:
    done = run("lookup", "8.8.8.8", "2001:4860:4860::8888")
    assert done.returncode == 0, done.stderr
    assert [line.split()[-1] for line in done.stdout.splitlines()] == ["country", "US", "US"]
    # What goes into a pipe is written to its end.
    done = run("lookup", "-", text="8.8.8.8\n" * 5000)
    assert done.stdout.count("US") == 5000


def test_exit_codes_are_the_commands() -> None:
    assert run("--version").stdout == f"fibula {fibula.__version__}\n"
    done = run("lookup", "192.168.0.1")
    assert done.returncode == 1, done
    done = run("lookup", "no address")
    assert done.returncode == 2 and "\nfibula: 1 input is no address" in done.stderr, done
    done = run("lookup", "--no-such-option")
    # Usage names the command, not Python's file.
    assert done.returncode == 2 and "Usage: fibula lookup" in done.stderr, done


def test_a_table_is_made_and_opened(tmp_path: Path) -> None:
    (tmp_path / "networks.txt").write_text("10.0.0.0/8 hq\n10.20.0.0/16 zurich\n")
    snapshot = tmp_path / "Zürich.fib"
    done = run("build", str(tmp_path / "networks.txt"), "--names", "prefix,site", "-o", str(snapshot))
    assert done.returncode == 0, done.stderr
    assert fibula.Table.open(snapshot).lookup("10.20.0.1") == {"prefix": "10.20.0.0/16", "site": "zurich"}


@pytest.mark.skipif(sys.platform == "win32", reason="signals are not the same there")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it_and_leave_no_file(sent: signal.Signals, tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    command = [*MODULE, "annotate", "-", "-o", str(output)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None and process.stderr is not None
    process.stdin.write(b"ip\n8.8.8.8\n" * 100_000)
    process.stdin.flush()
    end = time.monotonic() + 60
    while not list(tmp_path.iterdir()):
        assert time.monotonic() < end and process.poll() is None, "the output is not being written"
        time.sleep(0.01)
    process.send_signal(sent)
    assert process.wait(timeout=60) == -sent
    assert list(tmp_path.iterdir()) == []
    process.stdin.close()
    process.stderr.close()


@pytest.mark.skipif(sys.platform == "win32", reason="signals are not the same there")
@pytest.mark.skipif("FIBULA_TEST_EMULATOR" in os.environ, reason="an emulator of programs has handlers of its own")
def test_a_signal_that_was_ignored_stays_ignored() -> None:
    script = "trap '' INT; exec \"$@\""
    command = ["sh", "-c", script, "sh", *MODULE, "lookup", "-"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("8.8.8.8\n")
    process.stdin.flush()
    assert "address" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate("1.1.1.1\n", timeout=60)
    assert process.returncode == 0 and "1.1.1.1" in out


@pytest.mark.skipif(sys.platform == "win32", reason="pipes are not the same there")
def test_a_closed_pipe_is_no_error() -> None:
    command = [*MODULE, "gen", "traffic", "--count", "1000000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 0 and errors == b"", errors


def test_the_script() -> None:
    """Where pip has installed the package, the command is on the path."""
    try:
        entries = importlib.metadata.distribution("fibula").entry_points
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package was not installed from a wheel")
    assert [(entry.name, entry.value) for entry in entries] == [("fibula", "fibula.__main__:main")]
    script = shutil.which("fibula", path=str(Path(sys.executable).parent))
    if script is None:
        pytest.skip("the package was installed without scripts")
    assert run("lookup", "8.8.8.8", program=[script]).stdout == run("lookup", "8.8.8.8").stdout
