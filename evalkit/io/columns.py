"""Columns of tables, declared once as data, and the entries of the ledger: what became of every file."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

from evalkit.io.text import MOST_LINE, cut_line

MOST_NAME = 200  # characters of a name
_BEGINNING = MOST_NAME - 13  # characters kept of a name that is cut
Status = Literal["used", "skipped", "failed"]


class Column(NamedTuple):
    """A column of a table.

    `dtype` is one of ``str`` (missing: NaN), ``name`` (a ``str`` that identifies something, such as a model or a task;
    see `cut_name`), ``line`` (a ``str`` that says something in a line: cut in its middle to 500 characters), ``int``
    (never missing), ``int?`` (nullable), ``float`` (missing: NaN), ``bool`` (missing: False), ``bool?`` (nullable),
    ``list`` (of texts), ``counts`` (texts to whole numbers), ``time`` (UTC; missing: NaT), and, in frames only,
    ``object``.
    """

    name: str
    dtype: str
    meaning: str
    unit: str = ""


class Entry(NamedTuple):
    """One file of the ledger."""

    source: str
    status: Status
    reason: str = ""


LEDGER = (
    Column("source", "str", "path of the file"),
    Column("status", "str", "used, skipped (not a log of this kind) or failed (a log that can't be read)"),
    Column("reason", "line", "why it was skipped or failed; for a used file, what was recovered, or empty"),
)


def summarise(statuses: Iterable[str]) -> str:
    """Describe in one line how many files were used, skipped and failed."""
    counts = Counter(statuses)
    noun = "file" if counts.total() == 1 else "files"
    return f"{counts.total()} {noun}: " + ", ".join(f"{counts[s]} {s}" for s in ("used", "skipped", "failed"))


def cut_name(name: str) -> str:
    """Cut a name of more than 200 characters to 200, of which the last twelve are a digest of the whole name."""
    if len(name) <= MOST_NAME:
        return name
    digest = hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=6).hexdigest()
    return f"{name[:_BEGINNING]}…{digest}"


def is_cut_name(name: object) -> bool:
    """Return whether a name was cut."""
    return isinstance(name, str) and len(name) == MOST_NAME and name[_BEGINNING] == "…"


CUT: dict[str, tuple[int, Callable[[str], str]]] = {"name": (MOST_NAME, cut_name), "line": (MOST_LINE, cut_line)}
