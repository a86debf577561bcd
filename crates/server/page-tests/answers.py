"""Questions and answers, links between them, and how they look."""

from urllib.parse import quote

from case import ADDRESS, PREFIX, Case
from world import ATTACK, bgp


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

    def test_paths_of_one_peer(self):
        """Sessions with ADD-PATH: each path with its identifier and its next hop."""
        for path_id, (path, next_hop) in enumerate([("64500 64800", "10.0.0.55"), ("64500 64800", "10.0.0.77"), ("64500 1 64800", "10.0.0.99")], 1):
            self.world.announce("bgp", "185.43.156.0/22", 0, bgp(path, next_hop, local_pref=100), path_id)
        self.open("/?q=185.43.156.1&table=bgp")
        self.page.until("document.querySelectorAll('.detail .paths tbody tr').length === 3")
        rows = [(row["Peer"], row["Next hop"], row["Result"]) for row in self.columns(".detail .paths tbody tr")]
        peer = "AS64500 (10.0.0.1)"
        self.assertEqual(rows, [(f"{peer} path 1", "10.0.0.55", "best"), (f"{peer} path 2", "10.0.0.77", "lost by path identifier"),
                                (f"{peer} path 3", "10.0.0.99", "lost by AS path length")])

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

    def test_an_as_with_more_prefixes_than_an_answer_has(self):
        peer = {"kind": "bgp", "next_hop": "10.0.0.1", "as_path": "64500 64777", "origin_as": 64777, "origin": "igp"}
        prefixes = [f"198.{18 + at // 256}.{at % 256}.0/24" for at in range(1500)]
        for prefix in prefixes:
            self.world.announce("bgp", prefix, 0, peer)
        self.open("/?q=AS64777")
        self.page.says("1,500 prefixes, the first 1,000 of them")
        self.assertEqual(len(self.page.texts(".prefixes a")), 1000)
        self.page.click("button", "Show more")
        self.page.until("document.querySelectorAll('.prefixes a').length === 1500")
        self.assertEqual(self.page.texts(".prefixes a"), prefixes)
        self.assertFalse(self.page.run("[...document.querySelectorAll('button')].some(b => b.innerText === 'Show more')"))

    def test_a_peer_by_part_of_its_name(self):
        self.open()
        self.ask("10.0.0.2)")
        # Its own row and those of its routes, and not those of the overview.
        self.page.until("""document.querySelector('h1')?.innerText.includes('10.0.0.2')
            && document.querySelector('main tbody td').dataset.name === 'Peer' && document.querySelectorAll('main tbody tr').length > 1""")
        peer = next(p for p in self.api("peers")["peers"] if "10.0.0.2" in p["name"])
        self.assertEqual(self.page.text("h1"), peer["name"])
        rows = self.columns("main tbody tr")
        expected = [(peer["name"], peer["state"], str(peer["routes"]["ipv4"]), str(peer["best"]["ipv4"]))]
        self.assertEqual([(r["Peer"], r["State"], r["IPv4"], r["Best IPv4"]) for r in rows[:1]], expected)
        routes = self.api(f"filter?peer={peer['id']}")["routes"]
        expected = [(of["route"]["prefix"], of["route"]["attributes"]["as_path"], "best" if of["best"] else "") for of in routes]
        self.assertEqual([(r["Prefix"], r["AS path"], r["Best"]) for r in rows[1:len(routes) + 1]], expected)
        self.assertEqual(len(routes), peer["routes"]["ipv4"] + peer["routes"]["ipv6"])

    def at(self, ago):
        """Chooses the time so many seconds before now."""
        self.page.run(f"""(() => {{
            const at = document.querySelector('.past input'), then = new Date(Date.now() - {ago} * 1000);
            at.value = new Date(then - then.getTimezoneOffset() * 60000).toISOString().slice(0, 19);
            at.dispatchEvent(new Event('change')); }})()""")

    def test_a_prefix_at_a_time(self):
        self.open("/?q=193.0.6.0/24&table=bgp")
        self.page.until("document.querySelector('.past input')")
        self.at(3600)
        self.page.says("bgp 64500 1103 3333", ".past .then")
        self.assertIn("since", self.page.text(".past .then"))
        self.assertIn("until", self.page.text(".past .then"))
        self.at(1200)
        self.page.says("64666", ".past .then")
        self.assertFalse(self.page.run("!!window.attacked"))
        self.at(30)
        self.page.says("bgp no route since", ".past .then")
        self.assertNotIn("until", self.page.text(".past .then"))
        self.at(86400)
        self.page.says("the history begins at", ".past .problem")
        self.at(-86400)
        self.page.says("in the future", ".past .problem")

    def test_the_changes_of_a_prefix_in_the_history(self):
        self.open("/?q=8.8.8.0/24")
        self.page.until("document.querySelector('canvas')?.dataset.ready && document.querySelector('.detail .best')")
        self.page.click(".past button", "List its changes")
        self.page.until("document.querySelectorAll('.past li').length === 100")
        self.page.click(".past button", "Show more")
        self.page.until("document.querySelectorAll('.past li').length === 150")
        paths = self.page.texts(".past li .path")
        self.assertEqual(paths, [f"64500 {64000 + ago}" for ago in range(601, 751)])
        self.page.until("document.querySelector('.past button').hidden")
        self.open("/?q=10.0.0.0/8&table=bgp")
        self.page.until("document.querySelector('canvas')?.dataset.ready && document.querySelector('.detail .best')")
        self.page.click(".past button", "List its changes")
        self.page.says("no change of it", ".past")

    def test_systems_have_names(self):
        self.open("/?q=AS3333")
        self.page.says("AS3333 RIPE NCC", "h1")
        self.open("/?q=193.0.6.0%2F24&table=bgp")
        self.page.until("[...document.querySelectorAll('a')].some(a => a.innerText === '3333' && a.title === 'RIPE NCC')")
        self.assertEqual(self.page.run("[...document.querySelectorAll('a')].find(a => a.innerText === '2914').title"), "")
        self.assertFalse(self.page.run("!!window.attacked"))

    def test_links_lead_from_one_to_the_other(self):
        self.open(f"/?q={ADDRESS}&table=bgp")
        self.page.click(".detail .path a", "1103")
        self.page.until("document.querySelector('h1')?.innerText.startsWith('AS1103')")
        self.page.run("history.back()")
        self.page.click(".detail td a", "AS64501")
        self.page.says("AS64501 (10.0.0.2)", "h1")

    def test_routes_by_community_and_path(self):
        self.open()
        for question, parameters in [("64500:*", "community=64500:*"), ("_1103_", "path_regex=_1103_"), ("3333$", "path_regex=3333$")]:
            self.ask(question)
            self.page.says(question, "h1")
            expected = self.api(f"filter?{parameters}")["routes"]
            self.assertGreater(len(expected), 1)
            self.page.until(f"document.querySelectorAll('main tbody tr').length === {len(expected)}")
            rows = self.columns("main tbody tr")
            self.assertEqual([(row["Table"], row["Prefix"]) for row in rows], [(found["table"], found["route"]["prefix"]) for found in expected])
            self.assertEqual(rows[0]["Communities"], expected[0]["route"]["attributes"].get("communities", ""))
        self.page.click("main tbody td.mono a", PREFIX)
        self.page.until(f"document.querySelector('h1')?.innerText === '{PREFIX}'")
        self.open("/?q=65000:1")
        self.page.says("0 best routes", "main")

    def test_text_that_means_nothing(self):
        self.open()
        self.ask("no such thing")
        self.page.says('"no such thing" is no address, no prefix, no AS number, no community (64500:1), no AS path (_64500_) and no part of the name of a peer.')
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
