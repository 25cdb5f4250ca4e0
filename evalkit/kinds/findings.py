"""Findings, which a report begins with: codes with values, made only from estimates and counts.

Those here are of any kind: what is doubtful in the data, and which models lack planned tasks, or runs that others have.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any, NamedTuple

import pandas as pd

from evalkit._notes import Notes, note
from evalkit.kinds import sections
from evalkit.kinds.runs import UNKNOWN, Outcomes, has_flag, kind_of

MOST_EXAMPLES = 3  # runs that a finding links to
VARIANT = re.compile(r"(?<![\W_])[\W_]*(?:variants?|var|version|seed|copy|rep|v)[\W_]*\d+$", re.IGNORECASE)  # of an id
FEW_VARIANTS = 6  # tasks of one stem on average: fewer are no sign of few tasks


class Example(NamedTuple):
    """A run that a finding counts."""

    label: str  # what the run is an example of, such as ``timed out``
    run_id: str
    other: str = ""  # the run to compare it with; empty if there is none
    turn: int | None = None  # that shows it, counted from 1; by default the one that decided the run


class Finding(NamedTuple):
    """What a report begins with: a record, whose text `evalkit.display.words.finding_text` makes."""

    code: str  # what was found; `evalkit.display.words.FINDINGS` has the texts that all kinds share
    section: str  # the heading of the section with its evidence
    values: Mapping[str, Any] = {}  # of the text, by name: names, counts and estimates as they are
    examples: tuple[Any, ...] = ()  # up to three of the runs it counts; links to them, once `Evidence.cite` made these
    # makes the text from the values: a template for ``str.format``, or a function; of common codes none is needed
    template: str | Callable[..., str] = ""


def examples_of(runs: pd.DataFrame, labels: Mapping[str, pd.Series]) -> tuple[Example, ...]:
    """Return an example for each of up to three labels: its first run. `labels` marks the runs of each label."""
    if "run_id" not in runs:
        return ()
    first = ((label, runs.loc[is_example, "run_id"].head(1)) for label, is_example in labels.items())
    return tuple(Example(label, ids.iloc[0]) for label, ids in first if len(ids))[:MOST_EXAMPLES]


def data_finding(runs: pd.DataFrame, ledger: pd.DataFrame, noun: str, section: str = sections.DATA_QUALITY) -> Finding:
    """Find doubtful data: flags of runs, unused files, and names that may mean one model.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.
    ledger : DataFrame
        One row per input file, such as `logs.ledger`.
    noun : str
        Word for a run, such as ``episode``.
    section : str
        Heading of the finding's section.

    Returns
    -------
    Finding
        The finding.

    Examples
    --------
    >>> kinds.data_finding(runs, logs.ledger, "run").code
    'data'
    """
    counts, everywhere = dict[str, int](), list[str]()
    for name, n in sorted(_count_flags(runs).items(), key=lambda item: (-item[1], item[0])):
        if n == len(runs) and n > 1:
            everywhere.append(name.replace("_", " "))  # no finding, but a fact
        else:
            counts[name] = n
    flagged = sum(not counts.keys().isdisjoint(flags) for flags in runs["run_flags"])
    first = list(counts)[:MOST_EXAMPLES]
    examples = examples_of(runs, {name.replace("_", " "): has_flag(runs, name) for name in first})
    values = {"flags": counts, "everywhere": everywhere, "flagged": flagged, "n": len(runs), "noun": noun}
    values["files"] = files_of(ledger)
    if "model_name" in runs:
        values["names"] = similar_names(runs["model_name"].dropna())
    return Finding("data", section, values, examples)


def flag_counts(runs: pd.DataFrame) -> pd.DataFrame:
    """Count the runs with each flag; flags without runs are excluded.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.

    Returns
    -------
    DataFrame
        flag, meaning and the number of runs, the most frequent first.

    Examples
    --------
    >>> analysis.flag_counts(runs).columns[0]
    'flag'
    """
    kind = kind_of(runs)
    raised = _count_flags(runs)
    rows = []
    for name, meaning in kind.flags.items():
        if name in raised:
            shown = name if name in kind.labels else name.replace("_", " ")
            rows.append((shown, raised[name], meaning))
    return pd.DataFrame(rows, columns=["flag", kind.runs, "meaning"])


def _count_flags(runs: pd.DataFrame) -> Counter[str]:
    return Counter(chain.from_iterable(map(set, runs["run_flags"])))


def files_of(ledger: pd.DataFrame) -> dict[str, int]:
    """Count the files of a ledger: all, skipped, failed."""
    counts = ledger["status"].value_counts()
    return {"all": len(ledger), **{name: int(counts.get(name, 0)) for name in ("skipped", "failed")}}


def bare_name(name: str) -> str:
    """Return a name without case and the text before its last ``/``, such as a provider's name."""
    return name.casefold().rpartition("/")[2].strip()


def similar_names(names: Iterable[str]) -> Notes:
    """Note names that differ only by case, or by the text before their last ``/``, such as a provider's name."""
    groups: dict[str, list[str]] = {}
    for name in sorted(set(names)):
        groups.setdefault(bare_name(name), []).append(name)
    notes = Notes()
    for same in groups.values():
        if len(same) > 1:
            notes += note("alike", names=same, one=min(same, key=lambda name: (len(name), name.swapcase())))
    return notes


def doubts(scored: Outcomes, planned: Iterable[str] = (), models: Iterable[str] = ()) -> list[Finding]:
    """Find tasks that are variants of few, and models that lack planned tasks or runs (`absent_runs`).

    Of `models`, if any are named, only their runs are absent.
    """
    few, lacking = variants(scored), absent_counts(absent_runs(scored.table, planned), models)
    found = [Finding("variants", sections.DATA_QUALITY, {"notes": few})] if few else []
    return [*found, Finding("absent", sections.DATA_QUALITY, lacking)] if lacking else found


def absent_runs(table: pd.DataFrame, planned: Iterable[str] = ()) -> pd.DataFrame:
    """Count the runs that measured models have, and lack, of each task under each condition.

    A model is expected to have as many runs of a task that it ran as any model has. It is expected to have run the
    `planned` tasks, once, under the conditions that it ran: a plan does not state repetitions. Columns are task,
    condition, model_name, n, absent, is_planned (whether the model was to run it).
    """
    is_measured = table.groupby("model_name")["value"].transform("count") > 0
    known = table[is_measured & (table["model_name"] != UNKNOWN) & (table["task"] != table["run_id"])]
    n = known.groupby(["task", "condition", "model_name"]).size().unstack(fill_value=0)
    planned = set(planned)
    unrun = [(task, "") for task in sorted(planned.difference(known["task"]))]
    n = n.reindex([*n.index, *unrun], fill_value=0)
    is_due = n.groupby("condition").transform("sum").gt(0) | n.index.isin(unrun)[:, None]
    is_planned = is_due.mul(n.index.isin(planned, level="task"), axis=0)
    absent = n.rsub(n.max(axis=1), axis=0).where(n.gt(0), is_planned.astype(int))
    cells = pd.DataFrame({"n": n.stack()})
    return cells.assign(absent=absent.to_numpy().ravel(), is_planned=is_planned.to_numpy().ravel()).reset_index()


def absent_counts(cells: pd.DataFrame, models: Iterable[str] = ()) -> dict[str, Any]:
    """Sum `absent_runs` by model, as values of the note ``absent``; empty where no run is absent."""
    if not cells["absent"].any():
        return {}
    chosen = set(models) or set(cells["model_name"])
    cells = cells[cells["model_name"].isin(chosen)].assign(unrun=cells["is_planned"] & cells["n"].eq(0))
    cells["expected"] = (cells["n"] + cells["absent"]).mask(cells["n"].eq(0), 0)
    sums = cells.groupby("model_name")[["n", "expected", "unrun", "is_planned"]].sum()
    fewer = list(sums.loc[sums["n"] < sums["expected"], ["n", "expected"]].itertuples(name=None))
    unrun = list(sums.loc[sums["unrun"] > 0, ["unrun", "is_planned"]].itertuples(name=None))
    return {"fewer": fewer, "unrun": unrun} if fewer or unrun else {}


def variants(scored: Outcomes) -> Notes:
    """Note tasks that look like variants of few by their ids: ``_v12``, ``-variant-3``."""
    table = scored.table[(scored.table["task"] != scored.table["run_id"]) & scored.table["value"].notna()]
    ids = table["family"].astype("str").unique()
    stems = {VARIANT.sub("", name) or name for name in ids}  # of an id like ``seed-3``, nothing names a template
    is_suspect = len(ids) >= FEW_VARIANTS * max(len(stems), 1)
    return note("variants", tasks=len(ids), few=len(stems)) if is_suspect else Notes()
