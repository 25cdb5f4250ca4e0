"""Findings: the sentences a report begins with, made of estimates and counts only."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

MOST_FLAGS = 3  # that a sentence names
MOST_EXAMPLES = 3  # runs that a sentence leads to


class Example(NamedTuple):
    """A run that a finding counts.

    Attributes
    ----------
    label : str
        What the run is an example of, such as ``timed out``.
    run_id : str
    other : str
        The run beside it; empty where there is none.
    turn : int, optional
        The turn that shows it, from 1; by default the one that decided the run.
    """

    label: str
    run_id: str
    other: str = ""
    turn: int | None = None


class Finding(NamedTuple):
    """A sentence, the heading of the section that holds what it rests on, and up to three of the runs it counts."""

    text: str
    section: str
    examples: tuple[Example, ...] = ()


def examples_of(runs: "pd.DataFrame", labels: Mapping[str, "pd.Series"]) -> tuple[Example, ...]:
    """Take the first run of each label, of up to three labels.

    Parameters
    ----------
    runs : DataFrame
        With run_id.
    labels : mapping of str to boolean Series
        Which runs each label is about; one that is about none is left out.
    """
    if "run_id" not in runs:
        return ()
    first = ((label, runs.loc[own, "run_id"].head(1)) for label, own in labels.items())
    return tuple(Example(label, ids.iloc[0]) for label, ids in first if len(ids))[:MOST_EXAMPLES]


def counted_noun(n: int, noun: str) -> str:
    """Write a count with its noun: ``1 run``, ``1,200 runs``."""
    plural = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{n:,} {noun if n == 1 else plural}"


def endings_finding(
    endings: Mapping[str, int], n: int, noun: str, section: str, examples: tuple[Example, ...] = ()
) -> Finding:
    """Say how the runs without success ended, the most frequent way first.

    Parameters
    ----------
    endings : mapping
        Runs without success by how they ended, in words.
    n : int
        All runs that count.
    noun : str
    section : str
    examples : tuple of Example
        Runs that ended so.
    """
    failed = sum(endings.values())
    if not failed:
        return Finding(f"None of {counted_noun(n, noun)} failed.", section)
    ways = sorted(endings.items(), key=lambda item: (-item[1], item[0]))
    listed = ", ".join(f"{name} ({count:,})" for name, count in ways if count)
    return Finding(f"{failed:,} of {counted_noun(n, noun)} did not succeed: {listed}.", section, examples)


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
    examples = examples_of(runs, {name.replace("_", " "): runs[f"flag_{name}"] for _, name in named})
    return Finding(f"{said}; {files_text(ledger)}.", section, examples)


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
