"""Pages in a real browser: opened as files without a network, or served by `podqos ui` on loopback."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from browser.fleet import fleet
from browser.settling import PATIENCE_MS, settle

AXE = Path(__file__).parents[2] / "viewer" / "node_modules" / "axe-core" / "axe.min.js"


# What is said in passing is kept.
_HEARD = """() => {
  globalThis.heard = [];
  const hear = (changes) => {
    for (const { addedNodes } of changes) heard.push(...[...addedNodes].map((each) => each.textContent));
  };
  new MutationObserver(hear).observe(document.querySelector(".toasts"), { childList: true });
}"""


class Server:
    """A `podqos ui` that runs; its address is what it prints first."""

    def __init__(self, *arguments: object) -> None:
        pytest.importorskip("httptools", reason="the extra `web` is not installed")
        command = [sys.executable, "-m", "podqos", "ui", "--no-open", "--listen", "127.0.0.1:0", *map(str, arguments)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()
        if not self.address.startswith("http://127.0.0.1:"):
            self._process.kill()
            pytest.fail(f"podqos ui did not start: {self.address} {self._process.communicate()[1]}")

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
        self._process.communicate(timeout=120)


def fixed_port() -> int:
    """Return a port that is free, and that the kernel gives no one: a server that comes back finds it again."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in range(first - 1 - os.getpid() % 5000, 1024, -1):
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    pytest.skip("the kernel gives all ports to whoever asks")


@pytest.fixture(scope="module")
def serve():
    """Return what starts a server; all end with the module."""
    started: list[Server] = []

    def start(*arguments: object) -> Server:
        started.append(Server(*arguments))
        return started[-1]

    yield start
    for server in started:
        server.stop()


def _refuse(*_: object) -> None:
    pytest.fail("what is run first stays with a page, and others get this one afterwards: say opened.run_first(…)")


class AppVisit:
    """The app in a window, and everything it asked for or complained about.

    A window of its own costs more than most tests do in it, so one that needs nothing special is given a ``spare`` one,
    and gives it back.
    """

    def __init__(self, browser, address, spare=None, width=1280, height=900, **context):
        self.address = address
        size = {"width": width, "height": height}
        self._spare = None if context else spare
        if self._spare:
            self.page = self._spare.pop()
            self.context = self.page.context
            self.page.set_viewport_size(size)
        else:
            self.context = browser.new_context(viewport=size, **context)
            self.context.set_default_timeout(PATIENCE_MS)
            self.page = self.context.new_page()
        if self._spare is not None:
            self.page.add_init_script = _refuse
        self.elsewhere: list[str] = []
        self.complaints: list[str] = []
        self.expected = ""
        """What a complaint may hold: a test that stops the server expects that the browser says so."""
        self._listeners = {"request": self._asked, "console": self._said, "pageerror": self._failed}
        for event, listener in self._listeners.items():
            self.page.on(event, listener)

    def run_first(self, script):
        """Let a script run before those of the page, in a window that no one has afterwards."""
        self._spare = None
        type(self.page).add_init_script(self.page, script)

    def _said(self, message):
        self.complaints.append(message.text)

    def _failed(self, error):
        self.complaints.append(str(error))

    def _asked(self, request):
        # Preflights apart there is nothing that a page may ask another host for; blobs are its own.
        own = request.url.startswith((self.address, "data:", "blob:null/", f"blob:{self.address}"))
        if not own:
            self.elsewhere.append(request.url)

    def open(self, route=""):
        self.page.goto(self.address + route)
        self.page.wait_for_selector("h1, .state h2")
        settle(self.page)
        return self.page

    def toast(self, words):
        """Return what waits until something was said in passing: it goes by itself, whether a test looks or not."""
        self.page.evaluate(_HEARD)
        return lambda: self.page.wait_for_function(
            "(words) => heard.some((each) => new RegExp(words).test(each))", arg=words
        )

    def violations(self):
        """Return what axe-core finds, of any level, best practices included."""
        if not AXE.is_file():
            pytest.skip("axe-core is not installed: npm ci in viewer/")
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        return [(rule["id"], [node["target"] for node in rule["nodes"]][:5]) for rule in found]

    def close(self):
        if self._spare is None or self.page.is_closed():
            self.context.close()
        else:
            self._give_back()
        assert self.elsewhere == []
        assert [each for each in self.complaints if not self.expected or not re.search(self.expected, each)] == []

    def _give_back(self):
        """Leave the window as a new one is."""
        for event, listener in self._listeners.items():
            self.page.remove_listener(event, listener)
        self.page.unroute_all(behavior="ignoreErrors")
        self.page.goto("about:blank")
        self.page.emulate_media(color_scheme="null")
        self.page.mouse.move(0, 0)
        self.context.clear_cookies()
        self._spare.append(self.page)


@pytest.fixture(scope="module")
def hundred(serve, tmp_path_factory) -> Server:
    """Serve a hundred pods on four nodes."""
    path = tmp_path_factory.mktemp("fleet") / "fleet.json"
    path.write_text(fleet(100, 4))
    return serve(path)


@pytest.fixture(scope="session")
def spare_windows() -> list[object]:
    """Return the windows that no test has at the moment."""
    return []


@pytest.fixture
def visit(browser, spare_windows) -> Callable[..., AppVisit]:
    """Return what opens the app; what it complained about, or asked of others, fails the test."""
    opened: list[AppVisit] = []

    def start(server: Server, **options) -> AppVisit:
        opened.append(AppVisit(browser, server.address, spare_windows, **options))
        return opened[-1]

    yield start
    for each in opened:
        each.close()
