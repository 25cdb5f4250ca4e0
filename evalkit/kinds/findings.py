"""Findings, which a report begins with: codes with values, made only from estimates and counts."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from evalkit.kinds.models import alike

if TYPE_CHECKING:
    import pandas as pd

MOST_EXAMPLES = 3  # runs that a finding links to


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
    """What a report begins with: records, whose text `evalkit.display.words.text_of` makes.

    Attributes
    ----------
    code : str
        What was found; `evalkit.display.words.FINDINGS` has its text.
    section : str
        The heading of the section with its evidence.
    values : mapping
        Of the text, by name: names, counts and estimates as they are.
    examples : tuple of Example
        Up to three of the runs it counts; links to them, once `evalkit.Evidence.cite` made these.
    template : str
        The text of a code of one's own, for ``str.format`` with the values.
    """

    code: str
    section: str
    values: Mapping[str, Any] = {}
    examples: tuple[Any, ...] = ()
    template: str = ""


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


def endings_finding(
    endings: Mapping[str, int], n: int, noun: str, section: str, examples: tuple[Example, ...] = ()
) -> Finding:
    """Find how the runs without success ended.

    Parameters
    ----------
    endings : mapping
        Numbers of runs without success by how they ended, in words.
    n : int
        The number of all counted runs.
    noun : str
        The word for a run.
    section : str
    examples : tuple of Example
        Runs that ended in these ways.
    """
    values = {"endings": dict(endings), "n": n, "noun": noun}
    return Finding("endings", section, values, examples if any(endings.values()) else ())


def data_finding(
    runs: "pd.DataFrame", flags: Mapping[str, str], ledger: "pd.DataFrame", noun: str, section: str = "Data quality"
) -> Finding:
    """Find what is doubtful in the data: flags of runs, unused files, and names that may mean one model.

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
    counts = dict(sorted(((name, n) for name, n in counts.items() if n), key=lambda item: (-item[1], item[0])))
    everywhere = [name.replace("_", " ") for name, n in counts.items() if n == len(runs) > 1]  # no finding, but a fact
    counts = {name: n for name, n in counts.items() if not n == len(runs) > 1}
    flagged = int(runs[[f"flag_{name}" for name in counts]].any(axis=1).sum()) if counts else 0
    examples = examples_of(runs, {name.replace("_", " "): runs[f"flag_{name}"] for name in counts})
    values = {"flags": counts, "flagged": flagged, "n": len(runs), "noun": noun, "files": files_of(ledger)}
    values["everywhere"] = everywhere
    if "model_name" in runs:
        values["names"] = alike(runs["model_name"].dropna())
    return Finding("data", section, values, examples)


def files_of(ledger: "pd.DataFrame") -> dict[str, int]:
    """Count the files of a ledger: all, those that were skipped, and those that failed."""
    counts = ledger["status"].value_counts()
    return {"all": len(ledger), **{name: int(counts.get(name, 0)) for name in ("skipped", "failed")}}
