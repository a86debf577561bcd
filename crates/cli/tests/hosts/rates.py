"""Rates beside the hosts' own way: ClickHouse's dictionary of the layout ip_trie, in one run."""

import statistics
import subprocess
import time

import clickhouse
import lab

ROUNDS = 5


def run(here):
    count = here.rows
    table = here.countries
    prefixes = here.folder / "prefixes.csv"
    functions = "".join(
        clickhouse.function(here, name, "executable_pool", argument, of_format, command, table)
        for name, argument, of_format, command in [
            ("by_binary", "IPv6", "RowBinary", "--stream rowbinary --types IPv6 --column 1"),
            ("by_arrow", "String", "ArrowStream", "--stream arrow --column ip"),
            ("by_tabs", "String", "TabSeparated", "--stream tsv --column 1"),
            ("by_json", "String", "JSONEachRow", "--stream jsonl --column ip"),
        ]
    )
    with clickhouse.ClickHouse(here, "clickhouse-rates", f"<functions>{functions}</functions>") as host:
        prefixes.write_bytes(here.run("export", table, "--to", "clickhouse"))
        version = host.lines("SELECT version()")[0]
        host.lines("CREATE TABLE prefixes (prefix String, country String) ENGINE = Memory")
        columns = "prefix String, country String"
        host.lines(f"INSERT INTO prefixes SELECT prefix, country FROM file('{prefixes}', CSVWithNames, '{columns}')")
        host.lines(
            "CREATE DICTIONARY trie (prefix String, country String) PRIMARY KEY prefix "
            "SOURCE(CLICKHOUSE(TABLE 'prefixes')) LAYOUT(IP_TRIE) LIFETIME(0)"
        )
        host.lines("CREATE TABLE rows (ip IPv6, text String) ENGINE = Memory")
        v6 = "concat('2001:', lower(hex(toUInt16(sipHash64(number)))), '::1')"
        v4 = "IPv4NumToString(toUInt32(sipHash64(number)))"
        host.lines(
            f"INSERT INTO rows SELECT toIPv6(if(number % 4 = 0, {v6}, {v4}) AS text) AS ip, text FROM numbers({count})"
        )
        ways = {
            "dictGetOrNull, ip_trie": "dictGetOrNull('trie', 'country', ip)",
            "function, RowBinary, IPv6": "by_binary(ip)",
            "function, ArrowStream, String": "by_arrow(text)",
            "function, TabSeparated, String": "by_tabs(text)",
            "function, JSONEachRow, String": "by_json(text)",
        }
        answers, times = {}, {way: [] for way in ways}
        for way, value in ways.items():
            query = f"SELECT count({value}), sum(cityHash64(ifNull({value}, ''))) FROM rows"
            answers[way] = host.lines(query)
        lab.check(len({tuple(answer) for answer in answers.values()}), 1, f"the answers are one: {answers}")
        for _ in range(ROUNDS):
            for way, value in ways.items():
                begin = time.monotonic()
                host.lines(f"SELECT count({value}) FROM rows")
                times[way].append(time.monotonic() - begin)
    base = statistics.median(times["dictGetOrNull, ip_trie"])
    print(f"ClickHouse {version}, {count:,} rows, the embedded table, medians of {ROUNDS} rounds\n")
    print("| way | million rows/s | beside ip_trie |\n|---|---|---|")
    for way, found in times.items():
        middle = statistics.median(found)
        print(f"| {way} | {count / middle / 1e6:.2f} | {base / middle:.2f} |")
    pipes(here, table, count)


def pipes(here, table, count):
    """The filter alone, from a file, beside the plain command on one thread."""
    print("\n| format | million rows/s |\n|---|---|")
    cells = list(lab.cells(min(count, 2_000_000), seed=3))
    forms = {
        "tsv": (["--stream", "tsv", "--column", "1"], "".join(f"{cell}\t1\n" for cell in cells)),
        "tsv, values alone": (["--stream", "tsv", "--column", "1", "--only-added"], None),
        "tsv of a file, one thread": (["--format", "tsv", "--column", "1", "--header", "no", "--threads", "1"], None),
        "jsonl": (["--stream", "jsonl", "--column", "a"], "".join(f'{{"a":"{cell}","n":1}}\n' for cell in cells)),
        "jsonl of a file, one thread": (["--format", "jsonl", "--column", "a", "--threads", "1"], None),
        "influx": (["--stream", "influx", "--column", "a"], "".join(f'm n=1i,a="{cell}"\n' for cell in cells)),
    }
    data = here.folder / "cells"
    for name, (arguments, text) in forms.items():
        if text is not None:
            data.write_text(text)
        taken = []
        for _ in range(ROUNDS):
            with open(data, "rb") as rows:
                begin = time.monotonic()
                command = [here.fibula, "annotate", "--table", table, "--add", "country", "-q", *arguments]
                subprocess.run(command, stdin=rows, stdout=subprocess.DEVNULL, check=True)
                taken.append(time.monotonic() - begin)
        print(f"| {name} | {len(cells) / statistics.median(taken) / 1e6:.2f} |")
