"""Each format of streams, row by row beside what `fibula annotate` writes for a file. ClickHouse compares them."""

import subprocess

import clickhouse
import lab

# Addresses of both families, mapped ones, empty cells and text.
CELLS = """
    CREATE TABLE cells ENGINE = Memory AS
    WITH sipHash64(number) AS h, IPv4NumToString(toUInt32(h)) AS v4,
        concat('2001:', lower(hex(toUInt16(h))), ':', lower(hex(toUInt16(h / 65536))), '::1') AS v6, sipHash64(h) % 20 AS kind
    SELECT number AS n, multiIf(kind = 0, '', kind = 1, 'x', kind = 2, '10.0.0', kind = 3, '[2001:db8::1]:53',
        kind = 4, concat('::ffff:', v4), kind < 10, v6, v4) AS ip
    FROM numbers({})"""

# For each stream the format that ClickHouse writes and reads, and what the command needs.
FORMATS = {
    "tsv": ("TabSeparated", ["--column", "1"]),
    "jsonl": ("JSONEachRow", ["--column", "ip"]),
    "rowbinary": ("RowBinary", ["--column", "1", "--types", "String, UInt64"]),
    "arrow": ("ArrowStream", ["--column", "ip"]),
    "influx": (None, ["--column", "ip"]),
}

STRUCTURE = "ip String, n UInt64, ip_prefix Nullable(String), ip_country Nullable(String)"


def run(here):
    with clickhouse.ClickHouse(here, "rows", "<functions></functions>") as host:
        host.lines(CELLS.format(here.rows))
        cells, plain = here.folder / "cells.csv", here.folder / "plain.csv"
        write(host, "SELECT ip, n FROM cells", cells, "CSVWithNames")
        added = ["--table", here.countries, "--add", "prefix,country"]
        here.run("annotate", *added, "--column", "ip", cells, "-o", plain, "-q")
        host.lines(
            "CREATE TABLE plain ENGINE = Memory AS SELECT ip, n, nullIf(ip_prefix, '') AS ip_prefix, "
            f"nullIf(ip_country, '') AS ip_country FROM file('{plain}', CSVWithNames, "
            "'ip String, n UInt64, ip_prefix String, ip_country String')"
        )
        for name, (of_format, arguments) in FORMATS.items():
            sent, answers = here.folder / f"sent.{name}", here.folder / f"answers.{name}"
            if of_format:
                write(host, "SELECT ip, n FROM cells", sent, of_format)
                read = f"file('{answers}', {of_format}, '{STRUCTURE}')"
            else:
                write(host, "SELECT concat('m n=', n, 'i,ip=\"', ip, '\"') FROM cells", sent, "TSVRaw")
                text = "nullIf(extract(line, '{0}=\"([^\"]*)\"'), '') AS {0}"
                read = (
                    "(SELECT extract(line, ',ip=\"([^\"]*)\"') AS ip, toUInt64(extract(line, ' n=([0-9]*)i')) AS n, "
                    f"{text.format('ip_prefix')}, {text.format('ip_country')} FROM file('{answers}', LineAsString, 'line String'))"
                )
            # From a pipe, whose reads are short.
            with open(answers, "wb") as out, subprocess.Popen(["cat", sent], stdout=subprocess.PIPE) as cat:
                command = [here.fibula, "annotate", *added, "--stream", name, "-q", *arguments]
                subprocess.run(command, stdin=cat.stdout, stdout=out, check=True)
            order = f"SELECT count(), countIf(n != rowNumberInAllBlocks()) FROM {read}"
            order += " SETTINGS max_threads = 1, input_format_parallel_parsing = 0"
            lab.check(host.lines(order), [f"{here.rows}\t0"], f"{name}: rows, rows out of order")
            names = ["ip", "ip_prefix", "ip_country"]
            differ = " OR ".join(f"s.{column} IS DISTINCT FROM p.{column}" for column in names)
            equal = f"SELECT count(), countIf({differ}), countIf(s.ip_country != '') > {here.rows // 2} "
            equal += f"FROM {read} s JOIN plain p ON s.n = p.n"
            lab.check(host.lines(equal), [f"{here.rows}\t0\t1"], f"{name}: rows, rows that differ, most have a country")
            lab.say(f"rows: {name}: {here.rows:,} equal")
            sent.unlink()
            answers.unlink()


def write(host, query, path, of_format):
    host.lines(f"{query} ORDER BY n INTO OUTFILE '{path}' FORMAT {of_format}")
