"""The site's sources and its checks, for tools/site.sh.

  site.py prepare FOLDER           the pages that docs/SUMMARY.md lists, as mdBook wants them, into FOLDER/src
  site.py module WASM SCRIPT       the WebAssembly module as a script, for a page that is opened from a file
  site.py check FOLDER             every link, anchor and picture of the pages in FOLDER leads somewhere in it

The pages are written for a forge, where links go to any file of the repository. In the book a link to another page stays
one, a file that a page links is copied, and of a link to a folder, or to a page that is not in the book, only its text
remains.
"""

import base64
import gzip
import html.parser
import os
import re
import shutil
import sys
import urllib.parse
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
# Larger files are left to the repository.
LARGEST_FILE = 1 << 20
LARGEST_MODULE = 3 << 20


def book_path(path):
    """Where a page of the repository lies in the book."""
    if path == DOCS / "README.md":
        return Path("index.md")
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS)
    # A page called README would become the index of its folder.
    words = [word for word in path.relative_to(ROOT).with_suffix("").parts if word != "README"]
    return Path("project") / ("-".join(words or ["overview"]) + ".md")


class Book:
    """The pages of the summary, and the files that they need."""

    def __init__(self, out):
        self.out = out
        self.files = {ROOT / "bindings/wasm/demo/index.html": Path("demo/index.html")}
        self.summary = (DOCS / "SUMMARY.md").read_text(encoding="utf-8") + self.decisions()
        found = (DOCS / target for _, _, target in LINK.findall(self.summary))
        self.pages = {path.resolve(): book_path(path.resolve()) for path in found}

    @staticmethod
    def decisions():
        """The ADRs, which are not listed one by one in the summary."""
        lines = ["\n# Decisions\n\n"]
        for path in sorted((DOCS / "adr").glob("*.md")):
            title = path.read_text(encoding="utf-8").split("\n", 1)[0].lstrip("# ")
            lines.append(f"- [{title}](adr/{path.name})\n")
        return "".join(lines)

    def write(self):
        shutil.rmtree(self.out, ignore_errors=True)
        self.put("SUMMARY.md", self.linked(self.summary, DOCS / "SUMMARY.md", Path("SUMMARY.md")))
        for path, place in self.pages.items():
            self.put(place, self.linked(path.read_text(encoding="utf-8"), path, place))
        for path, place in self.files.items():
            if place.parts[0] == "files":
                (self.out / place).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, self.out / place)

    def put(self, place, text):
        path = self.out / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def linked(self, text, path, place):
        """The text with its links for the book; code stays as it is."""
        parts = re.split(r"(^```.*?^```$|``.*?``|`[^`\n]*`)", text, flags=re.MULTILINE | re.DOTALL)
        # A link's text may be code, so links are sought in the whole text with the code's characters hidden.
        hidden = "".join(part if at % 2 == 0 else re.sub(r"[\[\]()!]", "\0", part) for at, part in enumerate(parts))
        out, end = [], 0
        for match in LINK.finditer(hidden):
            out.append(text[end : match.start()])
            words = text[match.start(2) : match.end(2)]
            out.append(self.link(match[1], words, match[3], path, place))
            end = match.end()
        return "".join([*out, text[end:]])

    def link(self, mark, words, target, path, place):
        if re.match(r"[a-z]+:|#", target):
            return f"{mark}[{words}]({target})"
        file, _, anchor = target.partition("#")
        to = (path.parent / file).resolve()
        if not to.exists():
            sys.exit(f"{path.relative_to(ROOT)}: {target} leads nowhere")
        if to in self.pages:
            there = self.pages[to]
        elif to.is_file() and to.suffix != ".md" and to.stat().st_size <= LARGEST_FILE:
            there = self.files.setdefault(to, Path("files") / to.relative_to(ROOT))
        else:
            return words
        relative = os.path.relpath(there, place.parent) + (f"#{anchor}" if anchor else "")
        return f"{mark}[{words}]({relative})"


class Page(html.parser.HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("id", "name") and tag != "meta":
                self.anchors.add(value)
            elif name == "src" or (name == "href" and tag != "base"):
                self.links.append((tag, value))


def check(folder):
    pages = {path.resolve(): Page(path) for path in sorted(folder.rglob("*.html"))}
    links, wrong = 0, []
    for path, page in pages.items():
        if path.name == "404.html":
            continue  # Its links are for any depth.
        for tag, link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                # What a reader follows may be elsewhere; what the page loads may not.
                if tag != "a" and parts.scheme not in ("data",):
                    wrong.append(f"{path.name}: loads {link}")
                continue
            to = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            to = to / "index.html" if to.is_dir() else to
            anchor = urllib.parse.unquote(parts.fragment)
            if not to.exists():
                wrong.append(f"{path.relative_to(folder)}: {link} leads nowhere")
            elif anchor and to in pages and anchor not in pages[to].anchors:
                wrong.append(f"{path.relative_to(folder)}: {link} names no part of that page")
            links += 1
    if wrong or links < 500 or len(pages) < 60:
        sys.exit("\n".join(wrong) or f"only {links} links on {len(pages)} pages")
    print(f"{links:,} links on {len(pages)} pages lead somewhere")


def module(wasm, script):
    """The module, compressed, in a constant of a script."""
    packed = gzip.compress(wasm.read_bytes(), mtime=0)
    if len(packed) > LARGEST_MODULE:
        sys.exit(f"the module has {len(packed):,} bytes compressed, more than {LARGEST_MODULE:,}")
    text = base64.b64encode(packed).decode("ascii")
    script.write_text(f'"use strict";\nconst FIBULA_WASM = "{text}";\n', encoding="ascii")
    print(f"the module has {wasm.stat().st_size:,} bytes, {len(packed):,} compressed")


def main(command, *paths):
    first, *rest = map(Path, paths)
    if command == "prepare":
        Book(first.resolve() / "src").write()
        shutil.copyfile(DOCS / "book.toml", first / "book.toml")
    elif command == "module":
        module(first, *rest)
    else:
        check(first.resolve())


if __name__ == "__main__":
    main(*sys.argv[1:])
