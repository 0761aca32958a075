"""Take the pictures of the page that the README shows: light and dark, by the real server and Chromium.

Run it as `.venv/bin/python tools/screenshots.py` after `make viewer chromium`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
PLATFORM = ROOT / "scenarios" / "content-platform"
SIZE = {"width": 1280, "height": 1110}


def main() -> None:
    """Serve the platform of the demo, and take a picture in each colour scheme."""
    command = [sys.executable, "-m", "podqos", "ui", "platform", "usage.csv", "--listen", "127.0.0.1:0", "--no-open"]
    with (
        subprocess.Popen(command, cwd=PLATFORM, stdout=subprocess.PIPE, text=True) as server,  # noqa: S603 - our own
        sync_playwright() as play,
    ):
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            browser = play.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            for scheme in ("light", "dark"):
                page = browser.new_page(viewport=SIZE, color_scheme=scheme, reduced_motion="reduce")
                page.goto(f"{address}#/cluster")
                # Cards come with one frame after the other, and blocks are drawn beside the page.
                page.locator(".blocks canvas").wait_for()
                page.wait_for_function("() => podqosIsDrawn()")
                page.screenshot(path=ROOT / "docs" / "pictures" / f"ui-{scheme}.png")
                page.close()
            browser.close()
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
