"""Threads, other processes, pickles."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import fibula
import pyarrow as pa
import pytest


def ask(table: fibula.Table, address: str) -> dict[str, Any] | None:
    """In a worker: its own process, the same file."""
    return table.lookup(address)


def test_a_table_travels_to_workers(small: fibula.Table, tmp_path: Path) -> None:
    small.save(tmp_path / "table.fib")
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        found = pool.starmap(ask, [(small, "10.20.0.1"), (small, "2001:db8::1"), (small, "192.0.2.1")])
    assert [record and record["site"] for record in found] == ["zurich", "hq", None]


def test_pickles(small: fibula.Table, tmp_path: Path) -> None:
    with pytest.raises(pickle.PicklingError, match=r"in memory only.*table.save\(path\) first"):
        pickle.dumps(small)
    assert copy.copy(small) is small and copy.deepcopy({"table": small})["table"] is small
    small.save(tmp_path / "table.fib")
    data = pickle.dumps(small)
    assert len(data) < 1000
    again = pickle.loads(data)
    assert again.path == tmp_path / "table.fib" and again.lookup("10.20.0.1") == small.lookup("10.20.0.1")
    (tmp_path / "table.fib").unlink()
    with pytest.raises(FileNotFoundError):
        pickle.loads(data)
    # The open one has its pages still.
    assert again.lookup("10.20.0.1") is not None
    for error in (fibula.AddressError("a"), fibula.DamageWarning("b")):
        assert type(pickle.loads(pickle.dumps(error))) is type(error)


def test_other_threads_run_during_a_lookup(table: fibula.Table, addresses: list[str]) -> None:
    chunk = pa.array((addresses * (200_000 // len(addresses) + 1))[:200_000])
    column = pa.chunked_array([chunk] * 20)
    table.lookup_many(chunk, add="prefix")
    ticks: list[float] = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    ticker = threading.Thread(target=tick)
    ticker.start()
    while not ticks:
        time.sleep(0.001)
    began = time.perf_counter()
    table.lookup_many(column, add="prefix", threads=1)
    took = time.perf_counter() - began
    stop.set()
    ticker.join()
    # In the middle of the call, not at its ends, where the interpreter is held: all of it in one piece would be none.
    during = sum(began + took * 0.2 < tick < began + took * 0.8 for tick in ticks)
    assert took > 0.05 and during >= 5, f"{during} ticks in {took:.3f} s"


def test_threads_share_a_table(table: fibula.Table, addresses: list[str], answers: list[Any]) -> None:
    def one(turn: int) -> None:
        add = [["prefix"], ["asn"], ["name", "prefix"], ["covering"]][turn % 4]
        found = table.lookup_many(addresses, add=add, text="plain" if turn % 3 else "dictionary").to_pydict()
        for name in set(add) - {"covering"}:
            assert found[name] == [answer and answer[name] for answer in answers]
        assert table.lookup(addresses[turn]) == answers[turn]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(64)))


IMPORTING = """if True:
    import sys, threading
    import fibula
    table = fibula.Table.build([("10.0.0.0/8", {"v": 1})])
    done, failed = threading.Event(), []

    def ask():
        while not done.is_set():
            try:
                assert table.lookup_many(["10.0.0.1", None], add="v").to_pylist() == [1, None]
            except BaseException as error:
                failed.append(error)
                return

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for name in sys.argv[1:]:
        __import__(name)
    done.set()
    for thread in threads:
        thread.join()
    sys.exit(repr(failed[0]) if failed else 0)
    """


@pytest.mark.parametrize("names", ["pandas", "polars duckdb", "pyarrow numpy", "duckdb pandas"])
def test_lookups_while_another_thread_imports(names: str) -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTING, *names.split()], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_more_options_than_are_kept(small: fibula.Table) -> None:
    for default in range(40):
        assert small.lookup_many(["192.0.2.1"], add="vlan", default=default).to_pylist() == [default]


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace counts the files that are opened")
def test_processors_are_counted_once_in_a_process() -> None:
    script = """if True:
        import fibula, sys
        table = fibula.Table.build([("10.0.0.0/8", {"v": 1})])
        for _ in range(int(sys.argv[1])):
            table.lookup_many(["10.0.0.1"], add="v")
        """
    opened = []
    for lookups in ("1", "20"):
        command = ["strace", "-f", "-e", "trace=openat", sys.executable, "-c", script, lookups]
        done = subprocess.run(command, capture_output=True, text=True)
        if "ptrace" in done.stderr:
            pytest.skip("strace may not trace here")
        assert done.returncode == 0, done.stderr
        opened.append(done.stderr.count("/sys/fs/cgroup") + done.stderr.count("/proc/self/cgroup"))
    assert opened[0] == opened[1]


def test_results_outlive_the_table(small: fibula.Table) -> None:
    found = pa.table(fibula.Table.build({"10.0.0.0/8": {"site": "hq"}}).lookup_many(["10.0.0.1"], add=["prefix", "site"]))
    assert found.to_pydict() == {"prefix": ["10.0.0.0/8"], "site": ["hq"]}
