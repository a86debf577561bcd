"""What changes while the page is open: routes, and the server."""

import time
from urllib.parse import quote

from case import ADDRESS, PREFIX, Case
from world import bgp


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
        self.world.failures = {"/v1/search": (429, "Busy.")}
        self.ask("8.8.8.8")
        time.sleep(0.3)
        self.world.failures = {}
        self.page.until("document.querySelector('h1')?.innerText === '8.8.8.8'")
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
        self.page.until("document.activeElement.id === 'token'")
        self.page.type("wrong")
        self.page.key("Enter")
        # The field is empty at once, but asks again only when the refusal has come.
        self.page.until(
            "!document.getElementById('unlock').hidden && document.activeElement.id === 'token'"
            " && document.activeElement.value === ''"
        )
        self.page.type("sesame")
        self.page.key("Enter")
        self.page.until("document.querySelector('.detail .best')")
        self.page.says("live", ".detail .live")
        self.assertTrue(self.page.run("document.getElementById('unlock').hidden"))
