"""What is shown when nothing is asked: tables, peers, rates, lengths, the map."""

import time
import urllib.request

from case import ADDRESS, Case
from chromium import SHIFT
from world import bgp


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

    def test_top_flows_are_those_of_the_server(self):
        self.open()
        self.page.until("document.querySelector('.flows tbody .dim')?.innerText.includes('RIPE')")
        rows = self.columns(".flows tbody tr")
        said = self.api("flows/top")
        self.assertEqual(said["column"], "src_origin_as")
        self.assertEqual([row["Value"] for row in rows], ["AS3333 RIPE NCC", "AS15169", "none"])
        self.assertEqual([row["Flows"] for row in rows], [f"{flow['flows']:,}" for flow in said["top"]])
        self.assertEqual([row["Share"] for row in rows], [f"{flow['bytes'] * 100 / said['bytes']:.1f} %" for flow in said["top"]])
        # 3 GB in five minutes.
        self.assertEqual(rows[0]["Bits/s"], "80M")
        self.assertIn("up to 40 B more", self.page.run("document.querySelectorAll('.flows tbody tr')[1].cells[1].title"))
        self.page.run("(s => { s.value = '1'; s.dispatchEvent(new Event('change')); })(document.querySelectorAll('.flows select')[1])")
        self.page.until("document.querySelector('.flows tbody td:nth-child(2)').innerText === '400M'")
        choose = "(s => {{ s.value = '{}'; s.dispatchEvent(new Event('change')); }})(document.querySelector('.flows select'))"
        self.page.run(choose.format("exporter"))
        self.page.says("<script>", ".flows")
        self.page.run(choose.format("dst_prefix"))
        self.page.says("193.0.6.0/24", ".flows")
        self.page.click(".flows tbody a")
        self.page.until("location.search === '?q=193.0.6.0%2F24'")

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
            const sign = (x, y) => {{ const d = g.getImageData(x * c.width - 8, y * c.height - 8, 16, 16).data; let n = 0;
                for (let i = 0; i < d.length; i += 4) if (d[i] > 180 && d[i + 2] < 80) n++; return n; }};
            return [sign({dx}, {dy}), sign(0.3, 0.7)]; }})()""")
        self.assertGreater(mark, 5)
        self.assertEqual(elsewhere, 0)
