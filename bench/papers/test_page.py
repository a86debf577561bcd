"""Tests of what is written from records: selections, claims, the page, and the pictures' descriptions."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import grids
import page
import pictures
import records
import run
from records import Record, Wrong, select

ROWS: list[dict[str, Any]] = [
    {"engine": "a", "table": "one", "threads": 1, "mlps": 10.0, "mlps_min": 9.0, "mlps_max": 12.0, "bytes": 2048},
    {"engine": "b", "table": "one", "threads": 1, "mlps": 5.0, "mlps_min": 4.0, "mlps_max": 6.0, "bytes": 1 << 20},
    {"engine": "a", "table": "two", "threads": 2, "mlps": 36.0, "mlps_min": 30.0, "mlps_max": 40.0, "bytes": 4096},
    {"engine": "b", "table": "two", "threads": 2, "mlps": 12.0, "mlps_min": 11.0, "mlps_max": 13.0, "bytes": 1 << 21},
]
STAMP = {
    "date": "2026-11-28 08:34 UTC",
    "commit": {"id": "d88269b398299d5a", "is_dirty": True},
    "processor": {"vendor": "GenuineIntel", "family": "6", "model": "207", "cores": 2},
}
FIGURE = {"id": "x-f1", "paper": "X", "number": "Figure 1", "shows": "rates", "state": "whole"}


class Selections(unittest.TestCase):
    def test_each_kind(self) -> None:
        for selection, expected in {
            "mlps engine=a threads=1": "10",
            "mlps engine=a threads=max": "36",
            "max mlps": "36",
            "min mlps engine!=b": "10",
            "range mlps engine=a|b table=one": "5 to 10",
            "best engine mlps table=two": "a",
            "ratio mlps engine=a / engine=b where table=one": "2",
            "ratio mlps engine=a / engine=b by table": "2 to 3",
            "max ratio mlps engine=a / engine=b by table": "3",
            "ratio bytes engine=a / engine=b by table as %": "0.20 %",
            "bytes engine=a table=one as KiB": "2 KiB",
            "mlps engine=a table=one as 3": "10.000",
        }.items():
            self.assertEqual(select(ROWS, selection), expected, selection)

    def test_wrong_ones_are_errors(self) -> None:
        for selection, said in {
            "mlps engine=c": "no row for engine=c",
            "mlps engine=a": "2 rows for engine=a, not one",
            "mlps": "4 rows for no conditions, not one",
            "watts engine=a table=one": "no number 'watts'",
            "mlps motor=a": "no column motor",
            "mlps engine": "no condition like column=value",
            "ratio mlps engine=a": "one / between its conditions",
            "ratio mlps engine=a / engine=b": "2 rows for engine=a, not one",
            "bytes engine=a table=one as acre": "acre is no unit",
        }.items():
            with self.assertRaisesRegex(Wrong, said, msg=selection):
                select(ROWS, selection)

    def test_numbers_have_three_digits(self) -> None:
        for value, text in {
            0.0213: "0.0213",
            0.213: "0.21",
            2.0: "2",
            2.345: "2.35",
            23.45: "23.4",
            234.5: "234",
            23456.0: "23,456",
        }.items():
            self.assertEqual(records.text(value), text)

    def test_words_that_look_like_numbers(self) -> None:
        read = records.as_rows(
            "any", [{"a": "7 7", "b": "12", "c": "1.50", "d": "", "split": [{"percent": "80"}, {"percent": "90"}]}]
        )
        self.assertEqual([row["percent"] for row in read], [80, 90])
        self.assertEqual([read[0][name] for name in "abcd"], ["7 7", 12, 1.5, ""])


class Definitions(unittest.TestCase):
    def test_all_are_read(self) -> None:
        figures = run.figures()
        drawn = [picture["figure"] for picture in pictures.pictures(figures)]
        self.assertEqual(len(drawn), len(set(drawn)))
        shown = [name for paper in page.claims(figures).values() for name in paper.get("pictures", [])]
        self.assertEqual(set(shown) - set(drawn), set())


class Texts(unittest.TestCase):
    def test_tables_of_dxr(self) -> None:
        lines = [
            "generated, calibrated by ranges: 417523 prefixes, 213 next hops",
            " 16  ours     773780        16852    220544     16349     83.86",
            " 16  bytes a range in the range table: paper 2.28, ours 2.14",
            " 18  ours   0.8498 0.0404 0.0508 0.0349 0.0183 0.0047 0.0011 0.0000",
            " 18  1 steps,  169389 keys:  139.7   50.0",
        ]
        read = records.as_rows("dxr-t1", lines)
        self.assertEqual(select(read, "bytes what=sizes k=16 table=generated of=ours"), "773,780")
        self.assertEqual(select(read, "bytes_per_range of=ours what='bytes a range'"), "2.14")
        self.assertEqual(select(read, "share steps=0 k=18 what=steps"), "0.85")
        self.assertEqual(select(read, "ns search=batches steps=1 what=times"), "50")

    def test_updates_by_length(self) -> None:
        read = records.as_rows(
            "dxr-f7", ["length changes  dxr16  dxr18", "    /8  32  92.48  1.5", "   all  40  6.07  2"]
        )
        self.assertEqual(select(read, "us length=8 engine=dxr18"), "1.50")
        self.assertEqual(select(read, "us length=all engine=dxr16"), "6.07")

    def test_memory_on_the_chip(self) -> None:
        lines = [
            "figure 6: the growth from year to year",
            "generated, 2008        245000   0.714   0.548   2.032   4.000    1.0019",
        ]
        read = records.as_rows("sail-f6", lines)
        self.assertEqual(select(read, "mb group='figure 6' year=2008 scheme=PBF"), "0.55")
        self.assertEqual(select(read, "max probes scheme='probes of PBF' as 4"), "1.0019")


class Pages(unittest.TestCase):
    def test_generated_parts_are_replaced_and_the_rest_is_kept(self) -> None:
        claims = [f"claims of {paper}" for paper in page.claims(run.figures())]
        parts = ["figures", *claims, *(f"table {name}" for name in grids.grids())]
        text = "before\n" + "".join(
            f"<!-- {part}: written by ./dev papers --table -->\nold\n<!-- end of {part} -->\nkept\n" for part in parts
        )
        new, _ = page.generated({"a": text, "b": "no parts"}, run.figures())
        self.assertEqual(new["b"], "no parts")
        self.assertEqual(new["a"].count("\nkept\n"), len(parts))
        self.assertTrue(new["a"].startswith("before\n"))
        self.assertNotIn("\nold\n", new["a"])
        self.assertEqual(page.generated(new, run.figures())[0], new)
        with self.assertRaisesRegex(Wrong, "one of them twice"):
            page.generated({"a": text, "b": text}, run.figures())


class Files(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def record(self, rows: Any = ROWS, date: str = "2026-11-28") -> Record:
        path = self.folder / "Intel-6-207" / date / "x-f1.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"stamp": STAMP, "rows": rows}))
        return Record(path)

    def test_the_newest_record(self) -> None:
        self.assertIsNone(records.newest("x-f1", self.folder))
        new, old = self.record(), self.record(date="2026-11-02")
        self.assertEqual(records.newest("x-f1", self.folder), new.path)
        self.assertLess(old.path, new.path)

    def test_claims_name_their_record(self) -> None:
        claims = {"claim": [{"claim": "fast", "theirs": "9", "figure": "x-f1", "ours": "{max mlps} Mlps"}]}
        wrong: list[str] = []
        text = page.claims_of(claims, [FIGURE], {"x-f1": self.record()}, wrong)
        self.assertEqual(wrong, [])
        self.assertIn("| fast | 9 | 36 Mlps ([x-f1](", text)
        self.assertIn(
            "Measured on Intel family 6 model 207, 2 cores, 2026-11-28, commit d88269b3 with changes: `x-f1`.", text
        )

    def test_a_table_shows_the_picture_of_its_figure_once(self) -> None:
        record = self.record()
        record.path.with_suffix(".svg").write_text("<svg/>")
        table = {"record": "x-f1", "name": "t", "title": "", "line": "{engine}", "head": "{table}", "cell": "{mlps}"}
        shown: set[Path] = set()
        with mock.patch.object(page, "newest", return_value=record.path), mock.patch.object(page, "grids") as grids:
            grids.return_value = {"t": table}
            first, second = (page.grid("t", [FIGURE], shown, []) for _ in range(2))
        self.assertIn("![rates](", first)
        self.assertEqual(first.split("\n\n![")[0], second)

    def test_a_claim_without_a_record_says_so(self) -> None:
        claims = {"claim": [{"claim": "fast", "theirs": "9", "figure": "x-f1", "ours": "{max mlps} Mlps"}]}
        self.assertIn("| fast | 9 | no record of `x-f1` yet |", page.claims_of(claims, [FIGURE], {"x-f1": None}, []))

    def test_a_claim_without_its_row_is_an_error(self) -> None:
        claims = {"claim": [{"claim": "fast", "theirs": "9", "figure": "x-f1", "ours": "{mlps engine=c}"}]}
        wrong: list[str] = []
        text = page.claims_of(claims, [FIGURE], {"x-f1": self.record()}, wrong)
        self.assertIn("| fast | 9 | its row is missing in the record ([x-f1](", text)
        self.assertEqual(len(wrong), 1)
        self.assertRegex(wrong[0], r"claim 'fast': .*x-f1.json: \{mlps engine=c\}: no row for engine=c")

    def test_claims_are_checked_when_read(self) -> None:
        path = self.folder / "claims.toml"
        for claim, said in {
            'figure = "none"\nours = "{max mlps}"': "a figure that exists",
            'ours = "{max mlps}"': "numbers come from a figure",
            'figure = "x-f1"\nours = "fast"': "numbers come from a figure",
        }.items():
            path.write_text(f'[[X.claim]]\nclaim = "c"\ntheirs = "t"\n{claim}\n')
            with self.assertRaisesRegex(Wrong, said):
                page.claims([FIGURE], path)

    def test_pictures_have_points_of_both(self) -> None:
        theirs = {"name": "A, old", "like": "A", "points": [[8, 100], [9, 90, 110]]}
        picture = {
            "figure": "x-f1",
            "kind": "lines",
            "x": "threads",
            "y": "mlps",
            "series": "{engine}",
            "names": {"a": "A"},
            "x_label": "threads",
            "y_label": "Mlps",
            "theirs": [theirs],
        }
        drawn = pictures.chart(FIGURE, picture, self.record())
        self.assertEqual([series["name"] for series in drawn["series"]], ["A", "b", "A, old (paper)"])
        self.assertEqual([series["colour"] for series in drawn["series"]], [0, 1, 0])
        self.assertEqual(drawn["series"][0]["points"][1], {"x": 2, "y": 36.0, "range": [30.0, 40.0]})
        self.assertEqual(drawn["series"][2]["points"][1], {"x": 9, "y": None, "range": [90, 110]})

    def test_a_picture_with_two_rows_for_a_point_is_an_error(self) -> None:
        picture = {
            "figure": "x-f1",
            "kind": "bars",
            "x": "engine",
            "y": "mlps",
            "series": "all",
            "x_label": "",
            "y_label": "",
        }
        with self.assertRaisesRegex(Wrong, "two rows for 'all' at a"):
            pictures.chart(FIGURE, picture, self.record())

    def test_intervals_stand_in_place_of_the_range(self) -> None:
        rows = [{**row, "mlps_mean": row["mlps"] + 1, "mlps_ci95": 0.5} for row in ROWS]
        picture = {
            "figure": "x-f1",
            "kind": "bars",
            "x": "table",
            "y": "mlps",
            "series": "{engine}",
            "x_label": "",
            "y_label": "",
        }
        drawn = pictures.chart(FIGURE, picture, self.record(rows))
        self.assertEqual(drawn["series"][0]["points"][0], {"x": 0, "y": 11.0, "range": [10.5, 11.5]})
        self.assertIn("95 % confidence", drawn["notes"][0])

    def test_a_device_is_named_in_words(self) -> None:
        record = self.record([{**row, "device": "opencl:0"} for row in ROWS])
        self.assertEqual(record.device(), "", "the program did not say what it is")
        record.said = "a remark\nopencl:0 is a card\n"
        picture = {
            "figure": "x-f1",
            "kind": "bars",
            "x": "table",
            "y": "mlps",
            "series": "{engine}",
            "x_label": "",
            "y_label": "",
        }
        self.assertEqual(pictures.chart(FIGURE, picture, record)["notes"][1], "opencl:0 is a card")
        record.said = ""
        self.assertNotIn("opencl:0 is a card", pictures.chart(FIGURE, picture, record)["notes"])


class Tables(unittest.TestCase):
    """Tables of a record's rows."""

    def table(self, rows: Any = ROWS, **changed: Any) -> str:
        form: dict[str, Any] = {"name": "t", "record": "x-f1", "title": "engine", "line": "`{engine}`"}
        form |= {"head": "{table}", "cell": "{mlps:.1f}"}
        record = Record.__new__(Record)
        record.path, record.rows = Path("x-f1.json"), rows
        return grids.grid_of(form | changed, record)

    def test_lines_and_columns(self) -> None:
        behind = [{"head": "memory", "cell": "{memory}"}, {"head": "KiB", "cell": "{memory_kib}"}]
        self.assertEqual(
            self.table(behind=behind),
            "| engine | one | two | memory | KiB |\n|---|--:|--:|--:|--:|\n"
            "| `a` | 10.0 | 36.0 | 0.0 MiB | 2 |\n| `b` | 5.0 | 12.0 | 1.0 MiB | 1,024 |",
        )
        self.assertEqual(self.table(where=["table=two", "engine=b"]).splitlines()[2:], ["| `b` | 12.0 |"])

    def test_what_has_no_number(self) -> None:
        refused = {"engine": "c", "table": "one", "mlps": "", "wrong": None}
        wrong = {"engine": "d", "table": "one", "mlps": None, "wrong": 3}
        lines = self.table([*ROWS, refused, wrong]).splitlines()
        self.assertEqual(lines[-2:], ["| `c` |  |  |", "| `d` | wrong |  |"])

    def test_wrong_ones_are_errors(self) -> None:
        cases: list[tuple[dict[str, Any], str]] = [
            ({"head": "rate"}, "two rows for `a`, rate"),
            ({"cell": "{watts}"}, "no column 'watts'"),
            ({"where": ["engine=e"]}, "no row"),
        ]
        for changed, said in cases:
            with self.assertRaisesRegex(Wrong, f"x-f1.json: table t: .*{said}"):
                self.table(**changed)

    def test_each_table_has_its_place(self) -> None:
        pages = {str(path): path.read_text() for path in page.PAGES}
        first = next(iter(grids.grids()))
        for name in [f"table {first}", "figures"]:
            mark = f"<!-- {name}: written"
            without = {path: text.replace(mark, "<!-- nothing: written") for path, text in pages.items()}
            with self.assertRaisesRegex(Wrong, name):
                page.generated(without, run.figures())


if __name__ == "__main__":
    unittest.main()
