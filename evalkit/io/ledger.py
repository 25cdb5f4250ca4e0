"""The ledger: every file that was seen, whether it was used, skipped or failed, and why."""

import os
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple

from evalkit.io.frames import Column, frame_of
from evalkit.io.paths import absolute

if TYPE_CHECKING:
    import pandas as pd

Status = Literal["used", "skipped", "failed"]
_WEIGHT: dict[Status, int] = {"skipped": 0, "failed": 1, "used": 2}

LEDGER = (
    Column("source", "str", "path of the file"),
    Column("status", "str", "used, skipped (not a log of this kind) or failed (a log that can't be read)"),
    Column("reason", "line", "why it was skipped or failed; for a used file, what was recovered, or empty"),
)


class Entry(NamedTuple):
    """One file of the ledger."""

    source: str
    status: Status
    reason: str = ""


class Ledger:
    """A list of entries, one per file, so that no file is lost silently."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def add(self, source: str | os.PathLike, status: Status, reason: str = "") -> None:
        """Add a file with its status."""
        self.entries.append(Entry(os.fspath(source), status, reason))

    def used(self, source: str | os.PathLike, reason: str = "") -> None:
        """Add a file that was read and used."""
        self.entries.append(Entry(os.fspath(source), "used", reason))

    def skipped(self, source: str | os.PathLike, reason: str) -> None:
        """Add a file that is not a log of this kind."""
        self.entries.append(Entry(os.fspath(source), "skipped", reason))

    def failed(self, source: str | os.PathLike, reason: str) -> None:
        """Add a log that could not be read."""
        self.entries.append(Entry(os.fspath(source), "failed", reason))

    def include(self, other: "Ledger") -> None:
        """Add another ledger's files; a file in both keeps the more important entry: used, failed, skipped."""
        if not other.entries:
            return
        best: dict[str, Entry] = {}
        for entry in (*self.entries, *other.entries):
            place = absolute(entry.source)
            known = best.setdefault(place, entry)
            if _WEIGHT[entry.status] > _WEIGHT[known.status]:
                best[place] = entry
        self.entries = list(best.values())

    def frame(self) -> "pd.DataFrame":
        """Return the ledger as a frame with the columns of `LEDGER`."""
        return ledger_frame(self.entries)

    def summary(self) -> str:
        """Return one line: how many files were used, skipped and failed."""
        return summarise(entry.status for entry in self.entries)


def ledger_frame(entries: Iterable[Entry]) -> "pd.DataFrame":
    """Build the frame of a ledger."""
    rows = list(entries)
    return frame_of({name: [row[i] for row in rows] for i, name in enumerate(Entry._fields)}, LEDGER)


def summarise(statuses: Iterable[str]) -> str:
    """Describe in one line how many files were used, skipped and failed."""
    counts = Counter(statuses)
    noun = "file" if counts.total() == 1 else "files"
    return f"{counts.total()} {noun}: " + ", ".join(f"{counts[s]} {s}" for s in ("used", "skipped", "failed"))
