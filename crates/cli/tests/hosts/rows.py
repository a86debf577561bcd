"""Each format of streams, row by row beside what `fibula annotate` writes for a file."""

import itertools
import struct
import subprocess
import threading

import pyarrow as pa

import lab

# Lines that are compared at once.
BLOCK = 100_000


def run(here):
    table = ["--table", here.countries]
    data = here.folder / "cells.csv"
    with open(data, "w") as out:
        out.write("ip,n\n")
        for number, cell in enumerate(lab.cells(here.rows)):
            out.write(f"{cell},{number}\n")
    plain = here.folder / "plain.csv"
    here.run("annotate", *table, "--column", "ip", "--add", "prefix,country", data, "-o", plain, "-q")
    for name, (arguments, send, receive) in FORMATS.items():
        command = [here.fibula, "annotate", *table, "--add", "prefix,country", "--stream", name, "-q", *arguments]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        sender = threading.Thread(target=send, args=(data, process.stdin))
        sender.start()
        count = 0
        with open(plain) as expected:
            next(expected)
            answers = receive(process.stdout)
            for line, answer in itertools.zip_longest(expected, answers):
                cell, number, prefix, country = line.rstrip("\n").split(",") if line else [None] * 4
                if answer != (cell, number, prefix or None, country or None):
                    process.kill()
                    raise lab.Failed(f"{name}, row {count}: {answer} is not the row {line!r}")
                count += 1
        sender.join()
        lab.check(process.wait(), 0, f"{name}: exit code")
        lab.check(count, here.rows, f"{name}: rows")
        lab.say(f"rows: {name}: {count:,} equal")


def source(path):
    with open(path) as rows:
        next(rows)
        for row in rows:
            yield row.rstrip("\n").split(",")


def sent(make):
    """A function that sends what `make` makes of a row."""

    def send(path, out):
        rows = source(path)
        while block := list(itertools.islice(rows, BLOCK)):
            out.write(b"".join(make(cell, number) for cell, number in block))
        out.close()

    return send


def tsv(answers):
    for line in answers:
        yield tuple(None if field == "\\N" else field for field in line.decode().rstrip("\n").split("\t"))


def jsonl(answers):
    import json

    for line in answers:
        row = json.loads(line)
        yield row["ip"], str(row["n"]), row["ip_prefix"], row["ip_country"]


def influx(answers):
    for line in answers:
        head, rest = line.decode().rstrip("\n").split(" n=")
        fields = dict(field.split("=") for field in ("n=" + rest).split(","))
        cell = fields["ip"].strip('"')
        values = [fields[name].strip('"') if name in fields else None for name in ("ip_prefix", "ip_country")]
        yield cell, fields["n"].rstrip("i"), *values


def text(value):
    value = value.encode()
    assert len(value) < 128
    return bytes([len(value)]) + value


def rowbinary(answers):
    def one_text():
        return answers.read(answers.read(1)[0]).decode()

    while first := answers.read(1):
        cell = answers.read(first[0]).decode()
        number = struct.unpack("<q", answers.read(8))[0]
        yield cell, str(number), *(None if answers.read(1) == b"\1" else one_text() for _ in range(2))


def send_arrow(path, out):
    schema = pa.schema([("ip", pa.string()), ("n", pa.string())])
    rows = source(path)
    with pa.ipc.new_stream(out, schema) as stream:
        while block := list(itertools.islice(rows, BLOCK)):
            columns = [pa.array(column) for column in zip(*block, strict=True)]
            stream.write_batch(pa.record_batch(columns, schema=schema))
    out.close()


def arrow(answers):
    for batch in pa.ipc.open_stream(answers):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


FORMATS = {
    "tsv": (["--column", "1"], sent(lambda cell, number: f"{cell}\t{number}\n".encode()), tsv),
    "jsonl": (["--column", "ip"], sent(lambda cell, number: b'{"ip":"%s","n":%s}\n' % (cell.encode(), number.encode())), jsonl),
    "influx": (["--column", "ip"], sent(lambda cell, number: b'm n=%si,ip="%s"\n' % (number.encode(), cell.encode())), influx),
    "rowbinary": (
        ["--column", "1", "--types", "String, Int64"],
        sent(lambda cell, number: text(cell) + struct.pack("<q", int(number))),
        rowbinary,
    ),
    "arrow": (["--column", "ip"], send_arrow, arrow),
}
