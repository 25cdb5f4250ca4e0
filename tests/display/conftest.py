"""What a cell shows is caught instead of shown."""

from html.parser import HTMLParser

import pytest

from evalkit.display import show


class Tags(HTMLParser):
    """The tags and texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture
def shown(monkeypatch):
    """A list of (data, metadata) of all that was displayed."""
    outputs: list[tuple[dict, dict]] = []
    monkeypatch.setattr(show, "display", lambda data, raw, metadata=None: outputs.append((data, metadata or {})))
    return outputs


@pytest.fixture
def tags():
    return Tags
