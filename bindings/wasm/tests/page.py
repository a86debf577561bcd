"""The demo page in a headless Chromium: `python3 -m unittest page` here, with the page in FIBULA_PAGE (./dev site).

Where FIBULA_BIN names the command, the page's answers are compared with it.
"""

import functools
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parents[3] / "crates" / "server" / "page-tests"))
from chromium import Browser  # noqa: E402

PAGE = Path(os.environ["FIBULA_PAGE"]).resolve()
COMMAND = os.environ.get("FIBULA_BIN") or None
LOG = "time,src,dst\n1,10.1.2.3,2001:db8::1\n2,8.8.8.8,x\n3,,::ffff:192.168.1.1\n"
TABLE = "prefix,site\n10.0.0.0/8,hq\n10.1.0.0/16,lab <b>\n"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.page = self.browser.page()
        self.addCleanup(self.page.close)
        self.open((PAGE / "index.html").as_uri())

    def open(self, url):
        self.page.open(url)
        self.page.says("Loading the reader: done", "#status")

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    def choose(self, selector, path):
        document = self.page.send("DOM.getDocument")["root"]["nodeId"]
        node = self.page.send("DOM.querySelector", nodeId=document, selector=selector)["nodeId"]
        self.page.send("DOM.setFileInputFiles", nodeId=node, files=[path])

    def look_up(self, text):
        self.page.run(f"find('address').value = {json.dumps(text)}")
        self.page.run("find('status').textContent = ''")
        self.page.click("#lookup button")
        self.page.until("find('status').textContent && !find('status').textContent.endsWith('...')")
        return self.page.texts("#answer tbody tr:first-child td")

    def saved(self):
        """What the link saves."""
        self.browser.send(
            "Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.folder), browserContextId=self.page.context
        )
        name = self.page.run("document.querySelector('#result a').download")
        size = self.page.run("Number(document.querySelector('#result a').textContent.match(/\\(([\\d,]+) byte/)[1].replaceAll(',', ''))")
        self.page.click("#result a")
        path = self.folder / name
        for _ in range(500):
            if path.exists() and path.stat().st_size == size:
                return path.read_text(encoding="utf-8")
            self.page.until("true")
            threading.Event().wait(0.02)
        self.fail(f"{name} was not saved: {list(self.folder.iterdir())}")

    def test_an_address_of_the_sample(self):
        self.assertIn("IPv4 routes", self.page.text("#table"))
        self.assertEqual(self.look_up("192.0.0.9"), ["192.0.0.9/32", "port control protocol anycast", "RFC 7723"])
        self.assertEqual(self.page.run("document.querySelectorAll('#answer tbody tr').length"), 2)
        self.assertEqual(self.look_up("2001:db8::7")[0], "2001:db8::/32")
        self.look_up("192.0.0.0/24")
        self.assertIn("Routes inside", self.page.text("#answer"))
        self.look_up("8.8.8.8")
        self.assertIn("No route covers", self.page.text("#answer"))
        self.look_up("not an address")
        self.page.says("is not an address", "#status")
        self.assertEqual(self.page.errors, [])

    def test_a_table_of_ones_own(self):
        self.choose("#table-file", self.file("sites.csv", TABLE))
        self.page.says("sites.csv: 2 IPv4 routes", "#table")
        # A value is text and never HTML.
        self.assertEqual(self.look_up("10.1.2.3"), ["10.1.0.0/16", "lab <b>"])
        # What is no table is refused, and the open one stays.
        for name, content in [("page.html", "<!doctype html>"), ("t.fib", b"\x89FIBULA\n" + bytes(99)), ("empty.csv", "")]:
            self.choose("#table-file", self.file(name, content))
            self.page.says(name, "#status")
            self.page.until("find('status').className === 'bad'")
            self.assertEqual(self.look_up("10.1.2.3")[0], "10.1.0.0/16")
        self.assertEqual(self.page.errors, [])

    def test_rows_as_text_and_as_a_file(self):
        self.page.click("#annotate button")
        self.page.says("3 rows (csv), 5 addresses: 4 matched", "#result")
        self.assertIn("1,192.168.1.7,198.51.100.4,1500,private use,RFC 1918", self.page.text("#result pre"))
        self.choose("#rows-file", self.file("log.csv", LOG))
        self.page.says("log-annotated.csv", "#result")
        rows = self.saved()
        self.assertEqual(rows.splitlines()[1], "1,10.1.2.3,2001:db8::1,private use,RFC 1918,documentation,RFC 3849")
        self.assertEqual(len(rows.splitlines()), 4)
        self.choose("#rows-file", self.file("flows.parquet", b"PAR1 PAR1"))
        self.page.says("need the command", "#status")
        self.assertEqual(self.page.text("#result"), "")

    def test_rows_are_freed_when_others_replace_them(self):
        self.page.run("globalThis.revoked = []; URL.revokeObjectURL = (url) => revoked.push(url)")
        self.page.click("#annotate button")
        self.page.says("3 rows", "#result")
        first = self.page.run("document.querySelector('#result a').href")
        self.choose("#rows-file", self.file("log.csv", LOG))
        self.page.says("log-annotated.csv", "#result")
        second = self.page.run("document.querySelector('#result a').href")
        self.assertEqual(self.page.run("revoked"), [first])
        self.choose("#table-file", self.file("sites.csv", TABLE))
        self.page.says("sites.csv: 2 IPv4 routes", "#table")
        self.assertEqual(self.page.run("revoked"), [first, second])

    def test_a_reader_that_failed_is_started_again(self):
        self.page.run(
            "reader.wasm = { ...reader.wasm, page_lookup() { throw new WebAssembly.RuntimeError('unreachable'); } }; 0"
        )
        self.look_up("10.1.2.3")
        self.page.says("the reader failed (most likely for lack of memory)", "#status")
        self.choose("#table-file", self.file("sites.csv", TABLE))
        self.page.says("sites.csv: 2 IPv4 routes", "#table")
        self.assertEqual(self.look_up("10.1.2.3")[0], "10.1.0.0/16")

    def test_a_file_is_dropped(self):
        path = self.file("sites.csv", TABLE)
        x, y = self.page.run("(() => { const b = find('table-part').getBoundingClientRect(); return [b.x + 20, b.y + 20]; })()")
        for kind in ("dragEnter", "dragOver", "drop"):
            data = {"items": [], "files": [path], "dragOperationsMask": 1}
            self.page.send("Input.dispatchDragEvent", type=kind, x=x, y=y, data=data)
        self.page.says("sites.csv: 2 IPv4 routes", "#table")

    def test_nothing_leaves_the_page(self):
        self.assertEqual(self.page.run("WebAssembly.Module.imports(reader.module).length"), 0)
        self.look_up("10.0.0.1")
        self.page.click("#annotate button")
        self.page.says("3 rows", "#result")
        folder = PAGE.as_uri()
        own = [url for url in self.page.requests if url.startswith((f"{folder}/", "data:", "blob:"))]
        self.assertEqual(own, self.page.requests)
        self.assertEqual(self.page.errors, [])
        # The browser refuses what a changed program would try.
        refused = "fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')"
        self.assertEqual(self.page.run(refused), "refused")
        self.page.until("true")
        self.assertTrue(any("Content Security Policy" in error for error in self.page.errors), self.page.errors)

    def test_light_and_dark_and_narrow(self):
        colours = []
        for scheme in ("light", "dark"):
            self.page.media(prefers_color_scheme=scheme)
            colours.append(self.page.run("getComputedStyle(document.body).backgroundColor"))
        self.assertEqual(len(set(colours)), 2)
        self.page.size(360, 740, mobile=True)
        self.page.click("#annotate button")
        self.page.says("3 rows", "#result")
        self.assertLessEqual(self.page.run("document.documentElement.scrollWidth"), 360)

    def test_every_field_has_a_name(self):
        fields = self.page.run(
            "[...document.querySelectorAll('input, textarea')].filter(e => !e.labels.length).map(e => e.id)"
        )
        self.assertEqual(fields, [])
        ids = self.page.run("[...document.querySelectorAll('[id]')].map(e => e.id)")
        self.assertEqual(len(ids), len(set(ids)))
        # By the keyboard alone: the address, Enter.
        self.page.run("find('address').focus(); find('address').value = '127.0.0.1'")
        self.page.key("Enter")
        self.page.says("loopback", "#answer")

    def test_from_a_server(self):
        handler = functools.partial(Quiet, directory=str(PAGE))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.open(f"http://127.0.0.1:{server.server_port}/index.html")
        self.assertEqual(self.look_up("fe80::1")[0], "fe80::/10")

    @unittest.skipUnless(COMMAND, "FIBULA_BIN names no command")
    def test_the_command_gives_the_same(self):
        sample = re.search(r'id="sample">(.*?)</script>', (PAGE / "index.html").read_text(encoding="utf-8"), re.DOTALL)[1]
        table, log = self.file("sample.csv", sample), self.file("log.csv", LOG)
        command = [COMMAND, "annotate", "--table", table, "--quiet", log]
        wanted = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        self.choose("#rows-file", log)
        self.page.says("3 rows", "#result")
        self.assertEqual(self.saved(), wanted)

    @unittest.skipUnless(COMMAND, "FIBULA_BIN names no command")
    def test_a_snapshot_of_a_whole_table(self):
        path = str(self.folder / "full.fib")
        build = [COMMAND, "build", "gen:v4:2024:900000:1,gen:v6:2024:200000:1", "-o", path]
        subprocess.run(build, check=True, capture_output=True)
        self.choose("#table-file", path)
        self.page.says("900,000 IPv4 routes", "#table", seconds=60)
        traffic = [COMMAND, "gen", "traffic", "--format", "flows", "--count", "20000"]
        rows = subprocess.run(traffic, check=True, capture_output=True).stdout
        log = self.file("flows.csv", rows)
        wanted = subprocess.run(
            [COMMAND, "annotate", "--table", path, "--quiet", log], check=True, capture_output=True, text=True
        ).stdout
        self.choose("#rows-file", log)
        self.page.says("20,000 rows", "#result", seconds=60)
        self.assertEqual(self.saved(), wanted)


if __name__ == "__main__":
    unittest.main()
