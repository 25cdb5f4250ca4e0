"""Names for people: as short as they can be, and never the same for two different things."""

from collections import Counter
from collections.abc import Iterable
from itertools import chain, count

from evalkit.io.text import plain


def short_paths(paths: Iterable[str]) -> dict[str, str]:
    """Name each file by the shortest end of its path that no other file shares.

    Parameters
    ----------
    paths : iterable of str
        Local paths or URLs.

    Returns
    -------
    dict of str to str
        By path, in the order given; no two names are equal. A file whose name is its own is named by that alone.
    """
    parts = {path: path.split("/") for path in paths}
    names, length, left = dict.fromkeys(parts, ""), 1, list(parts)
    while left:
        ends = {path: "/".join(parts[path][-length:]) for path in left}
        shared = Counter(ends.values())
        names |= {path: end for path, end in ends.items() if shared[end] == 1 or end == path}
        left = [path for path in left if not names[path]]
        length += 1
    return names


def labels(names: Iterable[str], width: int = 32) -> dict[str, str]:
    """Make names from logs fit to be printed or drawn, so that different names never look the same.

    Parameters
    ----------
    names : iterable of str
    width : int
        Characters; a longer name is cut in its middle, less so where the cut would make it look like another one.

    Returns
    -------
    dict of str to str
        By name: plain text of one line. Names whose difference can't be shown are numbered.
    """
    whole = {name: plain(name) for name in names}
    cut = {name: shorten(text, width) for name, text in whole.items()}
    shared = Counter(cut.values())
    taken = {text for text in cut.values() if shared[text] == 1}
    for name, text in cut.items():
        if shared[text] > 1:
            cut[name] = _free(shorten(whole[name], 4 * width), taken)
            taken.add(cut[name])
    return cut


def shorten(text: str, width: int) -> str:
    """Cut a text in its middle: the names of models differ at both ends."""
    half = (width - 1) // 2
    return text if len(text) <= width else f"{text[: width - 1 - half]}…{text[-half:]}"


def _free(text: str, taken: set[str]) -> str:
    """Number a text where it is taken."""
    return next(name for name in chain([text], (f"{text} ({n})" for n in count(2))) if name not in taken)
