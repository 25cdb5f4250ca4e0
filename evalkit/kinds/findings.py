"""Findings, which a report begins with: codes with values, made only from estimates and counts.

Those here are of any kind: what is doubtful in the data, and which models have fewer or more runs than others.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, NamedTuple

import pandas as pd

from evalkit._words import Notes, note
from evalkit.kinds.runs import UNKNOWN, Outcomes, has_flag, kind_of

MOST_EXAMPLES = 3  # runs that a finding links to
SECTION = "Data quality"
VARIANT = re.compile(r"[\W_]*(?:variants?|var|version|seed|copy|rep|v)[\W_]*\d+$", re.IGNORECASE)  # an id's end
FEW_VARIANTS = 6  # tasks of one stem on average: fewer are no sign of few tasks


class Example(NamedTuple):
    """A run that a finding counts."""

    label: str  # what the run is an example of, such as ``timed out``
    run_id: str
    other: str = ""  # the run to compare it with; empty if there is none
    turn: int | None = None  # that shows it, counted from 1; by default the one that decided the run


class Finding(NamedTuple):
    """What a report begins with: a record, whose text `evalkit.display.words.finding_text` makes."""

    code: str  # what was found; `evalkit.display.words.FINDINGS` has its text
    section: str  # the heading of the section with its evidence
    values: Mapping[str, Any] = {}  # of the text, by name: names, counts and estimates as they are
    examples: tuple[Any, ...] = ()  # up to three of the runs it counts; links to them, once `Evidence.cite` made these
    template: str = ""  # the text of a code of one's own, for ``str.format`` with the values


def examples_of(runs: pd.DataFrame, labels: Mapping[str, pd.Series]) -> tuple[Example, ...]:
    """Return the first run of each label, which says which runs have it, as an example, for up to three labels."""
    if "run_id" not in runs:
        return ()
    first = ((label, runs.loc[is_example, "run_id"].head(1)) for label, is_example in labels.items())
    return tuple(Example(label, ids.iloc[0]) for label, ids in first if len(ids))[:MOST_EXAMPLES]


def data_finding(runs: pd.DataFrame, ledger: pd.DataFrame, noun: str, section: str = SECTION) -> Finding:
    """Find what is doubtful in the data: flags of runs, unused files, and names that may mean one model.

    `noun` is the word for a run.
    """
    counts, everywhere = dict[str, int](), list[str]()
    raised = Counter(chain.from_iterable(map(set, runs["run_flags"])))
    for name, n in sorted(raised.items(), key=lambda item: (-item[1], item[0])):
        if n == len(runs) > 1:
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
    """Count the runs with each flag, with its meaning; flags that no run has are left out.

    A flag that the kind has a label for keeps its name, so that tables show the label.
    """
    if runs.empty:  # nothing tells their kind
        return pd.DataFrame(columns=["flag", "runs", "meaning"])
    kind = kind_of(runs)
    raised = Counter(chain.from_iterable(map(set, runs["run_flags"])))
    rows = []
    for name, meaning in kind.flags.items():
        if name in raised:
            shown = name if name in kind.labels else name.replace("_", " ")
            rows.append((shown, raised[name], meaning))
    return pd.DataFrame(rows, columns=["flag", kind.runs, "meaning"])


def files_of(ledger: pd.DataFrame) -> dict[str, int]:
    """Count the files of a ledger: all, those that were skipped, and those that failed."""
    counts = ledger["status"].value_counts()
    return {"all": len(ledger), **{name: int(counts.get(name, 0)) for name in ("skipped", "failed")}}


def similar_names(names: Iterable[str]) -> Notes:
    """Note names that differ only by case, or by what stands before their last ``/``, such as a provider's name."""
    groups: dict[str, list[str]] = {}
    for name in sorted(set(names)):
        groups.setdefault(name.casefold().rpartition("/")[2].strip(), []).append(name)
    notes = Notes()
    for same in groups.values():
        if len(same) > 1:
            notes += note("alike", names=same, one=min(same, key=lambda name: (len(name), name.swapcase())))
    return notes


def doubts(scored: Outcomes, planned: Iterable[str] = (), models: Iterable[str] = ()) -> list[Finding]:
    """Find tasks that are variants of few, tasks that were planned and not run, and models with fewer or more runs.

    `planned` are tasks that were to be run, besides those that other models ran; only findings on `models`, if any.
    """
    planned = list(planned)
    chosen = set(models) or set(scored.table["model_name"])
    cells = presence(scored.table, planned)
    cells = cells[(cells["n"] != cells["planned"]) & cells["model_name"].isin(chosen)]
    few = variants(scored)
    found = [Finding("variants", SECTION, {"notes": few})] if few else []
    if len(cells):
        gap = cells["planned"] - cells["n"]
        is_planned = cells["task"].isin(set(planned)) & cells["n"].eq(0)
        counts = cells.assign(
            missing=gap.where(is_planned, 0), fewer=gap.mask(is_planned, 0).clip(lower=0), more=(-gap).clip(lower=0)
        )
        ways = ["missing", "fewer", "more"]
        by_model = counts.groupby("model_name")[ways].sum().reset_index()
        by_model = by_model.sort_values(ways, ascending=False, kind="stable")
        more = scored.table.merge(cells[gap < 0], on=["model_name", "task", "condition"])
        runs = examples_of(more, {"a task with more runs": more["run_id"].notna()})
        found.append(Finding("presence", SECTION, {"models": by_model.to_dict("records")}, runs))
    return found


def variants(scored: Outcomes) -> Notes:
    """Note tasks that look like variants of few by their ids: ``_v12``, ``-variant-3``."""
    table = scored.table[(scored.table["task"] != scored.table["run_id"]) & scored.table["value"].notna()]
    ids = table["family"].astype("str").unique()
    stems = {VARIANT.sub("", name) for name in ids}
    is_suspect = len(ids) >= FEW_VARIANTS * max(len(stems), 1)
    return note("variants", tasks=len(ids), few=len(stems)) if is_suspect else Notes()


def presence(table: pd.DataFrame, planned: Iterable[str] = ()) -> pd.DataFrame:
    """Count the runs of each model on each task beside those that were planned, as far as the runs tell.

    Planned are as many runs of a task as over half of the models' tasks have, else at least one. A task is planned for
    a model that ran over half of all tasks; so models of different task sets lack nothing.
    """
    columns = ["model_name", "task", "condition"]
    known = table[(table["model_name"] != UNKNOWN) & (table["task"] != table["run_id"])]
    cells = known.groupby(columns).size()
    usual = cells.mode().iloc[0] if len(cells) else 1
    is_usual = bool(len(cells)) and (cells == usual).mean() > 0.5
    tasks = pd.MultiIndex.from_frame(known[columns[1:]].drop_duplicates())
    extra = [(task, "") for task in dict.fromkeys(planned) if task not in set(known["task"])]
    tasks = tasks.append(pd.MultiIndex.from_tuples(extra, names=columns[1:])) if extra else tasks
    ran = cells.groupby("model_name").size()
    whole = [model for model, n in ran.items() if 2 * n > len(tasks)]
    expected = pd.MultiIndex.from_tuples([(m, *task) for m in whole for task in tasks], names=columns)
    out = cells.reindex(cells.index.union(expected)).fillna(0).astype("int64").rename("n").reset_index()
    return out.assign(planned=usual if is_usual else out["n"].clip(lower=1))
