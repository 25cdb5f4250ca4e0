"""Decide which runs of any kind count and what the outcome of each is, so that all kinds can be compared alike."""

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Literal, NamedTuple

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
_KEPT += ["tokens_in", "tokens_out"]


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


def outcomes(runs: pd.DataFrame, value: str = "", kind: LogKind | None = None, *, cluster: str = "") -> Outcomes:
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
    check_columns(runs, *_KEPT, "is_successful", "score", "status", *filter(None, [cluster]))
    kind = kind or kind_of(runs)
    counts = ~is_excluded(runs, kind)
    rows = runs if counts.all() else runs[counts]  # selecting is slow even for few rows
    outcome = outcome_of(runs, kind)
    if not cluster and "cluster" in rows:  # `load` was called with a cluster
        cluster = "cluster"
    tasks = kind.rates.task_of(rows)
    table = rows[_KEPT].assign(model_name=rows["model_name"].fillna(UNKNOWN), task=tasks, outcome=outcome[counts])
    table["seed"] = kind.rates.seed_of(rows) if "seed" in rows else None
    table["task"] = table["task"].where(table["task"].notna(), table["run_id"])
    table["family"] = table["task"]
    if cluster:
        table["family"] = rows[cluster].astype("str").where(rows[cluster].notna(), table["task"])
    table["tokens"] = table.pop("tokens_in").astype("Float64") + table.pop("tokens_out").astype("Float64")
    table["ended"] = _endings(rows, kind)
    table["condition"] = _conditions(rows, kind)
    compared_by = compared_in(runs)
    if compared_by:
        table["logged_model"] = rows["logged_model"]
    scorers = rows["score_key"].dropna().unique().tolist() if "score_key" in rows else []
    judged = NO_NOTES
    is_judged = has_flag(rows, JUDGED)
    if is_judged.any():
        judged = note(JUDGED, count=int(is_judged.sum()), is_partly=not is_judged.all())
    mark = judge_mark([judged])
    made = Outcomes(
        table,
        "mean",
        f"mean score{mark}",
        left_out=int((~counts).sum()),
        by=plain(scorers[0], MOST_SCORER) if len(scorers) == 1 else "",
        compared_by=compared_by,
        conditions_of="task" if set(_stated(rows, kind)) <= set(kind.rates.task_conditions) else "run",
        only_shared="document_hash" in rows and bool(rows["document_hash"].notna().any()),
        judged=judged,
    )
    is_measured = table["outcome"].isin(MEASURED)
    may_succeed = "success" in kind.rates.outcome_of.values()
    has_rate = outcome.isin(MEASURED).any() or (may_succeed and rows["score"].isna().all())
    score = pd.Series(numbers(rows["score"]), rows.index)
    table["outcome"] = table["outcome"].mask(table["outcome"].eq("not measured") & score.notna(), "scored")
    succeeded = table["outcome"].eq("success").astype("float64")
    is_table = "format" in rows and rows["format"].eq("table").any()
    are_outcomes = is_measured.any() and score.eq(succeeded).where(score.notna(), True).all()
    if value == "is_successful" or (not value and has_rate):
        if kind.rates.denominator == "all":
            known = is_measured.groupby(table["model_name"]).transform("any").astype(bool)
            is_measured = known & table["outcome"].ne("running")
        table = table.assign(value=succeeded.where(is_measured))
        by = made.by if are_outcomes or not is_table else ""  # then the outcomes are not from this score
        return made._replace(table=table, kind="proportion", name=f"success rate{mark}", by=by)
    if is_table and are_outcomes:
        made = made._replace(name=f"success rate{mark}")
    table = table.assign(value=score, outcome=table["outcome"].mask(score.notna() & ~is_measured, "scored"))
    made = made._replace(table=table)
    unit = next(column.unit for column in kind.tables[kind.runs] if column.name == "score")
    are_shares = rows["is_share"].all() if "is_share" in rows else score.dropna().between(0, 1).all()
    if unit.startswith("share") or (unit == AS_LOGGED and are_shares):
        return made._replace(kind="score")
    return made._replace(unit=unit.removeprefix(AS_LOGGED))


def _endings(rows: pd.DataFrame, kind: LogKind) -> pd.Series:
    """Return how each run ended: the class of its error, else its exit reason, else its status; "" without outcome."""
    status = rows["status"].astype("str").map(lambda status: kind.labels.get(status, status), na_action="ignore")
    ended = "status " + status.astype("str")
    if "exit_reason" in rows:
        ended = rows["exit_reason"].mask(rows["exit_reason"].eq("")).fillna(ended)
    ended = ended.mask(has_flag(rows, "no_outcome"), "")
    if "error" not in rows:
        return ended
    known = ended.fillna("")
    errors = rows["error"].where(known.isin(["", "error", "status error", "status failed"])).astype("str")
    texts = errors.where(known.eq("")).map(lambda error: plain(error, MOST_REASON), na_action="ignore")
    texts = errors.str.extract(RAISED, expand=False).fillna(texts.astype("str"))
    return texts.fillna(ended)


def _stated(rows: pd.DataFrame, kind: LogKind) -> list[str]:
    """Return the conditions that any of the runs records."""
    return [name for name in kind.rates.conditions if name in rows and rows[name].notna().any()]


def _conditions(rows: pd.DataFrame, kind: LogKind) -> pd.Series:
    """Return the condition of each run, such as ``max_turns=20``; "" if its log records none."""
    texts = [[""] * len(rows)]
    for name in _stated(rows, kind):
        column = rows[name]
        named = f"{column.name}=" + column.astype("str")
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
    success = runs["is_successful"].astype("boolean")
    by_status = runs["status"].map(dict(kind.rates.outcome_of), na_action="ignore").astype("object")
    by_success = success.astype("object").map({True: "success", False: "failure"})
    return by_success.where(success.notna(), by_status.fillna("not measured")).astype("str")


def compared_in(runs: pd.DataFrame) -> tuple[str, ...]:
    """Return the columns that `model_name` is made from, such as agent and model_name; () if it is just the model."""
    columns = "" if "compared_by" not in runs else next(iter(runs["compared_by"].dropna()), "")
    return tuple(str(columns).split(",")) if columns else ()


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
