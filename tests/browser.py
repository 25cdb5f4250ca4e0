"""A Chromium for tests that look at pages."""

import os
import shutil

import pytest
from playwright.sync_api import sync_playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
needs_browser = pytest.mark.skipif(not CHROMIUM and not os.environ.get("CI"), reason="no Chromium was found")


def open_browser():
    """Yield a browser; for a fixture."""
    if not CHROMIUM:
        pytest.fail("CI must have a Chromium")
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
