"""Tooltips and links of artists, stored beside them and written into the SVG when it is rendered."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from matplotlib.artist import Artist
from matplotlib.collections import Collection
from matplotlib.figure import Figure

from evalkit.io import plain
from evalkit.io.text import is_local_link

TOKEN = re.compile(r"evalkit-mark:(\d+)")  # a placeholder address: a mark's position in a list
MOST = 2000  # marks of one figure; of more, only the first with each link stays


class Mark(NamedTuple):
    """The tooltip and the link of a point, bar or cell; both may be empty."""

    tip: str
    href: str = ""
    is_first: bool = True  # of those with this link: the keyboard skips the others


_marks: WeakKeyDictionary[Artist, list[Mark]] = WeakKeyDictionary()


def attach(artist: Artist, tips: Iterable[str], hrefs: Iterable[str] = ()) -> None:
    """Attach tooltips and links to an artist: one to each point of a collection, or one to a single patch.

    Parameters
    ----------
    artist : Artist
    tips : iterable of str
        One for each point, in the collection's order; texts from logs are made plain.
    hrefs : iterable of str, optional
        As many; an empty one is no link. Only relative addresses and ``#anchors`` are allowed.
    """
    tips = [plain(tip) for tip in tips]
    links = [href if is_local_link(href) else "" for href in hrefs] or [""] * len(tips)
    _marks[artist] = [Mark(*pair) for pair in zip(tips, links, strict=True)]


@contextmanager
def marked(figure: Figure) -> Iterator[list[Mark]]:
    """Set the marks of a figure as placeholder addresses within a ``with`` block; each is a position in the list."""
    artists = [artist for artist in figure.findobj() if artist in _marks]
    crowded = sum(len(_marks[artist]) for artist in artists) > MOST
    marks: list[Mark] = []
    seen: set[str] = set()
    before = [artist.get_urls() if isinstance(artist, Collection) else [artist.get_url()] for artist in artists]
    try:
        for artist in artists:
            urls = []
            for mark in _marks[artist]:
                is_first = bool(mark.href) and mark.href not in seen
                seen.add(mark.href)
                shown = is_first or (not crowded and (mark.href or mark.tip))
                urls.append(f"evalkit-mark:{len(marks)}" if shown else None)
                marks += [mark._replace(is_first=is_first)] * bool(shown)
            _set_urls(artist, urls)
        yield marks
    finally:
        for artist, old in zip(artists, before, strict=True):
            _set_urls(artist, old)


def _set_urls(artist: Artist, urls: Sequence[Any]) -> None:
    if isinstance(artist, Collection):
        artist.set_urls(urls)
    else:
        artist.set_url(urls[0])
