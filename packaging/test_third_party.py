"""Licence texts: which files count, what stands in for them, and what is an error."""

from __future__ import annotations

import json
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import third_party
from third_party import Crate, Missing


class Texts(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def crate(self, name: str, license: str, files: dict[str, str], source: str | None = "registry") -> Crate:
        for path, text in files.items():
            (self.folder / name / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name / path).write_text(text)
        return Crate(name, "1.0.0", license, self.folder / name, source)

    def test_files_by_their_names(self) -> None:
        files = {"LICENSE-MIT": "mit", "c/COPYING": "bsd", "Licence.md": "md", "NOTICE": "n"}
        others = {"src/license.rs": "code", "notices.c": "code", "README.md": "r", "src/copyright.h": "code"}
        found = third_party.texts(self.crate("a", "MIT", files | others), {})
        self.assertEqual(sorted(found), ["bsd", "md", "mit", "n"])

    def test_the_licence_that_was_not_chosen(self) -> None:
        crate = self.crate("zstd-sys", "MIT", {"LICENSE": "bsd", "zstd/COPYING": "gpl", "zstd/LICENSE": "zstd"})
        self.assertEqual(third_party.texts(crate, {}), ["bsd", "zstd"])

    def test_equal_texts_are_there_once(self) -> None:
        one = self.crate("one", "MIT", {"LICENSE": "a text\nin two lines\n"})
        two = self.crate("two", "MIT/Apache-2.0", {"LICENSE": "a  text in two lines"})
        ours = self.crate("ours", "MIT", {}, source=None)
        document = third_party.collected([ours, two, one])
        self.assertEqual(document.count("in two lines"), 1)
        self.assertIn("one 1.0.0, two 1.0.0\n", document)
        self.assertNotIn("ours", document)

    def test_what_stands_in(self) -> None:
        apache = third_party.texts(self.crate("a", "MIT OR Apache-2.0", {"README.md": ""}), {})
        self.assertIn("Apache License", apache[0])
        self.assertEqual(third_party.texts(self.crate("b", "MIT AND Apache-2.0", {"README.md": ""}), {}), [])
        self.assertIn("2021", third_party.texts(self.crate("valuable", "MIT", {"README.md": ""}), {})[0])
        sibling = self.crate("alloc-no-stdlib", "BSD-3-Clause", {"LICENSE": "theirs"})
        crate = self.crate("alloc-stdlib", "BSD-3-Clause", {"README.md": ""})
        self.assertEqual(third_party.texts(crate, {sibling.name: sibling}), ["theirs"])
        self.assertEqual(third_party.texts(crate, {}), [])

    def test_a_crate_without_a_text_is_an_error(self) -> None:
        with self.assertRaisesRegex(Missing, r"no licence text for a 1\.0\.0 \(MIT\): put"):
            third_party.collected([self.crate("a", "MIT", {"README.md": "no licence"})])

    def test_the_bill(self) -> None:
        own = self.crate("own", "MIT", {}, source=None)
        version = next(version for name, version in third_party.checksums() if name == "memchr")
        memchr = Crate("memchr", version, "MIT", self.folder, "registry")
        uses = {third_party.reference(own): [third_party.reference(memchr)]}
        with mock.patch.dict(os.environ, {"SOURCE_DATE_EPOCH": "0"}):
            made = third_party.bill([own, memchr], uses, "fibula")
        self.assertEqual(made["metadata"]["timestamp"], "1970-01-01T00:00:00+00:00")
        self.assertEqual(made["metadata"]["component"]["name"], "fibula")
        (component,) = made["components"]
        self.assertEqual(component["purl"], f"pkg:cargo/memchr@{version}")
        self.assertRegex(component["hashes"][0]["content"], "^[0-9a-f]{64}$")
        self.assertEqual(json.loads(json.dumps(made)), made)


if __name__ == "__main__":
    unittest.main()
