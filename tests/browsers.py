"""The browser that is installed, driven by playwright, with no way to any other machine."""

import contextlib
import os
import shutil
import time

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    *("--headless", "--no-sandbox", "--no-first-run", "--disable-sync"),
    *("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"),
    *("--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking"),
    *("--disable-component-update", "--disable-default-apps"),
]


def installed_browser():
    """Its path. Without one a test is skipped, and fails where `CI` is set."""
    named = os.environ.get("CHROME")
    found = shutil.which(named) if named else next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        words = f"no browser: install one of {', '.join(NAMES)}, or set CHROME to its path"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(words)
    return found


@contextlib.contextmanager
def browser():
    """One browser, with a profile of its own that is thrown away."""
    path = installed_browser()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield running
        finally:
            running.close()


def wait_for(place, condition, seconds=60):
    """Wait until a JavaScript condition holds. (The page's own policy forbids playwright's way.)"""
    end = time.monotonic() + seconds
    while not place.evaluate(condition):
        assert time.monotonic() < end, f"still not: {condition}"
        time.sleep(0.05)


class Opened:
    """A page that was opened from a file, and all that it said and asked for."""

    def __init__(self, browser, file, *, dark=False, size=(900, 600)):
        self.context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme="dark" if dark else "light"
        )
        self.page = self.context.new_page()
        self.said, self.asked = [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.url = file.resolve().as_uri()
        self.page.goto(self.url)

    def ready(self, frame=None):
        """Wait until the replay is there: the page, or the frame of it that holds one."""
        place = frame or self.page
        wait_for(place, "window.mimeReplay !== undefined")
        return place

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()
