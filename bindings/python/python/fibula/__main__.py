"""The command `fibula`, which the package contains: as a script, and as `python -m fibula`."""

from __future__ import annotations

import signal
import sys

from fibula._fibula import run_command


def main() -> int:
    # Python's own handler only sets a flag, at which nobody looks before the command is done.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return run_command(["fibula", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
