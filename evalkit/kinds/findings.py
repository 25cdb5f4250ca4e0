"""Findings: the sentences a report begins with, made only from estimates and counts."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

MOST_FLAGS = 3  # named in a sentence
MOST_EXAMPLES = 3  # runs that a sentence links to


class Example(NamedTuple):
    """A run that a finding counts.

    Attributes
    ----------
    label : str
        What the run is an example of, such as ``timed out``.
    run_id : str
    other : str
        The run to compare it with; empty if there is none.
    turn : int, optional
        The turn that shows it, counted from 1; by default the one that decided the run.
    """

    label: str
    run_id: str
    other: str = ""
    turn: int | None = None


class Finding(NamedTuple):
    """A sentence, the heading of the section with its evidence, and up to three of the runs it counts."""

    text: str
    section: str
    examples: tuple[Example, ...] = ()


def examples_of(runs: "pd.DataFrame", labels: Mapping[str, "pd.Series"]) -> tuple[Example, ...]:
    """Return the first run of each label as an example, for up to three labels.

    Parameters
    ----------
    runs : DataFrame
        With run_id.
    labels : mapping of str to boolean Series
        Which runs have each label; a label without runs is left out.
    """
    if "run_id" not in runs:
        return ()
    first = ((label, runs.loc[is_example, "run_id"].head(1)) for label, is_example in labels.items())
    return tuple(Example(label, ids.iloc[0]) for label, ids in first if len(ids))[:MOST_EXAMPLES]


def counted_noun(n: int, noun: str) -> str:
    """Format a count with its noun: ``1 run``, ``1,200 runs``."""
    plural = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{n:,} {noun if n == 1 else plural}"


def endings_finding(
    endings: Mapping[str, int], n: int, noun: str, section: str, examples: tuple[Example, ...] = ()
) -> Finding:
    """Describe how the runs without success ended, the most frequent way first.

    Parameters
    ----------
    endings : mapping
        Numbers of runs without success by how they ended, in words.
    n : int
        The number of all counted runs.
    noun : str
    section : str
    examples : tuple of Example
        Runs that ended in these ways.
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
    """Describe what is doubtful in the data: flags of runs, and unused files.

    Parameters
    ----------
    runs : DataFrame
        With a column ``flag_NAME`` for every flag.
    flags : mapping
        Meanings of flags by name.
    ledger : DataFrame
    noun : str
        The word for a run.
    section : str
    """
    counts = {name: int(runs[f"flag_{name}"].sum()) for name in flags if f"flag_{name}" in runs}
    named = sorted(((n, name) for name, n in counts.items() if n), key=lambda item: (-item[0], item[1]))
    text = f"No {noun} carries a flag"
    if named:
        flagged = int(runs[[f"flag_{name}" for _, name in named]].any(axis=1).sum())
        listed = ", ".join(f"{name.replace('_', ' ')} ({n:,})" for n, name in named[:MOST_FLAGS])
        more = f" and {counted_noun(len(named) - MOST_FLAGS, 'other flag')}" if len(named) > MOST_FLAGS else ""
        text = f"{flagged:,} of {counted_noun(len(runs), noun)} {_carry(flagged)} a flag: {listed}{more}"
    examples = examples_of(runs, {name.replace("_", " "): runs[f"flag_{name}"] for _, name in named})
    return Finding(f"{text}; {files_text(ledger)}.", section, examples)


def files_text(ledger: "pd.DataFrame") -> str:
    """Describe how many files of a ledger were used, skipped and failed."""
    counts = ledger["status"].value_counts()
    skipped, failed = int(counts.get("skipped", 0)), int(counts.get("failed", 0))
    if not skipped + failed:
        return f"all {len(ledger):,} files were used" if len(ledger) != 1 else "the one file was used"
    clauses = [f"{failed:,} could not be read"] * bool(failed) + [f"{skipped:,} skipped"] * bool(skipped)
    return f"of {counted_noun(len(ledger), 'file')}, {' and '.join(clauses)}"


def _carry(n: int) -> str:
    return "carries" if n == 1 else "carry"
