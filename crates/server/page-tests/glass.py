"""The looking glass in a real browser: what a person types and clicks, compared with what the API says.

`./dev glass` runs this against the real server, which FIBULA_GLASS_COMMAND names (see real.py), and without it against
mock.py. Tests that need a server to fail on command always have the latter."""

import os
import unittest

from answers import Answers, Looks, Moving
from live import Failing, Live
from overview import Map, Overview

__all__ = ["Answers", "Failing", "Live", "Looks", "Map", "Moving", "Overview"]


def load_tests(_loader, tests, _pattern):
    """All tests, or with FIBULA_GLASS_PART=1/2 every second one: they mostly wait, so several parts run side by side."""
    part, parts = map(int, os.environ.get("FIBULA_GLASS_PART", "1/1").split("/"))
    every = [test for case in tests for test in case]
    return unittest.TestSuite(every[part - 1::parts])
