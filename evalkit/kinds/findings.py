"""Findings for the beginning of a report: codes with values, made only from estimates and counts.

Findings for all kinds are doubtful data, and models that lack planned tasks, or runs that other models have.
"""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import chain
from typing import Any, NamedTuple

import pandas as pd

from evalkit._notes import Notes, note
from evalkit._text import Parts
from evalkit.kinds import sections
from evalkit.kinds.runs import UNKNOWN, Outcomes, has_flag, kind_of

MOST_EXAMPLES = 3  # maximum number of runs that a finding links to
VARIANT = re.compile(r"(?i)(?<![\W_])[\W_]*(?:variants?|var|version|seed|copy|rep|v)[\W_]*\d+[)\]]?$")  # end of id
FEW_VARIANTS = 6  # minimum average number of tasks per stem before tasks are suspected to be variants of a few


class Example(NamedTuple):
    """A run that a finding counts."""

    label: str  # what the run is an example of, such as ``timed out``
    run_id: str
    other: str = ""  # id of a run to compare it with; "" if there is none
    turn: int | None = None  # number of the turn to show, from 1; by default the turn that decided the run


class RunLink(NamedTuple):
    """A link to the page of a run: its label and address."""

    label: str
    href: str


class Finding(NamedTuple):
    """A finding at the beginning of a report; `evalkit.display.words.finding_text` makes its text."""

    code: str  # what was found; `evalkit.display.words.FINDINGS` has the texts that all kinds share
    section: str  # key of the section with the evidence, as in `evalkit.kinds.sections`; "" if there is none
    values: Mapping[str, Any] = {}  # values in the text, by name: unformatted names, counts and estimates
    # up to three of the runs it counts; `Evidence.cite` replaces them by links
    examples: tuple[Example | RunLink, ...] = ()
    # template for ``str.format``, or a function, that makes the text from the values; not needed for common codes
    template: str | Callable[..., str | Parts] = ""
    # runs to which parts of the text link, by the keys of these parts, each as {column of the runs: value};
    # `Evidence.cite` replaces them by addresses
    links: Mapping[Hashable, Any] = {}


def examples_of(runs: pd.DataFrame, labels: Mapping[str, pd.Series]) -> tuple[Example, ...]:
    """Return the first run of each of up to three labels. `labels` contains a Boolean mask of runs for each label."""
    if "run_id" not in runs:
        return ()
    first = ((label, runs.loc[is_example, "run_id"].head(1)) for label, is_example in labels.items())
    return tuple(Example(label, ids.iloc[0]) for label, ids in first if len(ids))[:MOST_EXAMPLES]


def data_finding(runs: pd.DataFrame, ledger: pd.DataFrame, noun: str) -> Finding:
    """Find doubtful data: flags of runs, unused files, and different names that may mean the same model.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.
    ledger : DataFrame
        One row per input file, such as `logs.ledger`.
    noun : str
        Word for a run, such as ``episode``.

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
            everywhere.append(name.replace("_", " "))  # a flag of all runs is background, not a finding
        else:
            counts[name] = n
    flagged = sum(not counts.keys().isdisjoint(flags) for flags in runs["run_flags"])
    first = list(counts)[:MOST_EXAMPLES]
    examples = examples_of(runs, {name.replace("_", " "): has_flag(runs, name) for name in first})
    values = {"flags": counts, "everywhere": everywhere, "flagged": flagged, "n": len(runs), "noun": noun}
    values["files"] = files_of(ledger)
    if "model_name" in runs:
        values["names"] = similar_names(runs)
    return Finding("data", sections.DATA_QUALITY, values, examples)


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
    """Count all, skipped and failed files of a ledger."""
    counts = ledger["status"].value_counts()
    return {"all": len(ledger), **{name: int(counts.get(name, 0)) for name in ("skipped", "failed")}}


def bare_name(name: str) -> str:
    """Return a name in lower case, without the text before its last ``/``, such as the name of a provider."""
    return name.casefold().rpartition("/")[2].strip()


def similar_names(runs: pd.DataFrame) -> Notes:
    """Note models whose names differ only in case, or in the text before the last ``/``, such as a provider's name."""
    names = runs["logged_model"] if "logged_model" in runs else runs["model_name"]  # not joined with agents
    groups: dict[str, list[str]] = {}
    for name in sorted(set(names.dropna())):
        groups.setdefault(bare_name(name), []).append(name)
    notes = Notes()
    for same in groups.values():
        if len(same) > 1:
            notes += note("alike", names=same, one=min(same, key=lambda name: (len(name), name.swapcase())))
    return notes


def doubts(scored: Outcomes, planned: Iterable[str] = (), models: Iterable[str] = ()) -> list[Finding]:
    """Find tasks that look like variants of a few, and models that lack planned tasks or runs (`absent_runs`).

    If `models` are given, report the absent runs of these models only.
    """
    few, lacking = variants(scored), absent_counts(absent_runs(scored.table, planned), models)
    found = [Finding("variants", sections.DATA_QUALITY, {"notes": few})] if few else []
    return [*found, Finding("absent", sections.DATA_QUALITY, lacking)] if lacking else found


def absent_runs(table: pd.DataFrame, planned: Iterable[str] = ()) -> pd.DataFrame:
    """Count the runs that each measured model has and lacks, for each task and condition.

    If a model ran a task, it should have as many runs of it as the model with the most. It should have run each
    `planned` task once, under the conditions of its other runs, because a plan does not record repetitions. The columns
    are task, condition, model_name, n, absent and is_planned (whether the model should have run the task).
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
    """Sum `absent_runs` by model, as values of the note ``absent``; empty if no run is absent."""
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
    """Note that, by their ids, tasks look like variants of a few: ``_v12``, ``-variant-3``."""
    table = scored.table[(scored.table["task"] != scored.table["run_id"]) & scored.table["value"].notna()]
    ids = table["family"].astype("str").unique()
    stems = {VARIANT.sub("", name) or name for name in ids}  # nothing is left of an id such as ``seed-3``
    is_suspect = len(ids) >= FEW_VARIANTS * max(len(stems), 1)
    return note("variants", tasks=len(ids), few=len(stems)) if is_suspect else Notes()
