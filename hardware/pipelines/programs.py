"""Runs the other programs; one that is missing or fails is a sentence, not a traceback."""

import subprocess
import sys
from pathlib import Path


def run(command, where=None, **options):
    """What the program wrote to its standard output. `where` is what the message names if it fails."""
    command = list(map(str, command))
    program = Path(command[0]).name
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    except FileNotFoundError as error:
        hint = "FIBULA_BIN names it" if "fibula" in program else "./dev hardware installs it"
        sys.exit(f"{error.filename} is not there: {hint}")
    if done.returncode:
        last = "\n".join(done.stderr.strip().splitlines()[-10:])
        sys.exit(f"{program} failed{f' ({where})' if where else ''}:\n{last}")
    return done.stdout
