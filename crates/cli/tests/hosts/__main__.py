"""`fibula annotate --stream` in its real hosts: ClickHouse (chdb), rsyslog, Telegraf, Redpanda Connect (Benthos).

    python crates/cli/tests/hosts --programs FOLDER [--rows N] [--rates] [HOST...]

FIBULA_BIN is the command. FOLDER has `telegraf` and `benthos`; rsyslogd is that of the system. The Python has the
packages of requirements.txt. The examples are those of docs/stream.md. `./dev hosts` installs what is missing.
"""

import argparse
import os
import pathlib
import sys
import tempfile
import time

import benthos
import clickhouse
import lab
import rates
import rows
import rsyslog
import telegraf

HOSTS = {"rows": rows, "clickhouse": clickhouse, "rsyslog": rsyslog, "telegraf": telegraf, "benthos": benthos}


def arguments():
    parser = argparse.ArgumentParser(prog="hosts", description=__doc__.partition("\n")[0])
    parser.add_argument("hosts", nargs="*", metavar="HOST", help=f"only these: {', '.join(HOSTS)}")
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="the folder with telegraf and benthos")
    parser.add_argument("--rows", type=int, default=10_000_000, help="how many rows are compared in each format")
    parser.add_argument("--rates", action="store_true", help="measure beside ClickHouse's dictionary, and test nothing")
    options = parser.parse_args()
    for host in options.hosts:
        if host not in HOSTS:
            parser.error(f"no host is called {host}: {', '.join(HOSTS)}")
    return options


def main():
    options = arguments()
    # Programs that are started in other folders find it.
    fibula = pathlib.Path(os.environ["FIBULA_BIN"]).resolve()
    os.environ.update(FIBULA_CONFIG="")
    os.environ.pop("FIBULA_TABLE", None)
    with tempfile.TemporaryDirectory(prefix="fibula-hosts-") as folder:
        here = lab.Lab(pathlib.Path(folder), fibula, options.programs.resolve(), options.rows)
        if options.rates:
            rates.run(here)
            return 0
        for name in options.hosts or HOSTS:
            begin = time.monotonic()
            try:
                HOSTS[name].run(here)
            except lab.Failed as failed:
                lab.say(f"{name}: FAILED: {failed}")
                return 1
            lab.say(f"{name}: as expected, {time.monotonic() - begin:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
