"""Findings: the sentences a report begins with, made of estimates and counts only."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

MOST_FLAGS = 3  # that a sentence names


class Finding(NamedTuple):
    """A sentence, and the heading of the section that holds what it rests on."""

    text: str
    section: str


def counted_noun(n: int, noun: str) -> str:
    """Write a count with its noun: ``1 run``, ``1,200 runs``."""
    plural = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{n:,} {noun if n == 1 else plural}"


def endings_finding(endings: Mapping[str, int], n: int, noun: str, section: str) -> Finding:
    """Say how the runs without success ended, the most frequent way first.

    Parameters
    ----------
    endings : mapping
        Runs without success by how they ended, in words.
    n : int
        All runs that count.
    noun : str
    section : str
    """
    failed = sum(endings.values())
    if not failed:
        return Finding(f"None of {counted_noun(n, noun)} failed.", section)
    ways = sorted(endings.items(), key=lambda item: (-item[1], item[0]))
    listed = ", ".join(f"{name} ({count:,})" for name, count in ways if count)
    return Finding(f"{failed:,} of {counted_noun(n, noun)} did not succeed: {listed}.", section)


def data_finding(
    runs: "pd.DataFrame", flags: Mapping[str, str], ledger: "pd.DataFrame", noun: str, section: str = "Data quality"
) -> Finding:
    """Say what is doubtful in the data: flags on runs, and files that were not used.

    Parameters
    ----------
    runs : DataFrame
        With a column ``flag_NAME`` for every flag.
    flags : mapping
        Meanings of flags by name.
    ledger : DataFrame
    noun : str
        What a run is called.
    section : str
    """
    counts = {name: int(runs[f"flag_{name}"].sum()) for name in flags if f"flag_{name}" in runs}
    named = sorted(((n, name) for name, n in counts.items() if n), key=lambda item: (-item[0], item[1]))
    said = f"No {noun} carries a flag"
    if named:
        flagged = int(runs[[f"flag_{name}" for _, name in named]].any(axis=1).sum())
        listed = ", ".join(f"{name.replace('_', ' ')} ({n:,})" for n, name in named[:MOST_FLAGS])
        more = f" and {counted_noun(len(named) - MOST_FLAGS, 'other flag')}" if len(named) > MOST_FLAGS else ""
        said = f"{flagged:,} of {counted_noun(len(runs), noun)} {_carry(flagged)} a flag: {listed}{more}"
    return Finding(f"{said}; {files_text(ledger)}.", section)


def files_text(ledger: "pd.DataFrame") -> str:
    """Say how many files of a ledger were used, skipped and failed."""
    counts = ledger["status"].value_counts()
    skipped, failed = int(counts.get("skipped", 0)), int(counts.get("failed", 0))
    if not skipped + failed:
        return f"all {len(ledger):,} files were used" if len(ledger) != 1 else "the one file was used"
    parts = [f"{failed:,} could not be read"] * bool(failed) + [f"{skipped:,} skipped"] * bool(skipped)
    return f"of {counted_noun(len(ledger), 'file')}, {' and '.join(parts)}"


def _carry(n: int) -> str:
    return "carries" if n == 1 else "carry"
