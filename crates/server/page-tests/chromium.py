"""Drives a headless Chromium by its DevTools protocol over a pipe. Needs Python's own library and the program, no driver."""

import base64
import json
import os
import queue
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
]
PROGRAMS = ["chromium", "chromium-browser", "google-chrome"]
KEYS = {
    "Enter": (13, "\r"), "Escape": (27, ""), "Tab": (9, ""), "ArrowDown": (40, ""), "ArrowUp": (38, ""), "ArrowLeft": (37, ""),
    "ArrowRight": (39, ""), "Home": (36, ""), "End": (35, ""), "/": (191, "/"),
}
SHIFT = 8


def program():
    """The path of Chromium, or None where it is not installed."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    """A running Chromium with a profile of its own, which goes with it."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="chromium-")
        commands, self.write = os.pipe()
        self.read, answers = os.pipe()

        def pipes():  # The protocol is on descriptors 3 and 4; neither pipe may be overwritten on the way there.
            os.dup2(commands, 103)
            os.dup2(answers, 104)
            os.dup2(103, 3)
            os.dup2(104, 4)

        self.process = subprocess.Popen(
            [program(), *FLAGS, f"--user-data-dir={self.profile}", "about:blank"],
            preexec_fn=pipes, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "TZ": "Europe/Amsterdam", "LANG": "en_GB.UTF-8"},
        )
        os.close(commands)
        os.close(answers)
        self.number = 0
        self.lock = threading.Lock()
        self.waiting = {}
        self.pages = {}
        threading.Thread(target=self._receive, daemon=True).start()

    def _receive(self):
        rest = b""
        while True:
            try:
                piece = os.read(self.read, 1 << 20)
            except OSError:
                piece = b""
            if not piece:
                for waiter in list(self.waiting.values()):
                    waiter.put({"error": {"message": "Chromium ended"}})
                return
            *messages, rest = (rest + piece).split(b"\0")
            for message in map(json.loads, messages):
                if "id" in message:
                    self.waiting.pop(message["id"]).put(message)
                elif message.get("sessionId") in self.pages:
                    self.pages[message["sessionId"]].happened(message["method"], message["params"])

    def send(self, method, session=None, **params):
        answer = queue.Queue()
        with self.lock:
            self.number += 1
            message = {"id": self.number, "method": method, "params": params}
            if session:
                message["sessionId"] = session
            self.waiting[self.number] = answer
            data = json.dumps(message).encode() + b"\0"
            while data:
                data = data[os.write(self.write, data):]
        result = answer.get(timeout=30)
        if "error" in result:
            raise RuntimeError(f"{method}: {result['error']['message']}")
        return result["result"]

    def page(self):
        """A page with an empty storage of its own."""
        context = self.send("Target.createBrowserContext")["browserContextId"]
        target = self.send("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Page(self, context, session)

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.write)
        shutil.rmtree(self.profile, ignore_errors=True)


class Page:
    """One tab. Waits are for conditions in the page, never for a time."""

    def __init__(self, browser, context, session):
        self.browser, self.context, self.session = browser, context, session
        self.errors = []  # exceptions, console errors and violations of the content security policy
        self.requests = []
        browser.pages[session] = self
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.size(1280, 900)

    def send(self, method, **params):
        return self.browser.send(method, self.session, **params)

    def happened(self, method, params):
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error" and params["entry"]["source"] != "network":
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def close(self):
        del self.browser.pages[self.session]
        self.browser.send("Target.disposeBrowserContext", browserContextId=self.context)

    def open(self, url):
        self.send("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def size(self, width, height, scale=1, mobile=False):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=mobile)

    def media(self, medium="", **features):
        """The medium (screen, print) and features: media(prefers_color_scheme="dark")."""
        features = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.send("Emulation.setEmulatedMedia", media=medium, features=features)

    def run(self, script):
        """The value of an expression in the page."""
        result = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"].get("exception", {}).get("description", str(result)))
        return result["result"].get("value")

    def until(self, condition, seconds=10):
        """Waits until a condition in the page holds. An element that is there is a condition."""
        end = time.monotonic() + seconds
        while True:
            if self.run(f"(() => {{ try {{ return Boolean({condition}) }} catch {{ return false }} }})()"):
                return
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds} s: {condition}\nThe page says:\n{self.text()}")
            time.sleep(0.03)

    def text(self, selector="body"):
        return self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")

    def texts(self, selector):
        return self.run(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.innerText)")

    def says(self, text, selector="main", seconds=10):
        """Waits until an element of the page has this text."""
        self.until(f"document.querySelector({json.dumps(selector)}).innerText.includes({json.dumps(text)})", seconds)

    def click(self, selector, text=None, dx=0.5, dy=0.5):
        """Moves the mouse over an element (which has this text) and clicks. dx, dy: where in it."""
        find = f"[...document.querySelectorAll({json.dumps(selector)})]" + (f".find(e => e.innerText.includes({json.dumps(text)}))" if text else "[0]")
        self.until(find)
        box = self.run(f"(() => {{ const e = {find}; e.scrollIntoView({{block: 'center'}}); const b = e.getClientRects()[0]; return [b.x, b.y, b.width, b.height]; }})()")
        x, y = box[0] + box[2] * dx, box[1] + box[3] * dy
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def move(self, selector, dx, dy):
        self.run(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center'}})")
        box = self.run(f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; }})()")
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=box[0] + box[2] * dx, y=box[1] + box[3] * dy)

    def key(self, name, modifiers=0):
        code, text = KEYS[name]
        params = {"key": name, "code": name, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        self.send("Input.dispatchKeyEvent", type="keyDown", **({"text": text} if text else {}), **params)
        self.send("Input.dispatchKeyEvent", type="keyUp", **params)

    def type(self, text):
        self.send("Input.insertText", text=text)

    def picture(self, path, whole=False):
        data = self.send("Page.captureScreenshot", captureBeyondViewport=whole, **({"clip": self._whole()} if whole else {}))["data"]
        Path(path).write_bytes(base64.b64decode(data))

    def _whole(self):
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        return {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}

    def pdf(self):
        return base64.b64decode(self.send("Page.printToPDF", printBackground=False)["data"])
