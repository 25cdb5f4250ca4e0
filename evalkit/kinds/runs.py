"""Decide which runs of any kind count and what the outcome of each is, so that all kinds can be compared alike."""

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from evalkit._notes import NO_NOTES, Notes, note
from evalkit._text import as_list, check_columns, counted_noun, did_you_mean, sentence
from evalkit.io.paths import SourceError
from evalkit.io.text import plain
from evalkit.kinds.errors import RAISED
from evalkit.kinds.kind import LogKind
from evalkit.kinds.registry import kind_named
from evalkit.stats.intervals import numbers

MOST_MODELS = 200  # maximum number of models in a table that is slow to compute; a page shows no more rows either
UNKNOWN = "unknown"  # model of runs whose logs do not name one
AS_LOGGED = "as logged"  # unit of scores from other programs; they are shares if all loaded scores are between 0 and 1
NO_OUTCOME = note("no_outcome")
NO_SCORE = note("no_score")
NO_RUN = note("no_run")
JUDGED = "judged"  # flag of runs whose outcome is the verdict of a judge
BY_JUDGE = " by a judge"  # suffix of the name of every estimate that includes such runs
MOST_NAMED = 8  # maximum number of models listed in a sentence; above it, the sentence gives their number
MOST_SCORER = 30  # maximum length of a scorer's name in the title of an estimate, in characters
MOST_REASON = 30  # maximum length of an error that states how a run ended, in characters
MEASURED = ("success", "failure")
# status or exit reason of a run that was stopped at a limit
STOPPED = re.compile(r"time.?d?.?out|limit|max.?(?:steps|turns|iterations)|exit_cost|budget", re.IGNORECASE)
_KEPT = ["run_id", "source", "model_name", "task_type", "repetition", "started", "duration", "cost"]
_ALSO_NEEDED = ["is_successful", "score", "status", "tokens_in", "tokens_out"]


Value = Literal["", "is_successful", "score"]  # what is compared; "" for success if the logs record it, else the score


class Outcomes(NamedTuple):
    """The counted runs, with one value each.

    `table` has one row per run: model_name, task (or the run's id if it has none), family (the task's cluster if runs
    were loaded with ``cluster``, else the task), task_type, repetition, seed, value (NaN if missing), run_id, source,
    started, duration, cost, tokens, outcome (success, failure, not measured, running, or scored: the run has a score,
    but neither succeeded nor failed), ended (an error, a limit, or a status in words; "" if the log records no outcome)
    and condition (settings that must be equal for runs to be comparable, such as ``max_turns=20``; "" if none).
    """

    table: pd.DataFrame
    kind: Literal["proportion", "score", "mean"]  # type of the values, as in `evalkit.stats.estimate_by`
    name: str  # name of an estimate of the values, such as ``success rate``
    unit: str = ""  # unit of the values; "" for shares
    left_out: int = 0  # number of runs that a flag excludes from all rates
    by: str = ""  # name of the scorer or reward, if the logs name exactly one
    compared_by: tuple[str, ...] = ()  # columns that `model_name` is made from, if it contains more than the model
    conditions_of: Literal["run", "task"] = "run"  # who chooses the conditions of these runs; see `RateRules`
    only_shared: bool = False  # whether models are compared only on tasks that both ran: tasks are documents
    judged: Notes = NO_NOTES  # note on outcomes that are verdicts of a judge

    @property
    def is_share(self) -> bool:
        """Whether all values are between 0 and 1."""
        return self.kind != "mean"

    @property
    def title(self) -> str:
        """Name of an estimate of the values, with the unit and the scorer if known."""
        title = f"{self.name} in {self.unit}" if self.unit else self.name
        return f"{title} ({self.by})" if self.by else title

    def marked(self, table: pd.DataFrame) -> pd.DataFrame:
        """Add what is estimated to a table of estimates of these outcomes, and the note on a judge to its warnings."""
        if "measure" not in table:
            table = table.assign(measure=self.title)
        if self.judged and "warning" in table:
            warnings = [one + self.judged for one in table["warning"]]
            table = table.assign(warning=pd.Series(warnings, table.index, dtype="object"))
        return table


def judge_mark(warnings: Iterable[Notes]) -> str:
    """Return the suffix for the name of estimates with these warnings: that a judge decided, or ""."""
    for one in chain.from_iterable(warning.only(JUDGED).notes for warning in warnings):
        return f" partly{BY_JUDGE}" if one.values["is_partly"] else BY_JUDGE
    return ""


def outcomes(runs: pd.DataFrame, value: Value = "", kind: LogKind | None = None, *, cluster: str = "") -> Outcomes:
    """Select the runs that count, and give each an outcome and a value.

    When comparing success, a run that was not measured has the value NaN, or 0 if the kind counts such runs as failures
    and at least one run of its model was measured. When comparing scores, a run without a score has the value NaN.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.
    value : {"", "is_successful", "score"}
        What to compare; by default success if the logs record it, else the score.
    kind : LogKind, optional
        Kind of the runs; by default the value of their column kind.
    cluster : str
        Column with the family of each task; by default the one given to `load`.

    Returns
    -------
    Outcomes
        `table` with one row per run, and a description of its values.

    Raises
    ------
    ValueError
        If a column is missing, or `value` is unknown.

    Examples
    --------
    >>> kinds.outcomes(runs).table["outcome"].unique().tolist()[:1]
    ['not measured']
    """
    if value not in ("", "is_successful", "score"):
        raise ValueError(f"{value!r} can't be compared: {did_you_mean(value, ('is_successful', 'score'))}")
    check_columns(runs, *_KEPT, *_ALSO_NEEDED, *filter(None, [cluster]))
    kind = kind or kind_of(runs)
    counts = ~is_excluded(runs, kind)
    rows = runs if counts.all() else runs[counts]  # selecting is slow even for few rows
    if not cluster and "cluster" in rows:  # `load` was called with a cluster
        cluster = "cluster"
    model = rows["model_name"].fillna(UNKNOWN)
    tasks = kind.rates.task_of(rows)
    tasks = tasks.where(tasks.notna(), rows["run_id"])
    stated = [name for name in kind.rates.conditions if name in rows and rows[name].notna().any()]
    compared_by = compared_in(runs)
    scorers = rows["score_key"].dropna().unique().tolist() if "score_key" in rows else []
    judged = NO_NOTES
    is_judged = has_flag(rows, JUDGED)
    if is_judged.any():
        judged = note(JUDGED, count=int(is_judged.sum()), is_partly=not is_judged.all())
    mark = judge_mark([judged])

    all_outcomes = _outcomes_of(runs, kind)
    outcome = all_outcomes[counts]
    is_measured = np.isin(outcome, MEASURED)
    score = numbers(rows["score"])
    has_score = ~np.isnan(score)
    succeeded = np.where(outcome == "success", 1.0, 0.0)
    is_table = "format" in rows and bool(rows["format"].eq("table").any())
    are_outcomes = bool(is_measured.any() and (score == succeeded)[has_score].all())  # the scores are 1 or 0
    may_succeed = "success" in kind.rates.outcome_of.values()
    has_rate = np.isin(all_outcomes, MEASURED).any() or (may_succeed and rows["score"].isna().all())
    is_rate = value == "is_successful" or (not value and bool(has_rate))
    if is_rate:
        is_counted = is_measured
        if kind.rates.denominator == "all":
            is_counted = model.isin(model[is_measured]).to_numpy() & (outcome != "running")
        values = np.where(is_counted, succeeded, np.nan)
        outcome = np.where((outcome == "not measured") & has_score, "scored", outcome)
    else:
        values = score
        outcome = np.where(has_score & ~is_measured, "scored", outcome)
    columns = {
        **{name: rows[name] for name in _KEPT},
        "model_name": model,
        "task": tasks,
        "outcome": pd.Series(outcome, rows.index, dtype="str"),
        "seed": kind.rates.seed_of(rows) if "seed" in rows else None,
        "family": rows[cluster].astype("str").where(rows[cluster].notna(), tasks) if cluster else tasks,
        "tokens": rows["tokens_in"].astype("Float64") + rows["tokens_out"].astype("Float64"),
        "ended": _endings(rows, kind),
        "condition": _conditions(rows[stated]),
        "value": values,
    }
    if compared_by:
        columns["logged_model"] = rows["logged_model"]
    made = Outcomes(
        pd.DataFrame(columns, rows.index),
        "mean",
        f"mean score{mark}",
        left_out=int((~counts).sum()),
        by=plain(scorers[0], MOST_SCORER) if len(scorers) == 1 else "",
        compared_by=compared_by,
        conditions_of="task" if set(stated) <= set(kind.rates.task_conditions) else "run",
        only_shared="document_hash" in rows and bool(rows["document_hash"].notna().any()),
        judged=judged,
    )
    if is_rate:
        by = made.by if are_outcomes or not is_table else ""  # then the outcomes are not from this score
        return made._replace(kind="proportion", name=f"success rate{mark}", by=by)
    if is_table and are_outcomes:
        made = made._replace(name=f"success rate{mark}")
    unit = next(column.unit for column in kind.tables[kind.runs] if column.name == "score")
    are_shares = rows["is_share"].all() if "is_share" in rows else not np.any((score < 0) | (score > 1))
    if unit.startswith("share") or (unit == AS_LOGGED and are_shares):
        return made._replace(kind="score")
    return made._replace(unit=unit.removeprefix(AS_LOGGED))


def _endings(rows: pd.DataFrame, kind: LogKind) -> pd.Series:
    """Return how each run ended: the class of its error, else its exit reason, else its status; "" without outcome."""
    cells = []
    for name in ("status", "exit_reason", "error"):
        texts = rows[name].astype("str").astype("object") if name in rows else pd.Series(None, rows.index, "object")
        cells.append(texts.where(texts.notna(), None).tolist())
    ended: list[str | None] = []
    for status, reason, error, has_no_outcome in zip(*cells, has_flag(rows, "no_outcome"), strict=True):
        stated = "" if has_no_outcome else reason or status
        is_vague = stated in (None, "", "error") or (stated == "failed" and not reason)
        raised = RAISED.match(error) if is_vague and error is not None else None
        if raised:
            ended.append(raised[1])
        elif not stated:
            ended.append(stated if error is None else plain(error, MOST_REASON))
        elif reason:
            ended.append(reason)
        else:
            ended.append(f"status {kind.labels.get(stated, stated)}")
    return pd.Series(ended, rows.index, dtype="str")


def _conditions(rows: pd.DataFrame) -> pd.Series:
    """Return the condition of each run, such as ``max_turns=20``; "" if its log records none."""
    texts = [[""] * len(rows)]
    for name, column in rows.items():
        named = f"{name}=" + column.astype("str")
        texts.append(named.where(column.notna(), "").tolist())
    joined = [", ".join(filter(None, of_run)) for of_run in zip(*texts, strict=True)]
    return pd.Series(joined, rows.index, dtype="str")


def exported(runs: pd.DataFrame, kind: LogKind) -> pd.DataFrame:
    """Add columns that record how comparisons count each run, so that a written table gives the same rates when read.

    The columns are counts_as (success, failure, scored, not measured, running, or excluded), task (the task's name
    within its type), condition (a setting that must be equal for runs to be comparable; task_condition if the task
    defines it) and checkpoint (the seed that runs share). Columns of the kind that already have one of these names get
    the name of the kind as a prefix.
    """
    data = outcomes(runs, kind=kind)
    table = data.table.set_index("run_id")
    counts_as = table["outcome"]
    if data.kind == "proportion":
        counts_as = table["value"].map({1.0: "success", 0.0: "failure"}).fillna(counts_as)
    tasks = [task.removeprefix(f"{of_type}/") for task, of_type in zip(table["task"], table["task_type"], strict=True)]
    added = table[["condition"]].assign(counts_as=counts_as, task=tasks, checkpoint=table["seed"])
    if data.conditions_of == "task":
        added = added.rename(columns={"condition": "task_condition"})
    own = {name: f"{kind.name}_{name}" for name in added}
    return runs.rename(columns=own).join(added, on="run_id").fillna({"counts_as": "excluded"})


def outcome_of(runs: pd.DataFrame, kind: LogKind) -> pd.Series:
    """Return each run's outcome (success, failure, not measured, running): from is_successful, or else from status."""
    return pd.Series(_outcomes_of(runs, kind), runs.index, dtype="str")


def _outcomes_of(runs: pd.DataFrame, kind: LogKind) -> np.ndarray:
    success = runs["is_successful"].astype("boolean")
    by_status = [kind.rates.outcome_of.get(status, "not measured") for status in runs["status"].tolist()]
    by_success = np.where(success.fillna(False), "success", "failure").astype("object")
    return np.where(success.isna(), np.array(by_status, dtype="object"), by_success)


def compared_in(runs: pd.DataFrame) -> tuple[str, ...]:
    """Return the columns that `model_name` is made from, such as agent and model_name; () if it is just the model."""
    return () if "compared_by" not in runs else tuple(as_list(next(iter(runs["compared_by"].dropna()), ())))


def kind_of(runs: pd.DataFrame) -> LogKind:
    """Return the kind of a frame of runs, even of an empty selection. Raise SourceError if there are several kinds."""
    check_columns(runs, "kind")
    names = sorted(runs["kind"].dropna().unique())
    if not names and runs["kind"].dtype == "category":
        names = runs["kind"].cat.categories.tolist()
    if len(names) != 1:
        several = f"runs of several kinds ({', '.join(names)}): compare one kind at a time"
        raise SourceError(several if names else "there are no runs")
    return kind_named(names[0])


def is_excluded(runs: pd.DataFrame, kind: LogKind) -> pd.Series:
    """Return for each run whether a flag excludes it from rates."""
    return has_flag(runs, *kind.rates.excluding_flags)


def counted(runs: pd.DataFrame, kind: LogKind | None = None) -> pd.DataFrame:
    """Select the runs that rates include. A flag may exclude a run, such as a copy of another run.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.
    kind : LogKind, optional
        Kind of the runs; by default the value of their column kind.

    Returns
    -------
    DataFrame
        The selected runs.

    Examples
    --------
    >>> len(runs) - len(kinds.counted(runs))
    1
    """
    return runs[~is_excluded(runs, kind or kind_of(runs))]


def has_flag(runs: pd.DataFrame, *flags: str) -> pd.Series:
    """Return for each run whether it has any of these flags.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.
    *flags : str
        Names of flags, such as ``stale_copy``.

    Returns
    -------
    Series of bool, shape (runs,)
        True for a run with one of the flags.

    Examples
    --------
    >>> int(kinds.has_flag(runs, "stale_copy").sum())
    1
    """
    check_columns(runs, "run_flags")
    wanted = frozenset(flags)
    return pd.Series([not wanted.isdisjoint(own) for own in runs["run_flags"]], runs.index, dtype="bool")


def copied(runs: pd.DataFrame, kind: LogKind) -> list[tuple[str, str, int]]:
    """Count copied runs, which all rates exclude, by their model and the model whose logs they copy."""
    if "copied_model" not in runs:  # in other kinds, a copy belongs to the same model as its original
        return []
    names = runs.loc[is_excluded(runs, kind), ["model_name", "copied_model"]].astype("object")
    pairs = names.fillna(UNKNOWN).value_counts().reset_index(name="n")
    return list(pairs.itertuples(index=False, name=None))


def select(runs: pd.DataFrame, models: str | Sequence[str] = ()) -> pd.DataFrame:
    """Select the runs of some models.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.
    models : str or sequence of str
        Names of models, or of the groups that are compared instead of models; empty for all.

    Returns
    -------
    DataFrame
        The selected runs.

    Raises
    ------
    SourceError
        If there are no runs, or a model has no runs.

    Examples
    --------
    >>> kinds.select(runs, "alder-large")["model_name"].unique().tolist()
    ['alder-large']
    """
    there = sorted(runs["model_name"].dropna().unique())
    if not len(runs):
        raise SourceError("no run was found; the ledger lists the files")
    wanted = as_list(models)
    is_wanted = runs["model_name"].isin(wanted)
    known = set(there)
    if "logged_model" in runs:
        is_wanted |= runs["logged_model"].isin(wanted)
        known |= set(runs["logged_model"].dropna())
    for name in wanted:
        if name not in known:
            raise SourceError(f"no runs of model {name!r}; {did_you_mean(name, there)}")
    return runs[is_wanted] if wanted else runs


def describe_runs(runs: pd.DataFrame, source: str | Sequence[str], chosen: Notes = NO_NOTES) -> str:
    """Describe the runs in a sentence. Add whether they are samples, and which choices evalkit made.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.
    source : str or sequence of str
        The source of the runs.
    chosen : Notes
        The choices, such as `logs.chosen`.

    Returns
    -------
    str
        The description.

    Examples
    --------
    >>> kinds.describe_runs(runs, "my/runs").split(" from ")[1]
    'my/runs.'
    """
    source = source if isinstance(source, str) else " and ".join(source)
    models, tasks = (runs[name].dropna().unique() for name in ("model_name", "task_id"))
    named = ", ".join(models) if len(models) <= MOST_NAMED else counted_noun(len(models), "model")
    text = counted_noun(len(runs), "run")
    if len(models):
        text += f" of {named}"
    if len(tasks):
        text += f" on {counted_noun(len(tasks), 'task')}"
    text += f" from {source}."
    if source.startswith("samples:"):
        text += " These are sample data."
    return " ".join([text, *map(sentence, chosen.notes)])


def leading(table: pd.DataFrame, most: int = MOST_MODELS) -> pd.DataFrame:
    """Return the rows of the `most` models with the highest mean `value` over tasks; all rows if there are fewer."""
    if table["model_name"].nunique() <= most:
        return table
    means = table.groupby(["model_name", "task"])["value"].mean().groupby("model_name").mean()
    return table[table["model_name"].isin(means.nlargest(most).index)]
