"""The looking glass in a real browser: what a person types and clicks, compared with what the API says.

`./dev glass` runs this against the real server, which FIBULA_GLASS_COMMAND names (see real.py), and without it against
mock.py. Tests that need a server to fail on command always have the latter."""

import json
import os
import time
import unittest
import urllib.error
import urllib.request
from urllib.parse import quote

from chromium import SHIFT, Browser, program
from world import ATTACK, bgp, world

COMMAND = os.environ.get("FIBULA_GLASS_COMMAND")
ADDRESS = "193.0.6.139"
PREFIX = "193.0.6.0/24"


def setUpModule():
    global browser
    if not program():
        raise unittest.SkipTest("no Chromium is installed")
    browser = Browser()


def tearDownModule():
    if program():
        browser.close()


class Case(unittest.TestCase):
    """A server with the routes of world.py, and a page. A script's error in the page fails the test."""

    fails = False

    def setUp(self):
        if COMMAND and not self.fails:
            from real import Real
            self.world = Real(COMMAND)
        else:
            self.world = world().start()
        self.addCleanup(self.world.close)
        self.page = browser.page()
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


class Overview(Case):
    def test_tables_are_those_of_the_server(self):
        self.open()
        self.page.until("document.querySelectorAll('.all tbody tr').length")
        rows = {(row["Table"], row["Family"]): row for row in self.columns(".all tbody tr")}
        for table in self.api("table")["tables"]:
            for key, family in [("ipv4", "IPv4"), ("ipv6", "IPv6")]:
                said = table[key]
                if not said["routes"]:
                    continue
                row = rows[table["name"], family]
                self.assertEqual(row["Routes"], f"{said['routes']:,}")
                self.assertEqual(row["Engine"], said["engine"])
                self.assertEqual(row["Generation"], f"{said['generation']:,}")
        self.assertIn(self.api("table")["version"], self.page.text("footer"))

    def test_peers_and_sources_are_those_of_the_server(self):
        self.open()
        self.page.until("document.querySelectorAll('.feeds section:last-child tbody tr').length")
        answer = self.api("peers")
        rows = {row["Peer"]: row for row in self.columns(".feeds section:last-child tbody tr")}
        self.assertEqual(set(rows), {peer["name"] for peer in answer["peers"]})
        for peer in answer["peers"]:
            self.assertEqual(rows[peer["name"]]["State"], peer["state"])
            self.assertEqual(rows[peer["name"]]["IPv4"], f"{peer['routes']['ipv4']:,}")
        shown = [row["Source"] for row in self.columns(".feeds section:first-child tbody tr")]
        self.assertEqual(shown, [source["name"] for source in answer["sources"]])

    def test_lengths_are_told_by_pointer_and_keys(self):
        self.open("/?table=bgp")
        lengths = self.api("histogram?table=bgp")["ipv4"]
        self.page.says(f"{sum(lengths)} routes", ".lengths")
        self.page.run("document.querySelector('.lengths svg').focus()")
        self.page.key("ArrowRight")
        most = lengths.index(max(lengths))
        self.page.says(f"/{most}: {max(lengths)} routes", ".lengths")
        width = self.page.run("document.querySelector('.lengths svg').clientWidth")
        self.page.move(".lengths svg", (44 + (width - 44) * (8.5 / 33)) / width, 0.5)
        self.page.says(f"/8: {lengths[8]} route", ".lengths")

    def test_rates_follow_the_tables_and_stop_while_hidden(self):
        self.open()
        self.page.until("document.querySelector('.rates polyline')")
        for i in range(40):
            self.world.announce("bgp", "198.51.100.0/24", 0, bgp(f"64500 {i + 1}", "10.0.0.1"))
        self.page.until("Number(document.querySelector('.rates .big').innerText) > 0")
        self.page.run("Object.defineProperty(document, 'hidden', {value: true, configurable: true}); document.dispatchEvent(new Event('visibilitychange'))")
        time.sleep(0.5)  # a request may be under way
        before = len(self.page.requests)
        time.sleep(2.5)
        self.assertEqual(self.page.requests[before:], [])
        self.page.run("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
        self.page.until(f"document.querySelectorAll('.rates polyline').length")
        self.assertGreater(len(self.page.requests), before)

    def test_a_table_that_is_not_there_is_said_so(self):
        self.open("/?table=none")
        self.page.says("There is no table none")


class Map(Case):
    def at(self, cell):
        """Where a /16 lies, in shares of the map's side: the curve, from the article on it, with the last /8s at the right."""
        x = y = 0
        side = 1
        while side < 256:
            right, down = (cell >> 1) & 1, (cell ^ (cell >> 1)) & 1
            if not down:
                if right:
                    x, y = side - 1 - x, side - 1 - y
                x, y = y, x
            x, y, cell, side = x + side * right, y + side * down, cell >> 2, side * 2
        return (x + 0.5) / 256, (y + 0.5) / 256

    def test_pointer_keys_and_click(self):
        self.open("/?table=bgp")
        self.page.until("document.querySelector('canvas').dataset.ready")
        shares = urllib.request.urlopen(f"{self.world.url}/v1/hilbert?table=bgp").read()
        for cell in [(10 << 8) + 77, 193 << 8, (8 << 8) + 8, 255 << 8, 0]:
            self.page.move("canvas", *self.at(cell))
            self.page.says(f"{cell >> 8}.{cell & 255}.0.0/16 in {cell >> 8}.0.0.0/8: {round(shares[cell] / 255 * 100)} %", ".map output")
        self.page.run("document.querySelector('canvas').focus()")
        self.page.move("canvas", *self.at(0))
        self.page.key("ArrowRight")
        self.page.says("0.1.0.0/16", ".map output")
        self.page.key("ArrowDown", SHIFT)
        self.page.says("in 3.0.0.0/8", ".map output")
        self.page.key("ArrowUp", SHIFT)
        self.page.key("Enter")
        self.page.until("location.search === '?q=0.1.0.0%2F16&table=bgp'")
        self.page.says("0.0.0.0/0")
        self.open("/?table=bgp")
        self.page.until("document.querySelector('canvas').dataset.ready")
        dx, dy = self.at(193 << 8)
        self.page.click("canvas", dx=dx, dy=dy)
        self.page.until("location.search === '?q=193.0.0.0%2F16&table=bgp'")

    def test_the_address_is_marked(self):
        self.open(f"/?q={ADDRESS}&table=bgp")
        self.page.until("document.querySelector('canvas')?.dataset.ready")
        self.page.says(f"{ADDRESS} is marked", ".map")
        dx, dy = self.at(193 << 8)
        mark, elsewhere = self.page.run(f"""(() => {{
            const c = document.querySelector('canvas'), g = c.getContext('2d');
            const near = (x, y) => [...g.getImageData(x * c.width - 8, y * c.height - 8, 16, 16).data].filter((v, i) => i % 4 === 0 && v > 200 && 1).length;
            const sign = (x, y) => {{ const d = g.getImageData(x * c.width - 8, y * c.height - 8, 16, 16).data; let n = 0;
                for (let i = 0; i < d.length; i += 4) if (d[i] > 180 && d[i + 2] < 80) n++; return n; }};
            return [sign({dx}, {dy}), sign(0.3, 0.7)]; }})()""")
        self.assertGreater(mark, 5)
        self.assertEqual(elsewhere, 0)


class Answers(Case):
    def test_an_address_in_two_tables(self):
        self.open()
        self.ask(ADDRESS)
        self.page.until("document.querySelector('.detail .best')")
        self.assertEqual(self.query(), f"?q={ADDRESS}")
        self.assertEqual(self.page.text("h1"), ADDRESS)
        expected = self.looked_up(ADDRESS)
        self.assertEqual(set(expected), {"bgp", "fpm"})
        self.assertEqual(self.chains(), expected)
        self.assertEqual(self.page.texts(".chain li.used a.mono"), [prefixes[0] for prefixes in expected.values()])
        self.assertIn(PREFIX, self.page.text("#said"))

    def test_every_path_of_a_prefix_and_why(self):
        self.open(f"/?q={ADDRESS}&table=bgp")
        self.page.until("document.querySelector('.detail .best')")
        for prefix in [PREFIX, "193.0.0.0/21"]:
            self.page.click(".chain a.mono", prefix)
            self.page.says(prefix, ".detail h2")
            self.page.until("document.querySelector('.detail .best')")
            route = self.api(f"routes/{quote(prefix, safe='')}?view=exact&table=bgp")["tables"][0]["routes"][0]
            rows = self.columns(".detail .paths tbody tr")
            self.assertEqual(len(rows), len(route["paths"]))
            self.assertEqual(rows[0]["Result"], "best")
            by_peer = {row["Peer"]: row for row in rows}
            for path in route["paths"]:
                row = by_peer[path["peer"]["name"]]
                self.assertEqual(row["Result"], "best" if path["best"] else f"lost by {path['lost_by']}")
                self.assertEqual(row["Next hop"], path["attributes"]["next_hop"])
            self.assertIn(route["why"], self.page.text(".detail"))
        self.assertEqual(self.query(), f"?q={ADDRESS}&table=bgp&prefix=193.0.0.0%2F21")
        self.assertEqual(self.page.texts("td.decided"), ["64501 3257 1103 3333"])

    def test_next_hops_of_a_kernel(self):
        self.open("/?q=192.0.2.1&table=fpm")
        self.page.says("blackhole", ".chain")
        self.open("/?q=193.0.0.0/21&table=fpm")
        self.page.says("via 10.0.0.1, interface 3; via 10.0.0.2, interface 3", ".detail")

    def test_a_prefix_with_what_covers_it_and_what_it_covers(self):
        self.open()
        self.ask("193.0.0.0/21")
        self.page.says("193.0.6.0/24")
        covering = self.api("routes/193.0.0.0%2F21?view=covering")["tables"]
        shown = self.chains()
        for table in covering:
            self.assertEqual(set(shown.get(table["table"], [])), {r["prefix"] for r in table["routes"]})
        self.assertEqual(self.page.texts(".prefixes a"), [PREFIX])
        self.page.click(".prefixes a", PREFIX)
        self.page.until(f"document.querySelector('h1')?.innerText === '{PREFIX}'")
        self.page.says("None.")

    def test_a_prefix_that_no_table_has(self):
        self.open("/?q=193.0.6.128/25")
        self.page.says("No table has a route for exactly 193.0.6.128/25")
        self.assertEqual(self.chains()["bgp"][0], PREFIX)

    def test_ipv6(self):
        self.open("/?q=2001:67c:2e8:22::c100:68b")
        self.page.until("document.querySelector('.detail .best')")
        self.assertEqual(self.chains(), self.looked_up("2001:67c:2e8:22::c100:68b"))
        self.assertFalse(self.page.run("Boolean(document.querySelector('canvas'))"))
        self.page.says("No route covers 2001:67c:2e8:22::c100:68b in fpm")

    def test_the_prefixes_of_an_as(self):
        self.open()
        self.ask("AS3333")
        self.page.says("2001:67c:2e8::/48")
        expected = [p for t in self.api("search?q=AS3333")["origins"] for p in t["prefixes"]]
        self.assertGreater(len(expected), 4)
        self.assertEqual(sorted(self.page.texts(".prefixes a")), sorted(expected))
        self.assertEqual(self.chains(), {})
        self.ask("AS64999")
        self.page.says("No table has a best route that begins at AS64999")

    def test_a_peer_by_part_of_its_name(self):
        self.open()
        self.ask("10.0.0.2)")
        self.page.until("document.querySelector('main tbody tr')")
        peer = next(p for p in self.api("peers")["peers"] if "10.0.0.2" in p["name"])
        self.assertEqual(self.page.text("h1"), peer["name"])
        rows = self.columns("main tbody tr")
        self.assertEqual([(r["Peer"], r["State"], r["IPv4"]) for r in rows], [(peer["name"], peer["state"], str(peer["routes"]["ipv4"]))])

    def test_links_lead_from_one_to_the_other(self):
        self.open(f"/?q={ADDRESS}&table=bgp")
        self.page.click(".detail .path a", "1103")
        self.page.until("document.querySelector('h1')?.innerText === 'AS1103'")
        self.page.run("history.back()")
        self.page.click(".detail td a", "AS64501")
        self.page.says("AS64501 (10.0.0.2)", "h1")

    def test_text_that_means_nothing(self):
        self.open()
        self.ask("no such thing")
        self.page.says('"no such thing" is no address, no prefix, no AS number and no part of the name of a peer.')
        self.assertEqual(self.api("search?q=no+such+thing")["is"], "nothing")
        self.open("/?q=8.8.8.8&table=none")
        self.page.until("document.querySelector('main [role=alert]')")
        self.assertEqual(self.page.text("main"), self.sentence("lookup/8.8.8.8?table=none"))

    def test_names_and_paths_are_text(self):
        for address in ["/", "/?q=203.0.113.7", f"/?q={quote(ATTACK)}", "/?q=AS64667", "/?q=203.0.113.0/24"]:
            self.open(address)
            self.page.says("<script>")
            self.assertFalse(self.page.run("Boolean(window.attacked || document.querySelector('main script'))"))
        self.open("/?q=203.0.113.7")
        self.page.until("document.querySelector('.detail .best')")
        self.assertIn(f"64666 {ATTACK} 64667", self.page.text(".detail"))


class Moving(Case):
    def test_back_forward_and_shared_links(self):
        self.open("/?q=193.0.6.139&table=bgp&prefix=193.0.0.0%2F16")
        self.page.says("193.0.0.0/16", ".detail h2")
        self.assertEqual(self.chains(), self.looked_up(ADDRESS, "bgp"))
        self.assertEqual(self.page.run("document.getElementById('table').value"), "bgp")
        self.ask("8.8.8.8")
        self.page.until("document.querySelector('h1')?.innerText === '8.8.8.8'")
        self.page.click("#home")
        self.page.until("document.querySelector('.all tbody tr')")
        self.assertEqual(self.page.run("document.getElementById('q').value"), "")
        self.page.run("history.back()")
        self.page.until("document.querySelector('h1')?.innerText === '8.8.8.8'")
        self.page.run("history.back()")
        self.page.says("193.0.0.0/16", ".detail h2")
        self.assertEqual(self.page.run("document.getElementById('q').value"), ADDRESS)
        self.page.run("history.forward()")
        self.page.until("document.querySelector('h1')?.innerText === '8.8.8.8'")
        self.assertTrue(self.page.run("document.title").startswith("8.8.8.8 in bgp"))

    def test_choosing_a_table_asks_again(self):
        self.open(f"/?q={ADDRESS}")
        self.page.until("document.querySelectorAll('.chain').length === 2")
        self.page.run("(() => { const s = document.getElementById('table'); s.value = 'fpm'; s.dispatchEvent(new Event('change', {bubbles: true})); })()")
        self.page.until("document.querySelectorAll('.chain').length === 1")
        self.assertEqual(self.chains(), self.looked_up(ADDRESS, "fpm"))
        self.assertEqual(self.query(), f"?q={ADDRESS}&table=fpm")

    def test_with_the_keyboard_alone(self):
        self.open()
        self.page.until("document.querySelector('.all tbody tr')")
        self.page.key("/")
        self.assertEqual(self.page.run("document.activeElement.id"), "q")
        self.page.type(ADDRESS)
        self.page.key("Enter")
        self.page.until("document.querySelector('.detail .best')")
        for _ in range(30):
            self.page.key("Tab")
            if self.page.run("document.activeElement.matches('.chain a.mono')"):
                break
        first = self.page.run("document.activeElement.innerText")
        self.assertEqual(first, self.looked_up(ADDRESS)["bgp"][0])
        outline = self.page.run("getComputedStyle(document.activeElement).outlineStyle")
        self.assertEqual(outline, "solid")
        while self.page.run("document.activeElement.innerText") != "193.0.0.0/21":
            self.page.key("ArrowDown")
        self.page.key("Enter")
        self.page.says("193.0.0.0/21", ".detail h2")
        self.assertEqual(self.page.run("document.activeElement.innerText"), "193.0.0.0/21")
        self.page.key("Home")
        self.assertEqual(self.page.run("document.activeElement.innerText"), first)
        self.page.key("Escape")
        self.assertEqual(self.page.run("document.activeElement.id"), "q")
        self.page.key("Escape")
        self.assertEqual(self.page.run("document.getElementById('q').value"), "")
        self.page.key("Escape")
        self.assertEqual(self.page.run("document.activeElement === document.body"), True)


class Looks(Case):
    def background(self):
        return self.page.run("getComputedStyle(document.body).backgroundColor")

    def test_dark_and_light(self):
        self.page.media(prefers_color_scheme="light")
        self.open()
        light = self.background()
        self.page.media(prefers_color_scheme="dark")
        dark = self.background()
        self.assertNotEqual(light, dark)
        self.page.click("#theme")
        self.assertEqual((self.page.text("#theme"), self.background()), ("Theme: light", light))
        self.open()
        self.page.until("document.getElementById('theme')?.innerText === 'Theme: light'")
        self.assertEqual(self.background(), light)
        self.page.media(prefers_color_scheme="light")
        self.page.click("#theme")
        self.assertEqual((self.page.text("#theme"), self.background()), ("Theme: dark", dark))
        self.page.click("#theme")
        self.assertEqual((self.page.text("#theme"), self.background()), ("Theme: auto", light))

    def test_no_sideways_scrolling_on_any_width(self):
        for address, there in [("/", ".feeds tbody tr"), (f"/?q={ADDRESS}", ".detail .best"), ("/?q=AS3333", ".prefixes"),
                               ("/?q=10.0.0.2)", "main tbody tr"), (f"/?q={'x' * 200}", ".problem"), ("/?q=203.0.113.7", ".detail .best")]:
            self.page.size(1280, 800)
            self.open(address)
            self.page.until(f"document.querySelector('{there}')")
            for width in [360, 700, 1000, 1920]:
                self.page.size(width, 800, mobile=width < 500)
                with self.subTest(address=address, width=width):
                    self.assertLessEqual(self.page.run("document.documentElement.scrollWidth"), width)

    def test_prints_and_does_not_move(self):
        self.open(f"/?q={ADDRESS}")
        self.page.until("document.querySelector('.detail .best')")
        self.page.media("print")
        self.assertEqual(self.page.run("getComputedStyle(document.getElementById('ask')).display"), "none")
        self.assertTrue(self.page.pdf().startswith(b"%PDF"))
        self.page.media(prefers_reduced_motion="reduce")
        self.world.announce("bgp", PREFIX, 1, bgp("64501 174 3333", "10.0.0.2"))
        self.page.until("document.querySelector('.fresh')")
        self.assertEqual(self.page.run("document.getAnimations().length"), 0)

    def test_everything_has_a_name_for_those_who_listen(self):
        for address in ["/", f"/?q={ADDRESS}"]:
            self.open(address)
            self.page.until("document.querySelector('main table') && document.querySelector('canvas').dataset.ready")
            nodes = self.page.send("Accessibility.getFullAXTree")["nodes"]
            roles = [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes if not n["ignored"]]
            nameless = [role for role, name in roles if role in ("link", "button", "searchbox", "combobox", "image", "table", "group") and not name.strip()]
            self.assertEqual(nameless, [])
            self.assertIn("status", [role for role, _ in roles])


class Live(Case):
    def test_a_change_appears(self):
        self.open(f"/?q={ADDRESS}&table=bgp")
        self.page.says("live", ".detail .live")
        self.page.until("document.querySelectorAll('.changes li').length")
        before = len(self.page.texts(".changes li"))
        self.world.announce("bgp", PREFIX, 1, bgp("64501 6939 3333", "10.0.0.2", local_pref=200))
        self.page.says("64501 6939 3333", ".changes li:first-child")
        self.page.says("64501 6939 3333", ".detail .best")
        self.page.says("64501 6939 3333", ".chain li.used")
        self.assertEqual(len(self.page.texts(".changes li")), before + 1)
        past = self.api(f"history?prefix={quote(PREFIX, safe='')}&table=bgp")["changes"]
        self.assertEqual(len(past), before + 1)
        tooltip = self.page.run("document.querySelector('.changes time').title")
        self.assertEqual(tooltip[:19], past[0]["time"][:19].replace("T", " "))
        self.assertTrue(tooltip.endswith(" UTC"))

    def test_a_route_that_goes_gives_way_to_the_next(self):
        self.open(f"/?q={ADDRESS}&table=bgp")
        self.page.says("live", ".detail .live")
        self.world.withdraw("bgp", PREFIX, 0)
        self.world.withdraw("bgp", PREFIX, 1)
        self.page.until("document.querySelector('.chain li.used a.mono').innerText === '193.0.0.0/21'")
        self.assertEqual(self.chains(), self.looked_up(ADDRESS, "bgp"))
        # Nobody chose the prefix that went, so the new match is shown.
        self.page.says("193.0.0.0/21", ".detail h2")

    def test_a_chosen_prefix_that_goes_is_said_to_be_gone(self):
        self.open(f"/?q={ADDRESS}&table=bgp&prefix={quote(PREFIX, safe='')}")
        self.page.says("live", ".detail .live")
        self.world.withdraw("bgp", PREFIX, 0)
        self.world.withdraw("bgp", PREFIX, 1)
        self.page.says(f"The table bgp has no route for exactly {PREFIX}", ".detail")
        self.page.says("gone, no route is left", ".changes li:first-child")

    def test_changes_of_other_prefixes_do_not_appear(self):
        self.open(f"/?q=8.8.8.8&table=bgp")
        self.page.says("live", ".detail .live")
        self.page.until("document.querySelectorAll('.changes li').length")
        before = self.page.texts(".changes li")
        self.world.announce("bgp", PREFIX, 1, bgp("64501 6939 3333", "10.0.0.2", local_pref=200))
        self.world.announce("bgp", "8.8.8.0/24", 1, bgp("64501 15169", "10.0.0.2", local_pref=300))
        self.page.says("64501 15169", ".changes li:first-child")
        self.assertEqual(len(self.page.texts(".changes li")), len(before) + 1)

    def test_the_server_goes_and_comes_back(self):
        self.open(f"/?q={ADDRESS}&table=bgp")
        self.page.says("live", ".detail .live")
        self.world.stop()
        self.page.says("The server cannot be reached.", "#lost")
        self.page.says("What you see is from", "#lost")
        self.page.says("not live", ".detail .live")
        self.assertTrue(self.page.run("document.body.classList.contains('stale')"))
        self.assertIn(PREFIX, self.page.text(".chain"))
        self.world.restart()
        self.page.until("document.getElementById('lost').hidden")
        self.assertFalse(self.page.run("document.body.classList.contains('stale')"))
        self.page.until("document.querySelector('.detail .live')?.innerText.startsWith('live')")
        self.world.announce("bgp", PREFIX, 1, bgp("64501 6939 3333", "10.0.0.2", local_pref=200))
        self.page.says("64501 6939 3333", ".changes li:first-child")
        self.page.says("64501 6939 3333", ".chain li.used")

    def test_a_question_asked_while_the_server_is_gone(self):
        self.open()
        self.page.until("document.querySelector('.all tbody tr')")
        self.world.stop()
        self.ask(ADDRESS)
        self.page.says("The server cannot be reached.")
        self.assertEqual(self.chains(), {})
        self.world.restart()
        self.page.until("document.querySelector('.detail .best')")
        self.assertEqual(self.chains(), self.looked_up(ADDRESS))


class Failing(Case):
    fails = True

    def test_errors_are_the_sentences_of_the_server(self):
        self.world.failures["/v1/lookup"] = (429, "Too many requests: ask again in a second.")
        self.open(f"/?q={ADDRESS}")
        self.page.says("Too many requests: ask again in a second.")
        self.world.failures = {"/v1/routes": (500, "The table is being taken apart.")}
        self.ask(ADDRESS)
        self.page.says("The table is being taken apart.", ".detail")
        self.world.failures = {"/v1/histogram": (503, "Lengths are not counted yet."), "/v1/peers": (503, "Peers are counted.")}
        self.open()
        self.page.says("Lengths are not counted yet.")
        self.page.says("Peers are counted.")

    def test_late_answers_are_dropped(self):
        self.open()
        self.world.waits = {f"/v1/lookup/{ADDRESS}": 1.0}
        self.ask(ADDRESS)
        self.page.says(f"Asking for {ADDRESS}")
        self.ask("8.8.8.8")
        self.page.until("document.querySelector('h1')?.innerText === '8.8.8.8'")
        time.sleep(1.5)
        self.assertEqual(self.page.text("h1"), "8.8.8.8")
        self.assertEqual(self.chains(), self.looked_up("8.8.8.8"))

    def test_nothing_stands_under_a_question_that_waits(self):
        self.open("/?q=8.8.8.8")
        self.page.until("document.querySelector('.detail .best')")
        self.world.waits = {"/v1/search": 0.7}
        self.ask(ADDRESS)
        self.page.says(f"Asking for {ADDRESS}")
        self.assertNotIn("8.8.8.0/24", self.page.text("main"))
        self.page.until("document.querySelector('.detail .best')")
        self.assertEqual(self.page.text("h1"), ADDRESS)

    def test_a_token_is_asked_for_and_used(self):
        self.world.token = "sesame"
        self.open(f"/?q={ADDRESS}")
        self.page.until("!document.getElementById('unlock').hidden")
        self.page.click("#token")
        self.page.type("sesame")
        self.page.key("Enter")
        self.page.until("document.querySelector('.detail .best')")
        self.page.says("live", ".detail .live")
        self.assertTrue(self.page.run("document.getElementById('unlock').hidden"))


if __name__ == "__main__":
    unittest.main()
