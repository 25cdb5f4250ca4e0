"""Make untrusted text from logs safe to print and draw, and format names for people."""

import os
import re
import sys
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeGuard

from evalkit.io.secrets import is_masking, masked

# control characters, format characters (such as direction overrides), surrogates, private use, unassigned
_DROPPED = {"Cc", "Cf", "Cs", "Co", "Cn"}
_JOINERS = {"\u200d", "\ufe0f"}  # kept, so that composed emoji stay whole
MOST_LINE = 500  # maximum length of a message, in characters
MOST_MATCHED = 1_000  # number of characters at the beginning of an id or name that patterns are matched against
# Parts of messages that vary: names, ids and paths are replaced by …, and numbers by #
_MOST_WORDS = 3  # maximum number of words in a quoted name
_QUOTED = re.compile(r"(?<!\w)(?:'([^'\n]*)'|\"([^\"\n]*)\"|`([^`\n]*)`)(?!\w)")
_ID = re.compile(r"(?<![\w.])(?:0x[0-9a-fA-F]+|(?=\w*\d)(?=[\w-]*[a-f])[0-9a-f]{8,}(?:-[0-9a-f]{4,})*)\b")
_PATH = re.compile(
    r"\w+://\S+|(?<![\w/])(?:[A-Za-z]:\\|~?/|\.{1,2}/)?(?:[\w.@+-]+[\\/])+[\w.@+-]*|(?<![\w/<])/[\w.@+-]+"
)
_NUMBER = re.compile(r"(?<![\w#])(?<!Errno )[-+]?\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?%?|(?<=[A-Za-z_])\d+")
_SHOW_WARNING = warnings.showwarning  # Python's default


def plain(text: object, width: int | None = None, *, keep_lines: bool = False) -> str:
    r"""Make any text safe to print in a terminal or to draw in a figure.

    Control and format characters become ``\ufffd``, and line breaks and tabs become spaces. Credentials are masked,
    unless `evalkit.io.masking` is off.

    Parameters
    ----------
    text : object
        Any value.
    width : int, optional
        Maximum number of characters.
    keep_lines : bool
        Whether to keep line breaks and tabs.

    Returns
    -------
    str
        The safe text.

    Examples
    --------
    >>> io.plain("a\nb", 10)
    'a b'
    """
    text = masked(str(text)) if is_masking() else str(text)
    if not (text.isascii() and text.isprintable()):
        text = "".join(_clean(character, keep_lines) for character in text)
    if width is not None and len(text) > width:
        text = text[: max(width - 1, 0)] + "…"
    return text


def _clean(character: str, keep_lines: bool) -> str:
    if character in "\u2028\u2029":  # line separator and paragraph separator
        character = "\n"
    if character in "\n\t":
        return character if keep_lines else " "
    if character == "\r":
        return "" if keep_lines else " "
    if unicodedata.category(character) in _DROPPED and character not in _JOINERS:
        return "\ufffd"
    return character


def short_paths(paths: Iterable[str]) -> dict[str, str]:
    """Map each path or URL to its shortest trailing components that no other path shares, such as its file name."""
    components = {path: path.split("/") for path in paths}
    names = dict.fromkeys(components, "")
    length, left = 1, set(components)
    while left:
        ends = {path: "/".join(components[path][-length:]) for path in left}
        shared = Counter(ends.values())
        unique = {path: end for path, end in ends.items() if end == path or (end and shared[end] == 1)}
        names |= unique
        left -= unique.keys()
        length += 1
    return names


def distinct_names(names: Iterable[str], width: int = 32) -> dict[str, str]:
    """Map names from logs to short plain names on one line. Different names never look the same."""
    texts = {name: plain(name) for name in names}
    cut = {name: shorten(text, width) for name, text in texts.items()}
    shared = Counter(cut.values())
    if len(shared) == len(cut):
        return cut
    unique = UniqueNames("{} ({})", (text for text in cut.values() if shared[text] == 1))
    groups: dict[str, list[str]] = {text: [] for text, count in shared.items() if count > 1}
    for name, text in cut.items():
        if text in groups:
            groups[text].append(name)
    for alike in groups.values():
        same = len(os.path.commonprefix([texts[name] for name in alike]))  # noqa: RUF071
        begin = max(same - width // 4, 0)
        end = max(len(texts[name]) for name in alike) - width + 1
        if begin < end <= same:  # the ends alone differ, so no second cut is needed
            begin = end
        start = "…" if begin else ""
        cut |= {name: unique(shorten(start + texts[name][begin:], width)) for name in alike}
    return cut


def shorten(text: str, width: int) -> str:
    """Cut a text in its middle, since names of models may differ at either end. Drop dots next to the ellipsis.

    Credentials are always masked before the cut, which might remove the prefix that identifies a credential.
    """
    if len(text) > width:
        text = masked(text)
    half = (width - 1) // 2
    return text if len(text) <= width else f"{text[: width - 1 - half].rstrip('.')}…{text[-half:].lstrip('.')}"


def cut_end(text: str, width: int) -> str:
    """Cut a text at its end. Mask credentials first, since the cut may leave too little to detect them."""
    return text if len(text) <= width else masked(text)[:width]


def cut_line(text: str) -> str:
    """Cut a message in its middle to at most `MOST_LINE` characters. It may quote text of any length."""
    return shorten(text, MOST_LINE)


def map_texts(value: Any, change: Callable[[str], Any]) -> Any:
    """Return a value with a function applied to every text in it, including texts in nested lists and mappings."""
    if isinstance(value, dict):
        return type(value)({map_texts(key, change): map_texts(item, change) for key, item in value.items()})
    if isinstance(value, list):
        return [map_texts(item, change) for item in value]
    return change(value) if isinstance(value, str) else value


class UniqueNames:
    """Makes names unique: the format `form`, such as ``{} ({})``, numbers a name that is taken, from 2 on."""

    def __init__(self, form: str, taken: Iterable[str] = ()) -> None:
        self._form, self._taken = form, set(taken)
        self._numbers: dict[str, int] = {}  # the last number given to each repeated name

    def __call__(self, name: str) -> str:
        """Return the name if it is free, or else the name with the next free number."""
        given, n = name, self._numbers.get(name, 1)
        while given in self._taken:
            n += 1
            given = self._form.format(name, n)
        self._taken.add(given)
        self._numbers[name] = n
        return given


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Within a ``with`` block, write warnings to stderr as ``evalkit: warning: TEXT``, each text once."""
    written: set[str] = set()

    def write(message: Warning | str, *_: Any, **__: Any) -> None:
        text = plain(message)
        if text not in written:
            written.add(text)
            print(f"evalkit: warning: {text}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = write
        yield


def warnings_as_usual() -> None:
    """Restore Python's format of warnings, for a process that was forked within `warnings_as_lines`."""
    warnings.showwarning = _SHOW_WARNING


def is_local_link(address: object) -> TypeGuard[str]:
    """Return whether a link is relative or an anchor, without scheme, host, leading slash, space or backslash."""
    is_text = isinstance(address, str) and address != "" and address.isprintable()
    return is_text and not re.match(r"/|[^/?#]*:|.*[ \\]", str(address))


def _without_name(quoted: re.Match) -> str:
    """Replace a quoted name by ``…``. Keep a longer quotation, which is itself a message."""
    quote = quoted[0][0]
    return quoted[0] if len(quoted[0].split()) > _MOST_WORDS else f"{quote}…{quote}"


def message_pattern(message: str) -> str:
    """Replace the varying parts of a message: numbers, paths, ids, and quoted names. Keep it if no words would remain.

    Credentials are always masked first, because their patterns include digits.
    """
    message = masked(message)
    bare = message.strip()
    if len(bare) > 1 and bare[0] in "'\"`" and bare.find(bare[0], 1) == len(bare) - 1:  # the whole message is quoted
        return f"{bare[0]}{message_pattern(bare[1:-1])}{bare[0]}" if len(bare.split()) > _MOST_WORDS else message
    text = _QUOTED.sub(_without_name, message)
    text = _NUMBER.sub("#", _PATH.sub("…", _ID.sub("…", text)))
    return text if re.search(r"[^\W\d_]{2}", text) else message
