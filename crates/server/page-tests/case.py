"""What all tests of the looking glass need: a server with the routes of world.py, a page, and what the API says."""

import atexit
import json
import os
import unittest
import urllib.error
import urllib.request
from functools import cache

from chromium import Browser, program
from world import world

COMMAND = os.environ.get("FIBULA_GLASS_COMMAND")
ADDRESS = "193.0.6.139"
PREFIX = "193.0.6.0/24"


@cache
def browser():
    """One for all tests: each has a page with an empty storage of its own."""
    started = Browser()
    atexit.register(started.close)
    return started


class Case(unittest.TestCase):
    """A server with the routes of world.py, and a page. A script's error in the page fails the test."""

    fails = False

    @classmethod
    def setUpClass(cls):
        if not program():
            raise unittest.SkipTest("no Chromium is installed")

    def setUp(self):
        if COMMAND and not self.fails:
            from real import Real
            self.world = Real(COMMAND)
        else:
            self.world = world().start()
        self.addCleanup(self.world.close)
        self.page = browser().page()
        self.addCleanup(self.page.close)

    def tearDown(self):
        self.assertEqual(self.page.errors, [], "errors in the page")
        foreign = [u for u in self.page.requests if not u.startswith((self.world.url, "data:", "about:"))]
        self.assertEqual(foreign, [], "requests to elsewhere")

    def open(self, address="/"):
        self.page.open(self.world.url + address)

    def api(self, path):
        with urllib.request.urlopen(f"{self.world.url}/v1/{path}") as answer:
            return json.load(answer)

    def sentence(self, path):
        with self.assertRaises(urllib.error.HTTPError) as refused:
            self.api(path)
        with refused.exception as answer:
            return json.load(answer)["error"]

    def ask(self, text):
        self.page.key("/")
        self.page.type(text)
        self.page.key("Enter")

    def query(self):
        return self.page.run("location.search")

    def chains(self):
        """What the page shows: table -> prefixes."""
        return self.page.run("""Object.fromEntries([...document.querySelectorAll('.chain')].map(c =>
            [c.querySelector('h2').firstChild.data, [...c.querySelectorAll('li > div > a.mono')].map(a => a.innerText)]))""")

    def looked_up(self, text, table=""):
        answer = self.api(f"lookup/{text}" + (f"?table={table}" if table else ""))
        return {t["table"]: [r["prefix"] for r in t["covering"]] for t in answer["tables"] if t["covering"]}

    def cells(self, selector):
        return self.page.run(f"[...document.querySelectorAll({json.dumps(selector)})].map(r => [...r.cells].map(c => c.innerText))")

    def columns(self, selector):
        """Rows of a table, as name of the column -> text."""
        return self.page.run(f"[...document.querySelectorAll({json.dumps(selector)})].map(r => Object.fromEntries([...r.cells].map(c => [c.dataset.name, c.innerText])))")
