"""The crates of others that a package of ours contains: their licence texts, and a bill of materials.

  third_party.py fibula-cli --target TRIPLE --texts THIRD-PARTY.txt --bill fibula.cdx.json
  third_party.py fibula-cli fibula-c        checks that every crate has a text

Most licences want their text in every copy of the binary. The texts are those in the crates' own sources, as cargo
unpacked them. A crate without one needs a licence whose text is the same for all (Apache-2.0), a crate of the same
repository that has it (SAME_TEXT), or a file in licenses/, taken from its repository.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
NAMES = re.compile(r"(licen[sc]e|copying|copyright|notice|unlicense|patents)([-_.].*)?", re.IGNORECASE)
# What is no text of a licence, whatever it is called.
CODE = {".rs", ".c", ".h", ".py", ".toml", ".html", ".sh"}
# Crates without a text, and the crate from the same repository that has it.
SAME_TEXT = {"alloc-stdlib": "alloc-no-stdlib"}
# Texts of licences that are not chosen where there is a choice: zstd is under BSD or the GPL.
NOT_CHOSEN = {"zstd-sys": ["zstd/COPYING"]}


class Crate(NamedTuple):
    """A crate that is linked into a package."""

    name: str
    version: str
    license: str
    folder: Path
    # None: one of ours.
    source: str | None

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class Missing(Exception):
    """Crates have no licence text."""


def run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"third_party.py: {' '.join(command[:2])} failed, see above")
    return done.stdout


def metadata(targets: list[str]) -> dict[str, Any]:
    """All packages of the workspace and of others that these machines need."""
    filters = [f"--filter-platform={target}" for target in targets]
    described: dict[str, Any] = json.loads(run("cargo", "metadata", "--locked", "--format-version=1", *filters))
    return described


def linked(package: str, targets: list[str], described: dict[str, Any]) -> tuple[list[Crate], dict[str, list[str]]]:
    """The crates in a package, itself first, and the names of those that each uses. Macros and build scripts are not in
    it. `cargo tree` resolves the features of this one package, which `cargo metadata` does not."""
    triples = [f"--target={target}" for target in targets]
    tree = run("cargo", "tree", "--locked", "-p", package, "-e", "normal,no-proc-macro", "--prefix", "none", *triples)
    names = list(dict.fromkeys(tuple(line.split()[:2]) for line in tree.splitlines() if line))
    by_name = {(found["name"], f"v{found['version']}"): found for found in described["packages"]}
    packages = [by_name[name] for name in names]
    crates = [
        Crate(
            found["name"],
            found["version"],
            re.sub(r"\s*/\s*", " OR ", found["license"] or "NOASSERTION"),
            Path(found["manifest_path"]).parent,
            found["source"],
        )
        for found in packages
    ]
    ids = {found["id"]: reference(crate) for found, crate in zip(packages, crates, strict=True)}
    uses = {}
    for node in described["resolve"]["nodes"]:
        if node["id"] in ids:
            others = [dep["pkg"] for dep in node["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
            uses[ids[node["id"]]] = sorted({ids[other] for other in others if other in ids})
    return crates, uses


def reference(crate: Crate) -> str:
    """The crate's package URL."""
    return f"pkg:cargo/{crate.name}@{crate.version.replace('+', '%2B')}"


def texts(crate: Crate, others: dict[str, Crate]) -> list[str]:
    """The licence texts of a crate, those of the C code in it among them; none if it has none and none is known."""
    skipped = NOT_CHOSEN.get(crate.name, [])
    paths = [
        path
        for path in sorted(crate.folder.rglob("*"))
        if NAMES.fullmatch(path.name) and path.suffix not in CODE and path.is_file()
        and path.relative_to(crate.folder).as_posix() not in skipped
    ]
    if not paths and (HERE / f"licenses/{crate.name}.txt").exists():
        paths = [HERE / f"licenses/{crate.name}.txt"]
    if not paths and SAME_TEXT.get(crate.name) in others:
        return texts(others[SAME_TEXT[crate.name]], others)
    if not paths and "Apache-2.0" in re.split(r"[\s()]+", crate.license) and " AND " not in crate.license:
        paths = [ROOT / "LICENSE-APACHE"]
    return [path.read_text(encoding="utf-8", errors="replace").strip("\n") for path in paths]


def collected(crates: list[Crate]) -> str:
    """One document of all texts. Equal ones, up to white space, are there once, under the names of their crates."""
    theirs = sorted(crate for crate in crates if crate.source is not None)
    by_name = {crate.name: crate for crate in theirs}
    found: dict[str, tuple[str, list[Crate]]] = {}
    without = []
    for crate in theirs:
        its = texts(crate, by_name)
        for text in its:
            sharing = found.setdefault(" ".join(text.split()), (text, []))[1]
            if crate not in sharing:
                sharing.append(crate)
        if not its:
            without.append(f"{crate} ({crate.license})")
    if without:
        raise Missing(
            f"no licence text for {', '.join(without)}: put the one of its repository into packaging/licenses/NAME.txt,"
            " or its name into SAME_TEXT of packaging/third_party.py"
        )
    rule = "=" * 100
    parts = [
        "This program contains the following crates of others, and Rust's standard library (MIT OR Apache-2.0).\n"
        "Their licence texts follow.\n",
        "".join(f"{crate}: {crate.license}\n" for crate in theirs),
    ]
    for text, sharing in found.values():
        parts.append(f"{rule}\n{', '.join(map(str, sharing))}\n{rule}\n\n{text}\n")
    return "\n".join(parts)


def checksums() -> dict[tuple[str, str], str]:
    """What Cargo.lock has for the crates of a registry: the SHA-256 of the file that was downloaded."""
    blocks = (ROOT / "Cargo.lock").read_text(encoding="utf-8").split("[[package]]")[1:]
    fields = [dict(re.findall(r'^(\w+) = "(.*)"$', block, re.MULTILINE)) for block in blocks]
    return {(its["name"], its["version"]): its["checksum"] for its in fields if "checksum" in its}


def bill(crates: list[Crate], uses: dict[str, list[str]], name: str) -> dict[str, Any]:
    """The bill of materials, in CycloneDX. With SOURCE_DATE_EPOCH it has a date, and is the same each time."""
    hashes = checksums()

    def component(crate: Crate, kind: str) -> dict[str, Any]:
        made: dict[str, Any] = {
            "type": kind,
            "bom-ref": reference(crate),
            "name": crate.name,
            "version": crate.version,
            "purl": reference(crate),
            "licenses": [{"expression": crate.license}],
        }
        if (crate.name, crate.version) in hashes:
            made["hashes"] = [{"alg": "SHA-256", "content": hashes[crate.name, crate.version]}]
        return made

    own, *parts = crates
    metadata: dict[str, Any] = {"component": component(own, "application") | {"name": name}}
    if date := os.environ.get("SOURCE_DATE_EPOCH"):
        metadata["timestamp"] = datetime.fromtimestamp(int(date), timezone.utc).isoformat()
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": metadata,
        "components": [component(crate, "library") for crate in parts],
        "dependencies": [{"ref": node, "dependsOn": others} for node, others in sorted(uses.items())],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="+", metavar="PACKAGE")
    parser.add_argument("--target", action="append", default=[], help="default: the machine's own; several are allowed")
    parser.add_argument("--name", help="of what is described (default: the package's)")
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--bill", type=Path)
    args = parser.parse_args()
    if len(args.packages) > 1 and (args.texts or args.bill):
        parser.error("files are written for one package")
    targets = args.target or [run("rustc", "--print", "host-tuple").strip()]
    described = metadata(targets)
    for package in args.packages:
        crates, uses = linked(package, targets, described)
        try:
            document = collected(crates)
        except Missing as missing:
            sys.exit(f"third_party.py: {package}: {missing}")
        if args.texts:
            args.texts.write_text(document, encoding="utf-8")
        if args.bill:
            made = bill(crates, uses, args.name or package)
            args.bill.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
