#!/usr/bin/env python3
"""Makes a DuckDB extension of the library: DuckDB loads only files that end with a description of themselves.

    extension.py LIBRARY OUTPUT [--platform linux_amd64] [--version v0.1.0]

OUTPUT is called fibula.duckdb_extension: DuckDB finds the function that it calls first by the name of the file. The
description is a section of WebAssembly called duckdb_signature, of 534 bytes: eight fields of 32 bytes, the last one first,
and room for a signature, which is left empty. So such a file is loaded with allow_unsigned_extensions only.
"""

import argparse
import os
import pathlib
import tempfile

# The version of DuckDB's C API that the library asks for: src/host/entry.rs.
API = "v1.2.0"


def description(platform: str, version: str) -> bytes:
    """The end of the file."""
    fields = ["4", platform, API, version, "C_STRUCT", "", "", ""]
    head = b"\x00\x93\x04\x10duckdb_signature\x80\x04"
    return head + b"".join(field.encode().ljust(32, b"\0") for field in reversed(fields)) + bytes(256)


def write(library: pathlib.Path, output: pathlib.Path, platform: str, version: str) -> None:
    """Writes the file whole, or not at all: DuckDB may have the old one mapped."""
    with tempfile.NamedTemporaryFile(dir=output.parent, delete=False) as new:
        try:
            new.write(library.read_bytes() + description(platform, version))
            os.fchmod(new.fileno(), 0o755)
        except BaseException:
            os.unlink(new.name)
            raise
    os.replace(new.name, output)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--platform", default="linux_amd64", help="as PRAGMA platform prints it (default: linux_amd64)")
    parser.add_argument("--version", default="v0.1.0")
    args = parser.parse_args()
    write(args.library, args.output, args.platform, args.version)


if __name__ == "__main__":
    main()
