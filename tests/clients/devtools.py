# SPDX-License-Identifier: Apache-2.0
"""Chromium without a window, steered by the DevTools protocol: pages, keys, and what the browser complains about."""
import json
import pathlib
import subprocess
import tempfile
import time
import urllib.request

import websocket

from lab import wait_for

KEYS = {"Tab": (9, ""), "Enter": (13, "\r"), " ": (32, " ")}
TIMEOUT = 60


class Chromium:
    """One page.  'complaints' has all errors and warnings of the console, among them violations of the pages' policies."""

    def __init__(self):
        self.tmp = tempfile.TemporaryDirectory(prefix="tenet-chromium-", ignore_cleanup_errors=True)
        profile = pathlib.Path(self.tmp.name)
        self.log = open(profile / "log", "w")
        # Root has no sandbox. The certificates of the tests are of an authority that the browser does not know.
        self.proc = subprocess.Popen(
            ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--ignore-certificate-errors",
             "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--remote-debugging-port=0",
             f"--user-data-dir={profile}", "about:blank"], stdout=self.log, stderr=self.log)
        self.next, self.complaints = 0, []
        self.ws = None
        try:
            self.ws = self.connect(profile / "DevToolsActivePort")
            for domain in ("Page", "Runtime", "Log", "Network", "Audits"):
                self.do(f"{domain}.enable")
        except BaseException:
            self.close()
            raise

    def connect(self, file):
        def page():
            assert self.proc.poll() is None, (pathlib.Path(self.tmp.name) / "log").read_text()
            lines = file.read_text().splitlines() if file.exists() else []
            if len(lines) < 2:
                return None
            with urllib.request.urlopen(f"http://127.0.0.1:{lines[0]}/json/list", timeout=TIMEOUT) as r:
                return next((t["webSocketDebuggerUrl"] for t in json.load(r) if t["type"] == "page"), None)
        return websocket.create_connection(wait_for("the browser", page), timeout=TIMEOUT, suppress_origin=True)

    def close(self):
        if self.ws:
            self.ws.close()
        self.proc.terminate()
        try:
            self.proc.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()
        self.log.close()
        self.tmp.cleanup()

    def receive(self):
        """An answer; events on the way to it are kept."""
        while True:
            message = json.loads(self.ws.recv())
            if "id" in message:
                return message
            self.notice(message["method"], message["params"])

    def notice(self, method, params):
        if method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append((params["entry"]["text"], params["entry"].get("url")))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.complaints.append((str(params["args"]), None))
        elif method == "Audits.issueAdded":
            self.complaints.append((params["issue"]["code"], json.dumps(params["issue"]["details"])))

    def do(self, method, **params):
        self.next += 1
        self.ws.send(json.dumps({"id": self.next, "method": method, "params": params}))
        while True:
            answer = self.receive()
            if answer["id"] == self.next:
                assert "error" not in answer, (method, answer)
                return answer["result"]

    def value(self, expression):
        """Of an expression in the page: the protocol evaluates it also where pages may run no script."""
        result = self.do("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def url(self):
        history = self.do("Page.getNavigationHistory")
        return history["entries"][history["currentIndex"]]["url"]

    def document(self):
        """What tells one load of a page from the next."""
        return self.do("Page.getFrameTree")["frameTree"]["frame"]["loaderId"]

    def wait_load(self, before):
        """Until another document than the one before is there as a whole."""
        end = time.monotonic() + TIMEOUT
        while self.document() == before or self.value("document.readyState") != "complete":
            assert time.monotonic() < end, (self.url(), self.complaints)
            time.sleep(0.02)

    def open(self, url):
        before = self.document()
        result = self.do("Page.navigate", url=url)
        assert "errorText" not in result, result
        self.wait_load(before)

    def key(self, key):
        code, text = KEYS[key]
        what = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": code, "nativeVirtualKeyCode": code}
        self.do("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **what, **({"text": text} if text else {}))
        self.do("Input.dispatchKeyEvent", type="keyUp", **what)

    def type(self, text):
        self.do("Input.insertText", text=text)

    def follow(self, key="Enter"):
        """Presses the key on what has the focus, and waits for the next page."""
        before = self.document()
        self.key(key)
        self.wait_load(before)

    def focus(self):
        """What has the focus: its text, or its name."""
        return self.value("(e => e === document.body ? '' : (e.innerText || e.value || e.name || '').trim())"
                          "(document.activeElement)")

    def tab_to(self, what):
        """Moves the focus by the Tab key alone."""
        for _ in range(20):
            if self.value(f"document.activeElement.matches({json.dumps(what)})"):
                return
            self.key("Tab")
        raise AssertionError(f"no way by Tab to {what} at {self.url()}")
