"""Rank models on a leaderboard: their order, the best model if the data show one, and caveats."""

import hashlib
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, Required, TypedDict

import pandas as pd
from pandas.api.types import is_numeric_dtype

from evalkit._notes import Notes, note
from evalkit._text import format_interval, listed
from evalkit.compare.comparison import Comparison
from evalkit.compare.pairwise import pairs_of
from evalkit.display.tables import answer_html
from evalkit.display.words import finding_text
from evalkit.io import distinct_names, plain
from evalkit.kinds import Finding, LogKind, Outcomes, examples_of, outcomes, rates, sections
from evalkit.kinds.findings import absent_counts, absent_runs, variants
from evalkit.kinds.pipeline import runs_of
from evalkit.kinds.runs import UNKNOWN, Value, copied, kind_of
from evalkit.kinds.success_rates import best_first, with_usage
from evalkit.stats import best_model, pair_structure, rank_models
from evalkit.stats.adjusted import NONE, RAW
from evalkit.stats.pair_tests import PARTLY, UNPAIRED
from evalkit.stats.pairwise import MOST_PAIRED

MODELS = "Models, the best first"
DOUBTS = ("units_differ", "retried_models", "lower_is_better")  # notes that invalidate any claim of a best model
FIRST = ("unnamed_runs", "judged", "conditions_differ", "settings_differ", *DOUBTS)  # notes to read before estimates
FEW_PAIRS = 5  # with fewer shared tasks, no difference between two models can be shown
MOST_VALUES = 6  # maximum number of values of a condition in a sentence

_COLUMNS = (
    "model_name n n_tasks coverage estimate low high adjusted_estimate adjusted_low adjusted_high rank_low rank_high "
    "behind_first ties_with_first corrected_estimate corrected_low corrected_high method target warning"
)
_STANDING = ["kind", "outcome", "model_name", "n", "n_tasks", "estimate", "low", "high", "text", "rank", "task_set"]


@dataclass(frozen=True, repr=False, eq=False)
class Leaderboard(Comparison):
    """A comparison with ranked models.

    The table has one row per model, ordered by adjusted estimate, the highest first. The order of models with equal
    estimates is alphabetical and means nothing. Columns: model_name, n (runs), n_tasks, coverage (share of the tasks
    that any model ran), estimate with low and high (over the model's tasks), adjusted_estimate with bounds (see
    `basis`), rank_low and rank_high (range of possible ranks), behind_first, ties_with_first, corrected_estimate with
    bounds (the estimate, corrected for selection among all models), method, target, warning, measure (what is
    estimated). See `evalkit.stats.rank_models`.
    """

    table: pd.DataFrame
    pairs: pd.DataFrame  # all pairs, as from `pairs`; with more than 100 models, only the pairs of 30
    basis: str  # type of adjustment: raw (all models ran the same tasks), adjusted for tasks, standardised, or none
    notes: Notes  # caveats: differing sets of tasks, cycles, disjoint sets, excluded runs

    def __repr__(self) -> str:
        return f"{plain(finding_text(ranked(self)))}\n\n{answer_table(self)}"

    def _repr_html_(self) -> str:
        options = {"digits": 2, "percent": self.outcomes.is_share, "estimate": self.outcomes.title, "counted": "runs"}
        return answer_html(ranked(self), answer_table(self), MODELS, rows=len(self.table), **options)[0]

    @property
    def has_means(self) -> bool:
        """Whether models have one mean: scores under several conditions, such as budgets, have none in common."""
        return self.outcomes.is_share or self.named_runs.dropna(subset="value")["condition"].nunique() < 2

    @property
    def is_adjusted(self) -> bool:
        """Whether `adjusted_estimate` differs from the raw estimate."""
        return self.basis not in (RAW, NONE)

    @property
    def pairs_of_first(self) -> pd.DataFrame:
        """The pairs of the highest-ranked model."""
        first = self.table["model_name"].head(1).tolist()
        return self.pairs[self.pairs[["model_a", "model_b"]].isin(first).any(axis=1)]


class Headline(TypedDict, total=False):
    """Which model is best: a code, and the values that the text for this code needs."""

    code: Required[
        Literal[
            "nothing", "unnamed", "one_model", "cycle", "lower", "doubtful", "best", "apart", "tie", "unlike", "leads"
        ]
    ]
    what: str  # what is estimated, such as ``success rate``
    model: str
    models: list[str]
    ended: dict[Hashable, int]  # numbers of runs that were not measured, by how they ended
    unnamed: bool
    unnamed_runs: bool
    unpaired: bool  # no task is shared with another model
    conditions_differ: bool
    conditions: bool
    variants: bool
    absent: dict[str, Any] | None  # values of the note on planned runs that are missing
    basis: str
    higher: str  # model with a higher raw estimate
    undecided: int
    behind: list[str]  # models that are shown to be behind the first one
    open: list[str]  # the other models
    few: bool
    n_sets: int
    # the estimate of `model`; absent if its scores have no common mean
    estimate: float
    low: float
    high: float
    n: int
    n_tasks: int
    method: str
    target: str


def leaderboard(
    runs: pd.DataFrame, value: Value = "", *, margin: float | None = None, planned: Iterable[str] = ()
) -> Leaderboard:
    """Rank models on comparable estimates.

    Parameters
    ----------
    runs : DataFrame
        The first table of a kind of log, such as `logs.runs`, or any table with a row per run. Its columns for model,
        task and score are detected from common names.
    value : {"", "is_successful", "score"}
        What to compare; by default success if the logs record it, else the score.
    margin : float, optional
        Pairs are equivalent if their difference is shown to be within ± margin.
    planned : iterable of str
        Ids of the tasks that each model was planned to run.

    Returns
    -------
    Leaderboard
        A `Comparison` with `table` (one row per model), `pairs` and `notes`.

    Examples
    --------
    >>> compare.leaderboard(runs).table["model_name"].iloc[0]
    'alder-large'
    """
    runs = runs_of(runs).reset_index(drop=True)
    compared = Comparison.of(outcomes(runs, value))
    scored, cells = compared.outcomes, compared.cells
    kind = kind_of(runs)
    rows = scored.table[scored.table["model_name"].isin(cells.models)]
    pairs = pairs_of(cells, scored, margin=margin)
    adjusted = compared.adjusted
    table = best_first(adjusted.table, "estimate" if adjusted.basis == NONE else "adjusted_estimate")
    first = str(table["model_name"].iloc[0]) if len(table) else ""
    ranks = rank_models(cells, first=first, pairs=pairs if len(table) <= MOST_PAIRED else None)
    table = table.merge(ranks.drop(columns=["n_tasks", "estimate"]), on="model_name")
    best = first if len(table) and table["rank_high"].iloc[0] == 1 else ""
    # models without a measured run come last, with the reason, and so do runs that name no model
    rest = runs[~runs["model_name"].fillna(UNKNOWN).isin(rows["model_name"])].fillna({"model_name": UNKNOWN})
    if len(rest) or table.empty:
        unrated = rates(rest, value="is_successful" if scored.kind == "proportion" else "score", kind=kind)
        stated = ["model_name", "n", "n_tasks", "estimate", "low", "high", "warning"]
        table = pd.concat([table, unrated[stated]], ignore_index=True)
    types = {"rank_low": "Int64", "rank_high": "Int64", "ties_with_first": "boolean", "behind_first": "boolean"}
    table = table[_COLUMNS.split()].astype(types)
    notes = compared.unnamed + variants(scored) + compared.doubts
    if (families := rows["family"].nunique()) < rows["task"].nunique():
        notes += note("families", count=families)
    if adjusted.basis != RAW:
        notes += adjusted.reason
    linked = pairs.assign(n_tasks=pairs["n_tasks"].clip(lower=pairs["estimate"].notna().astype(int)))
    notes += pair_structure(linked) + _differing(runs.loc[rows.index], scored, kind) + _without_value(scored.table)
    # in tables, a run with an error can be a failure; in other formats, the error already decided the outcome
    errors = runs.loc[scored.table.index].reindex(columns=["error", "format"])
    failed = errors[scored.table["outcome"].eq("failure") & errors["error"].notna() & errors["format"].eq("table")]
    if len(failed):
        notes += note("errors", count=len(failed), example=failed["error"].iloc[0])
    absent = absent_runs(rows, planned)
    if lacking := absent_counts(absent):
        best_if_failed = best_model(compared.with_failures(absent).cells) if scored.is_share else best
        if best_if_failed != best:
            lacking["best"] = best_if_failed
        notes += note("absent", **lacking)
    notes += scored.judged
    if scored.left_out and (copies := copied(runs, kind)):
        notes += note("copied", pairs=copies)
    table, pairs = scored.marked(table), scored.marked(pairs)
    board = Leaderboard(
        scored, compared.named_runs, compared.all_cells, table=table, pairs=pairs, basis=adjusted.basis, notes=notes
    )
    own = board.pairs_of_first
    if not (own["n_tasks"].any() and own["n_unshared"].any()):
        return board
    shared = sorted({own["n_tasks"].min(), own["n_tasks"].max()})
    others = sorted({own["n_unshared"].min(), own["n_unshared"].max()})
    return replace(board, notes=note("partly", shared=shared, others=others) + notes)


def _without_value(table: pd.DataFrame) -> Notes:
    """Name the models with runs that were not measured, or that have only a score although success is compared."""
    notes = Notes()
    is_unmeasured = table["outcome"].eq("not measured")
    is_scored = table["outcome"].eq("scored") & table["value"].isna()
    counts = pd.DataFrame({"unmeasured": is_unmeasured, "scored": is_scored, "n": 1})
    counts = counts.groupby(table["model_name"]).sum()
    some = counts[counts["unmeasured"].between(1, counts["n"] - 1)]
    if len(some):
        models = list(some[["unmeasured", "n"]].itertuples(name=None))
        notes += note("not_measured", models=models, counted=bool(table.loc[is_unmeasured, "value"].notna().any()))
    is_graded = counts["scored"].gt(0) & (counts["scored"] + counts["unmeasured"]).eq(counts["n"])
    if graded := counts.index[is_graded].tolist():
        notes += note("only_scores", models=graded)
    if unmeasured := counts.index[counts["unmeasured"] == counts["n"]].tolist():
        notes += note("none_measured", models=unmeasured)
    others = table[is_scored & ~table["model_name"].isin(graded)]
    if len(others):
        of = set(others["task_type"].dropna()) or set(others["model_name"])
        notes += note("some_scores", count=len(others), of=sorted(of))
    return notes


def _differing(counted: pd.DataFrame, scored: Outcomes, kind: LogKind) -> Notes:
    """Name the conditions and settings in which the counted runs of models differ."""
    notes, rows = Notes(), scored.table.loc[counted.index]
    conditions = rows.groupby("model_name")["condition"].agg(frozenset)
    if conditions.nunique() > 1 or (rows.groupby("task")["condition"].nunique() > 1).any():
        differing = dict[str, pd.Series]()  # values by label
        for name in kind.rates.conditions:
            if name in counted and counted[name].nunique(dropna=False) > 1:
                differing[kind.labels.get(name, name.replace("_", " "))] = counted[name].drop_duplicates()
        names = list(differing)
        if len(differing) == 1 and is_numeric_dtype(differing[names[0]]):
            values = ["not recorded" if pd.isna(value) else f"{value:g}" for value in differing[names[0]].sort_values()]
            names = [f"{names[0]}: {listed(values, MOST_VALUES)}"]
        notes += note("conditions_differ", conditions=names)
    settings = {}
    for name in kind.rates.reported_settings:
        texts = counted[name].astype("str").where(counted[name].notna(), "")
        if name not in scored.compared_by and texts.groupby(rows["model_name"]).agg(frozenset).nunique() > 1:
            settings[name] = sorted(texts.unique())
    if settings:
        notes += note("settings_differ", settings=settings)
    return notes


def rank_table(board: Leaderboard) -> pd.DataFrame:
    """Return the leaderboard for a page, with ranks as ranges, and adjusted estimates only if they differ.

    Parameters
    ----------
    board : Leaderboard
        Result of `leaderboard`.

    Returns
    -------
    DataFrame
        One row per model: model_name, n, n_tasks, coverage, rank (such as ``2 – 4``), estimate, low, high,
        adjusted_estimate with bounds (if it differs), corrected_estimate with bounds (of several models), warning,
        measure.

    Examples
    --------
    >>> compare.rank_table(compare.leaderboard(runs))["rank"].tolist()[:2]
    ['1 – 3', '1 – 3']
    """
    table = board.table
    shown = table[["model_name", "n", "n_tasks", "coverage"]]
    shown = shown.assign(rank=ranks_text(table)).join(table[["estimate", "low", "high"]])
    if board.is_adjusted:
        shown = shown.join(table[["adjusted_estimate", "adjusted_low", "adjusted_high"]])
    if table["corrected_estimate"].count() > 1:  # nothing is selected from one model
        shown = shown.join(table[["corrected_estimate", "corrected_low", "corrected_high"]])
    return shown.join(table[["warning", "measure"]])


def standings(board: Leaderboard, runs: pd.DataFrame) -> pd.DataFrame:
    """List the results of each model, for the index of all reports.

    Runs without a model name are excluded. The table is empty if no model has an estimate.

    Parameters
    ----------
    board : Leaderboard
        Result of `leaderboard`.
    runs : DataFrame
        Runs of the board.

    Returns
    -------
    DataFrame
        kind, outcome (title of the estimates, with their unit), model_name, n (runs), n_tasks, estimate, low, high,
        text (the formatted estimate, or the reason why there is none), rank, task_set (a digest that is equal for
        models that ran the same tasks; empty if unknown).

    Examples
    --------
    >>> compare.standings(compare.leaderboard(runs), runs)["text"].iloc[0]
    '48 % [32, 65]'
    """
    named = board.table["model_name"].ne(UNKNOWN)
    table = board.table[named]
    if table["estimate"].isna().all():
        return pd.DataFrame(columns=_STANDING)
    texts = list[str]()
    rows = table[["estimate", "low", "high", "warning"]].to_numpy().tolist()
    for estimate, low, high, warning in rows:
        if pd.isna(estimate):
            texts.append(str(warning))
        else:
            texts.append(format_interval(estimate, low, high, percent=board.outcomes.is_share))
    counted = board.outcomes.table.dropna(subset="value")
    known = counted["task"].where(counted["task"] != counted["run_id"])  # a run without a task counts as its own task
    tasks = {}  # digest of the set of tasks by model
    for name, own in known.groupby(counted["model_name"]):
        names = "\0".join(sorted(map(str, set(own)))).encode(errors="replace")
        tasks[name] = "" if own.isna().any() else hashlib.blake2b(names, digest_size=6).hexdigest()
    ranks = rank_table(board).loc[named, "rank"]
    return table.assign(
        kind=kind_of(runs).name,
        outcome=board.outcomes.title,
        text=texts,
        rank=ranks.mask(ranks != "", ranks + f" of {table['estimate'].count()}") if len(table) > 1 else "",
        task_set=table["model_name"].map(tasks).fillna(""),
    )[_STANDING].reset_index(drop=True)


def ranks_text(table: pd.DataFrame) -> list[str]:
    """Format the possible ranks of each model, such as ``1`` or ``2 – 4``; empty for models without a rank."""
    texts = []
    for low, high in zip(table["rank_low"], table["rank_high"], strict=True):
        if pd.isna(low):
            texts.append("")
        else:
            texts.append(f"{low} – {high}" if high > low else str(low))
    return texts


def headline(board: Leaderboard) -> Headline:
    """Describe which model is best, or that the comparison is undecided.

    No model is named if the first models share the rank, have no name, or share no tasks. There is no estimate for
    scores under several conditions, such as budgets of turns.

    Parameters
    ----------
    board : Leaderboard
        Result of `leaderboard`.

    Returns
    -------
    Headline
        A dictionary with `code` and the values for its text. For a model that leads, is best or is the only one, also
        estimate, low and high.

    Examples
    --------
    >>> compare.headline(compare.leaderboard(runs))["code"]
    'leads'
    """
    table, name = board.table, board.outcomes.name
    estimated = table[table["estimate"].notna()]
    rated = estimated[estimated["model_name"] != UNKNOWN]
    if estimated.empty:
        ended = board.outcomes.table["ended"].value_counts().to_dict()
        return {"code": "nothing", "ended": ended, "n": sum(ended.values())}
    if rated.empty:
        return _with_estimate({"code": "unnamed", "what": name}, estimated.iloc[0], board.has_means)
    row = rated.iloc[0]
    if len(rated) == 1:
        about: Headline = {"code": "one_model", "what": name, "model": row["model_name"], "unnamed": len(estimated) > 1}
        return _with_estimate(about, row, board.has_means)
    structure = pair_structure(board.pairs)
    if cycles := structure.only("cycle").notes:
        return {"code": "cycle", "models": list(cycles[0].values["models"])}
    first, others = row["model_name"], rated.iloc[1:]
    by = "estimate" if board.basis == NONE else "adjusted_estimate"
    own = board.pairs_of_first
    about = {
        "code": "leads",
        "model": first,
        "what": name,
        "unpaired": not own["n_tasks"].any(),
        "unnamed_runs": "unnamed_runs" in board.notes,
        "conditions_differ": "conditions_differ" in board.notes,
        "variants": "variants" in board.notes,
        "absent": next((dict(one.values) for one in board.notes.only("absent").notes), None),
    }
    highest = rated.nlargest(1, "estimate").iloc[0]
    if board.is_adjusted and highest["estimate"] > row["estimate"]:
        about["basis"] = board.basis
        about["higher"] = highest["model_name"]
    if doubts := board.notes.only(*DOUBTS):
        return {"code": "lower" if "lower_is_better" in doubts else "doubtful", "models": rated["model_name"].tolist()}
    if row["rank_high"] == 1:
        about["code"] = "best"
        about["undecided"] = int((~own["decided"]).sum())
        return _with_estimate(about, row, board.has_means)
    if len(own) and own["estimate"].isna().all():
        models = rated["model_name"].tolist()
        sets = [names for one in structure.only("sets").notes for names in one.values["sets"]]
        n_sets = sum(not set(models).isdisjoint(names) for names in sets)
        return {"code": "apart", "models": models, "n_sets": n_sets, "conditions": about["conditions_differ"]}
    if rated[by].iloc[1] == rated[by].iloc[0]:  # equal estimates: the alphabetical order means nothing
        return {"code": "tie", "models": rated.loc[rated[by] == rated[by].iloc[0], "model_name"].tolist()}
    is_behind = others["behind_first"].astype(bool)
    if not board.has_means and board.basis == NONE and not is_behind.any():  # means under different conditions
        return {"code": "unlike", "models": rated["model_name"].tolist(), "conditions": True}
    about["behind"] = others.loc[is_behind, "model_name"].tolist()
    about["open"] = others.loc[~is_behind, "model_name"].tolist()
    about["few"] = bool((own["n_tasks"].lt(FEW_PAIRS) & own["method"].ne(UNPAIRED) & own["method"].ne(PARTLY)).all())
    return _with_estimate(about, row, board.has_means)


def _with_estimate(headline: Headline, row: pd.Series, has_mean: bool) -> Headline:
    """Add the estimate of a row of the table, unless its scores under several conditions have no common mean."""
    if has_mean:
        headline["estimate"] = row["estimate"]
        headline["low"] = row["low"]
        headline["high"] = row["high"]
        headline["n"] = row["n"]
        headline["n_tasks"] = row["n_tasks"]
        headline["method"] = row["method"]
        headline["target"] = row["target"]
    return headline


def with_short_names(board: Leaderboard, width: int) -> Leaderboard:
    """Shorten the names of models to `width` characters, cut in the middle and still distinct."""
    names = distinct_names(board.table["model_name"], width)
    pairs = board.pairs.assign(**{side: board.pairs[side].map(names) for side in ("model_a", "model_b")})
    return replace(board, table=board.table.assign(model_name=board.table["model_name"].map(names)), pairs=pairs)


def ranked(board: Leaderboard) -> Finding:
    """Describe in a finding which model is best, with its estimate."""
    first = board.table["model_name"].iloc[0] if len(board.table) else ""
    named = board.table[board.table["estimate"].notna() & (board.table["model_name"] != UNKNOWN)]
    named = named.sort_values("estimate", ascending=False, kind="stable")
    head = headline(board)
    tops = [] if head.get("conditions") else head.get("models", ())  # means under different conditions have no order
    values = {
        "headline": head,
        "n_models": len(named),
        "what": board.outcomes.name,
        "is_share": board.outcomes.is_share,
        "unit": board.outcomes.unit,
        "rates": named[named["model_name"].isin(tops)].to_dict("records"),
        "compared_by": board.outcomes.compared_by,
    }
    rows = board.outcomes.table
    own = rows["model_name"].eq(first) & rows["value"].notna()
    return Finding("ranking", sections.RANKING, values, examples_of(rows, {f"a run of {first}": own}))


def answer_table(board: Leaderboard, runs: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return the models with their ranks, for the top of a page.

    Parameters
    ----------
    board : Leaderboard
        Result of `leaderboard`.
    runs : DataFrame, optional
        Runs of the board; adds the average cost, tokens and duration of a run.

    Returns
    -------
    DataFrame
        One row per model, the best first: model_name, rank, estimate, low, high, adjusted_estimate with bounds (if it
        differs), n, n_tasks, and the average usage per run.

    Examples
    --------
    >>> compare.answer_table(compare.leaderboard(runs))["model_name"].iloc[0]
    'alder-large'
    """
    table = rank_table(board)
    adjusted = [name for name in table if str(name).startswith("adjusted")]
    table = table[["model_name", "rank", "estimate", "low", "high", *adjusted, "n", "n_tasks"]]
    return table if runs is None else with_usage(table, runs)
