"""Rank and compare models on the common run columns: ranks, pairs, a baseline, reliability, plans and cost."""

import hashlib
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from evalkit._words import Notes, format_interval, join_first, note
from evalkit.display.tables import answer_html
from evalkit.display.words import MOST_NAME, finding_text, pair_text
from evalkit.io import SourceError, distinct_names, plain
from evalkit.kinds import Example, Finding, Outcomes, examples_of, outcomes, rates
from evalkit.kinds.findings import MOST_EXAMPLES, SECTION, absent_counts, absent_runs, files_of, similar_names, variants
from evalkit.kinds.headers import runs_of
from evalkit.kinds.runs import MOST_MODELS, UNKNOWN, copied, kind_of, leading
from evalkit.kinds.success_rates import best_first, with_usage
from evalkit.stats import (
    Cells,
    cells_of,
    compare_all,
    compare_to_baseline,
    cost_front,
    like_with_like,
    pair_structure,
    rank_models,
)
from evalkit.stats import plan as plan_pairs
from evalkit.stats import reliability as reliability_of
from evalkit.stats.intervals import LEVEL, Target
from evalkit.stats.paired import PARTLY, UNPAIRED
from evalkit.stats.pairs import MOST_PAIRED

MODELS = "Models, the best first"
RANKING, PAIRS = "Which model is best?", "Pairs of models"

FIRST = ("conditions_differ", "settings_differ")  # notes to read before any estimate stands beside another
SENTENCE_NAME = 32  # characters of a name in it
RAW, NONE = "raw", "none"


WITHIN = ("condition", "task_type", "family", "seed")  # columns that comparisons take into account, as in `cells_of`
MOST_PAIRS = 45  # shown on a page: those of 10 models
MOST_SHOWN = 30  # models whose pairs are made where there are too many for all
FEW_PAIRS = 5  # shared tasks, with which no two models can be told apart
LEAST = 0.05  # loss of a share that is acceptable by default
MOST_VALUES = 6  # of a condition in a sentence
COSTS = ("cost", "tokens", "duration")

_COLUMNS = (
    "model_name n n_tasks coverage estimate low high adjusted adjusted_low adjusted_high rank_low rank_high "
    "behind_first ties_with_first corrected corrected_low corrected_high method target warning"
)
_STANDING = ["kind", "outcome", "model_name", "n", "n_tasks", "estimate", "low", "high", "text", "rank", "task_set"]
_DISCORDANT = ["task", "model_a", "model_b", "repetition", "value_a", "value_b", "run_id_a", "run_id_b"]


class Leaderboard(NamedTuple):
    """Models in order, as far as the data show one.

    The table has one row per model, the one with the highest adjusted estimate first; equal ones are in the order of
    their names, which means nothing: model_name, n (runs), n_tasks, coverage (of the tasks that any model ran),
    estimate with low and high (over its own tasks), adjusted with low and high (see `basis`), rank_low to rank_high
    (ranks that the data leave open), behind_first, ties_with_first, corrected with low and high (the estimate after
    picking among all models), method, target, warning; see `evalkit.stats.rank_models`.
    """

    table: pd.DataFrame
    pairs: pd.DataFrame  # every pair, as `pairs` returns it: of more than 100 models, the pairs of 30
    basis: str  # what is adjusted: raw (all ran the same tasks), adjusted for tasks, standardised, or none
    notes: Notes  # caveats: how the models' tasks differ, cycles, disjoint sets, and runs left out
    outcomes: Outcomes
    cells: Cells  # the runs by task and model, from which all of these come

    def __repr__(self) -> str:
        return f"{plain(finding_text(ranked(self)))}\n\n{answer_table(self)}"

    def _repr_html_(self) -> str:
        options = {"digits": 2, "percent": self.outcomes.is_share, "estimate": self.outcomes.title, "counted": "runs"}
        return answer_html(ranked(self), answer_table(self), MODELS, rows=len(self.table), **options)[0]

    @property
    def has_means(self) -> bool:
        """Whether the mean of a model is one number: scores under several conditions, such as budgets, have none."""
        return self.outcomes.is_share or self.outcomes.table.dropna(subset="value")["condition"].nunique() < 2

    @property
    def is_adjusted(self) -> bool:
        """Whether `adjusted` differs from the raw estimate."""
        return self.basis not in (RAW, NONE)


def leaderboard(
    runs: pd.DataFrame, value: str = "", *, margin: float | None = None, planned: Iterable[str] = ()
) -> Leaderboard:
    """Rank models on comparable estimates.

    Parameters
    ----------
    runs : DataFrame
        The first table of a kind of logs, such as `logs.runs`, or any table with a row for each run and columns for the
        model, the task and a score, called anything usual; of a table like this, names tell what columns mean.
    value : {"", "is_successful", "score"}
        As for `evalkit.kinds.outcomes`.
    margin : float, optional
        Pairs whose difference is shown to lie within ± margin are equivalent.
    planned : iterable of str, optional
        The tasks that each model was to run: runs of these that a model lacks are absent.
    """
    runs = runs_of(runs)
    scored = outcomes(runs, value)
    has_value = scored.table.groupby("model_name")["value"].transform("count") > 0
    rows = scored.table[has_value]
    _, cells = scored_cells(scored._replace(table=rows))
    compared = _pairs(cells, scored, margin=margin)
    # rates, adjusted where models ran different tasks; ranks by the test of each pair
    like = like_with_like(cells, kind=scored.kind)
    rated = like.table.drop(columns="warning").rename(columns={"model": "model_name"}).sort_values("model_name")
    rated = best_first(rated, "estimate" if like.headline == NONE else "adjusted")
    first = str(rated["model_name"].iloc[0]) if len(rated) else ""
    whole = compared if len(rated) <= MOST_PAIRED else None
    ranks = rank_models(cells, first=first, pairs=whole)
    ranks = ranks.drop(columns=["n_tasks", "estimate", "low", "high", "method"])
    table = rated.merge(ranks.rename(columns={"model": "model_name"}), on="model_name")
    # models without a measured run stand below, with the reason
    rest = runs[~runs["model_name"].fillna(UNKNOWN).isin(rows["model_name"])].fillna({"model_name": UNKNOWN})
    if len(rest) or table.empty:
        unrated = rates(rest, value="is_successful" if scored.kind == "proportion" else "score", kind=kind_of(runs))
        unrated = unrated.rename(columns={"n_clusters": "n_tasks"})[["model_name", "n", "n_tasks", "warning"]]
        table = pd.concat([table, unrated], ignore_index=True)
    types = {"rank_low": "Int64", "rank_high": "Int64", "ties_with_first": "boolean", "behind_first": "boolean"}
    table = table[_COLUMNS.split()].astype(types)
    # caveats: families, what makes tasks differ, conditions, runs that were not measured, and copies
    linked = compared.assign(n_tasks=compared["n_tasks"].clip(lower=compared["estimate"].notna().astype(int)))
    families = rows["family"].nunique()
    kin = note("families", count=families) if families < rows["task"].nunique() else Notes()
    notes = variants(scored) + kin + (Notes() if like.headline == RAW else like.reason) + pair_structure(linked).warning
    mixes = rows.groupby("model_name")["condition"].agg(frozenset)
    if mixes.nunique() > 1 or (rows.groupby("task")["condition"].nunique() > 1).any():
        there = [name for name in kind_of(runs).rates.conditions if name in runs]
        told = {name.replace("_", " "): runs.loc[rows.index, name].drop_duplicates() for name in there}
        told = {name: values for name, values in told.items() if len(values) > 1}
        differing = list(told)
        if len(told) == 1 and is_numeric_dtype(told[differing[0]]):
            values = ["not told" if pd.isna(value) else f"{value:g}" for value in told[differing[0]].sort_values()]
            differing = [f"{differing[0]}: {join_first(values, MOST_VALUES, ', and {} more')}"]
        notes += note("conditions_differ", conditions=differing)
    settings = {}
    for name in kind_of(runs).rates.reported_settings:
        values = runs.loc[rows.index, name].astype("str").where(runs.loc[rows.index, name].notna(), "")
        if values.groupby(rows["model_name"]).agg(lambda own: tuple(sorted(set(own)))).nunique() > 1:
            settings[name] = sorted(values.unique())
    notes += note("settings_differ", settings=settings) if settings else Notes()
    gone = scored.table["outcome"].eq("not measured")
    if gone.any():
        counts = gone.groupby(scored.table["model_name"]).agg(["sum", "size"])
        some = list(counts.query("0 < sum < size").itertuples(name=None))
        none = counts.index[counts["sum"] == counts["size"]].tolist()
        counted = bool(scored.table.loc[gone, "value"].notna().any())
        notes += note("not_measured", models=some, counted=counted) if some else Notes()
        notes += note("none_measured", models=none) if none else Notes()
    missing_runs = absent_runs(rows, planned)
    lacking = absent_counts(missing_runs)
    if lacking:
        best = first if len(ranks) and ranks["rank_high"].iloc[0] == 1 else ""
        if scored.is_share:
            _, filled = scored_cells(scored._replace(table=with_failures(rows, missing_runs)))
            untested = pd.DataFrame({"decided": pd.Series(dtype=bool)})  # only the first is tested
            top = rank_models(filled, pairs=untested).iloc[0]
            then = top["model"] if top["rank_high"] == 1 else ""
            if then != best:
                lacking["best"] = then
        notes += note("absent", **lacking)
    copies = copied(runs, kind_of(runs)) if scored.left_out else []
    notes += note("copied", pairs=copies) if copies else Notes()
    return Leaderboard(table, compared, like.headline, notes, scored, cells)


def with_failures(rows: pd.DataFrame, absent: pd.DataFrame) -> pd.DataFrame:
    """Add absent runs, as `absent_runs` counts them, to runs as failures.

    Absent runs of a task that no model ran are left out: they would not tell models apart.
    """
    absent = absent[absent["task"].isin(set(rows["task"]))]
    failed = absent.loc[absent.index.repeat(absent["absent"])].assign(value=0.0)
    for name in ("task_type", "family"):
        failed[name] = failed["task"].map(rows.groupby("task")[name].first())
    columns = ["task", "condition", "model_name", "value", "task_type", "family", "seed"]
    return pd.concat([rows[columns], failed.reindex(columns=columns)], ignore_index=True)


def rank_table(board: Leaderboard) -> pd.DataFrame:
    """Return the leaderboard as a page shows it: ranks as ranges, and adjusted estimates only if they differ."""
    table = board.table
    shown = table[["model_name", "n", "n_tasks", "coverage"]]
    shown = shown.assign(rank=ranks_text(table)).join(table[["estimate", "low", "high"]])
    for name in [*["adjusted"] * board.is_adjusted, "corrected"]:
        shown[[f"{name}_{end}" for end in ("estimate", "low", "high")]] = table[[name, f"{name}_low", f"{name}_high"]]
    return shown.assign(warning=table["warning"])


def standings(board: Leaderboard, runs: pd.DataFrame) -> pd.DataFrame:
    """List the results of each model, for the page that lists the models of all reports; `runs` are those of `board`.

    Columns are kind, outcome (what the estimates are, with their unit), model_name, n (runs), n_tasks, estimate, low,
    high, text (these three, formatted), rank (the range that the data leave open, among the report's models), task_set
    (the same for models that ran the same tasks, in every report; empty if tasks are not known). Models without a name
    are left out; the text of one without an estimate is the reason. Without any estimate there are no rows.
    """
    named = board.table["model_name"].ne(UNKNOWN)
    table = board.table[named]
    if table["estimate"].isna().all():
        return pd.DataFrame(columns=_STANDING)
    rows, share = table[["estimate", "low", "high", "warning"]].to_numpy().tolist(), board.outcomes.is_share
    counted = board.outcomes.table.dropna(subset="value")
    known = counted["task"].where(counted["task"] != counted["run_id"])  # a run without a task is one of its own
    tasks = {}  # the same text for the same set of tasks
    for name, own in known.groupby(counted["model_name"]):
        names = "\0".join(sorted(map(str, set(own)))).encode(errors="replace")
        tasks[name] = "" if own.isna().any() else hashlib.blake2b(names, digest_size=6).hexdigest()
    ranks = rank_table(board).loc[named, "rank"]
    return table.assign(
        kind=kind_of(runs).name,
        outcome=board.outcomes.title,
        text=[str(why) if pd.isna(x) else format_interval(x, *ends, percent=share) for x, *ends, why in rows],
        rank=ranks.mask(ranks != "", ranks + f" of {table['estimate'].count()}") if len(table) > 1 else "",
        task_set=table["model_name"].map(tasks).fillna(""),
    )[_STANDING].reset_index(drop=True)


def ranks_text(table: pd.DataFrame) -> list[str]:
    """Format the ranks that the data leave open for each model: ``1``, ``2 – 4``; empty if there are none."""
    places = zip(table["rank_low"], table["rank_high"], strict=True)
    return ["" if pd.isna(low) else f"{low} – {high}" if high > low else str(low) for low, high in places]


def headline(board: Leaderboard) -> dict[str, Any]:
    """Describe which model is best, or that the data leave it open.

    No model is named if the best ones tie, have no name, or share no tasks. The result has `code` and the values of its
    text, `evalkit.display.words.headline_text`; of a model that leads, is best or alone, also the estimate, low and
    high of its row of the table. Scores under several conditions, such as points in budgets of turns, have none: no
    mean spans them.
    """
    table, name = board.table, board.outcomes.name
    estimated = table[table["estimate"].notna()]
    rated = estimated[estimated["model_name"] != UNKNOWN]
    if estimated.empty:
        ended = board.outcomes.table["ended"].value_counts().to_dict()
        return {"code": "nothing", "ended": ended, "n": sum(ended.values())}
    if rated.empty:
        return {"code": "unnamed", "what": name} | _fields(estimated.iloc[0], board.has_means)
    if len(rated) == 1:
        row = rated.iloc[0]
        about = {"code": "one_model", "what": name, "model": row["model_name"], "unnamed": len(estimated) > 1}
        return about | _fields(row, board.has_means)
    row = rated.iloc[0]
    structure = pair_structure(board.pairs)
    if structure.cycles:
        return {"code": "cycle", "models": list(structure.cycles[0])}
    first, others, by = row["model_name"], rated.iloc[1:], "estimate" if board.basis == NONE else "adjusted"
    own = board.pairs[board.pairs[["model_a", "model_b"]].eq(first).any(axis=1)]
    has_shared = own["n_tasks"] > 0
    about = {"model": first, "what": name, "unpaired": not has_shared.any()}
    if has_shared.any() and own["n_unshared"].any():
        about["partly"] = [sorted({own[name].min(), own[name].max()}) for name in ("n_tasks", "n_unshared")]
    about["conditions_differ"] = "conditions_differ" in board.notes
    about["absent"] = next((dict(one.values) for one in board.notes.only("absent").notes), None)
    highest = rated.nlargest(1, "estimate").iloc[0]
    if board.is_adjusted and highest["estimate"] > row["estimate"]:
        about |= {"basis": board.basis, "higher": highest["model_name"]}
    about["doubt"] = ", if its tasks are no variants of few" * ("variants" in board.notes)
    if row["rank_high"] == 1:
        return {"code": "best"} | about | {"undecided": int((~own["decided"]).sum())} | _fields(row, board.has_means)
    if len(own) and own["estimate"].isna().all():
        models = rated["model_name"].tolist()
        sets = [names for one in structure.warning.only("sets").notes for names in one.values["sets"]]
        n_sets = sum(not set(models).isdisjoint(names) for names in sets)
        conditions = "conditions_differ" in board.notes
        return {"code": "apart", "models": models, "n_sets": n_sets, "conditions": conditions}
    if rated[by].iloc[1] == rated[by].iloc[0]:  # the order of their names means nothing
        return {"code": "tie", "models": rated.loc[rated[by] == rated[by].iloc[0], "model_name"].tolist()}
    is_behind = others["behind_first"].astype(bool)
    if not board.has_means and board.basis == NONE and not is_behind.any():  # the order of means under other conditions
        return {"code": "unlike", "models": rated["model_name"].tolist(), "conditions": True}
    sides = {side: others.loc[of, "model_name"].tolist() for side, of in (("behind", is_behind), ("open", ~is_behind))}
    few = bool((own["n_tasks"].lt(FEW_PAIRS) & own["method"].ne(UNPAIRED) & own["method"].ne(PARTLY)).all())
    return {"code": "leads"} | about | {**sides, "few": few} | _fields(row, board.has_means)


def _fields(row: pd.Series, has_mean: bool) -> dict[str, Any]:
    """Return the estimate of a row of the table, if there is one over all its conditions."""
    if not has_mean:
        return {}
    values = {name: row[name] for name in ("estimate", "low", "high", "n", "method", "target")}
    return values | {"n_clusters": row["n_tasks"]}


def with_short_names(board: Leaderboard, width: int) -> Leaderboard:
    """Give models the names that a line has room for, cut in their middle and still distinct."""
    names = distinct_names(board.table["model_name"], width)
    pairs = board.pairs.assign(**{side: board.pairs[side].map(names) for side in ("model_a", "model_b")})
    return board._replace(table=board.table.assign(model_name=board.table["model_name"].map(names)), pairs=pairs)


def ranked(board: Leaderboard, section: str = RANKING) -> Finding:
    """Describe which model is best as far as the data show, with its estimate; names are short, to fit a sentence."""
    first = board.table["model_name"].iloc[0] if len(board.table) else ""
    board = with_short_names(board, SENTENCE_NAME)
    named = board.table[board.table["estimate"].notna() & (board.table["model_name"] != UNKNOWN)]
    named = named.sort_values("estimate", ascending=False, kind="stable")
    head = headline(board)
    tops = [] if head.get("conditions") else head.get("models", ())  # means under different conditions have no highest
    values = {
        "headline": head,
        "n_models": len(named),
        "what": board.outcomes.name,
        "is_share": board.outcomes.is_share,
        "unit": board.outcomes.unit,
        "rates": named[named["model_name"].isin(tops)].to_dict("records"),
    }
    model = board.table["model_name"].iloc[0] if first else ""
    rows = board.outcomes.table
    own = rows["model_name"].eq(first) & rows["value"].notna()
    return Finding("ranking", section, values, examples_of(rows, {f"a run of {model}": own}))


def answer_table(board: Leaderboard, runs: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return the models with their ranks, as a page begins with them; with `runs`, also what a run takes on average."""
    table = rank_table(board).drop(columns=["coverage", "warning"])
    columns = ["model_name", "rank", "estimate", "low", "high"]
    table = table[[*columns, *[name for name in table if str(name).startswith("adjusted")], "n", "n_tasks"]]
    return table if runs is None else with_usage(table, runs)


def findings(
    board: Leaderboard,
    ledger: pd.DataFrame | None = None,
    *,
    ranking: str = RANKING,
    detect: float = 0.0,
) -> list[Finding]:
    """Describe which model is best as far as the data show, what is open, what would decide it, and caveats.

    The most important stands first, and conditions that differ before the ranking. With a `ledger` the last one says
    how many files were used; `ranking` is the heading of its section; `detect` as for `plan_findings`.
    """
    data = board.outcomes
    # the pair of the first model that is nearest to a decision: an open one, if there is any
    leading = [name for name in board.table["model_name"] if name != UNKNOWN][:1]
    near = board.pairs[board.pairs[["model_a", "model_b"]].isin(leading).any(axis=1)]
    undecided = near[~near["decided"] & near["p_adjusted"].notna()]
    nearest = (undecided if len(undecided) else near).sort_values("p_adjusted", ascending=bool(len(undecided))).head(1)
    sides = nearest[["model_a", "model_b"]].itertuples(index=False)
    opposite = tuple(example for pair in sides for example in examples(discordant(data, *pair)))
    results = [Finding("conditions", ranking, {"notes": Notes((one,))}) for one in board.notes.only(*FIRST).notes]
    said = list[str]()
    results.append(best := ranked(board, ranking))
    if few := board.notes.only("variants"):
        results.append(Finding("variants", SECTION, {"notes": few}))
    head = best.values["headline"]
    if head["code"] == "apart":  # no pair can be decided, as the ranking says
        said = ["sets"] * (head["n_sets"] == len(head["models"]))
    elif len(board.pairs):
        counts = {"decided": int(board.pairs["decided"].sum()), "pairs": len(board.pairs)}
        if len(board.table) > MOST_PAIRED:
            counts["first"] = MOST_SHOWN
        row = with_short_names(board, MOST_NAME).pairs.loc[nearest.index].to_dict("records")
        results.append(Finding("nearest_pair", PAIRS, {**counts, "row": next(iter(row), None)}, opposite))
        results += plan_findings(board, detect)
        if undecided := head.get("undecided", 0):
            results.append(Finding("undecided", PAIRS, {"count": undecided}))
    elif len(board.table) == 1:
        results.append(Finding("alone", PAIRS))
    if head.get("absent"):
        said.append("absent")
    caveats = board.notes.without(*FIRST, "variants", "same_order", *said)
    if len(board.table) == 1:
        caveats = caveats.only("absent")
    results += [Finding("caveat", ranking, {"notes": Notes((one,))}) for one in caveats.notes]
    if ledger is not None:
        names = similar_names(board.table["model_name"])
        results.append(Finding("files", SECTION, {"files": files_of(ledger), "names": names}))
    return results


def plan_findings(board: Leaderboard, detect: float = 0.0) -> list[Finding]:
    """Plan how many tasks decide between the first model and the next one that it is not separable from.

    The true difference is taken to be the observed one; with `detect` also one of so many percentage points, or of
    scores that are no shares so many of their unit. No findings where the models share no tasks.
    """
    data, leading = board.outcomes, [name for name in board.table["model_name"] if name != UNKNOWN][:1]
    near = board.pairs[board.pairs[["model_a", "model_b"]].isin(leading).any(axis=1)]
    near = near[~near["decided"] & near["p_adjusted"].notna() & near["estimate"].ne(0)]
    wanted: list[tuple[float, list[str], int | None]] = []
    runs_so_far = 1.0  # of a model on a task
    if len(near):
        row = near.sort_values("p_adjusted").iloc[0]
        runs_so_far = max(row["n_runs"] / max(2 * row["n_tasks"], 1), 1.0)
        wanted.append((abs(row["estimate"]), [row["model_a"], row["model_b"]], int(row["n_tasks"])))
    if detect:
        wanted.append((detect / 100 if data.is_share else detect, [], None))
    cells = _leading(board.cells)
    found = []
    for difference, models, shared in wanted:
        table = plan_pairs(cells, difference)
        if table.empty:  # one model
            continue
        reasons = table["warning"].iloc[0].only("no_plan")
        if reasons:
            found.append(Finding("caveat", "What more runs would decide", {"notes": reasons}))
            break
        rows = table[table["target"] == "new tasks"].set_index("repeats")["tasks"]
        n_tasks = int(table["n_tasks"].iloc[0]) if shared is None else shared
        values = {
            "difference": difference,
            "models": models,
            "tasks": {repeats: rows[repeats] for repeats in (1, 3)},
            "n_tasks": n_tasks,
            "is_share": data.is_share,
            "unit": data.unit,
        }
        # a plan takes the spread so far for the true one: what it asks for may be there, and not have decided
        is_enough_already = bool(models) and any(rows[n] <= n_tasks for n in (1, 3) if n <= runs_so_far)
        if rows[1] == rows[1] and not is_enough_already:
            found.append(Finding("plan", "What more runs would decide", values))
    return found


def pairs(
    runs: pd.DataFrame | Outcomes, value: str = "", *, target: Target = "new tasks", margin: float | None = None
) -> pd.DataFrame:
    """Compare every pair of models on the tasks both ran; of more than 100 models, of the 30 with the highest means.

    `runs` and `value` are as for `leaderboard`; the `target` is the difference on new tasks like these, or on these
    very tasks run again. For new tasks, models are also compared on the tasks that only one of them ran, within types
    and conditions, as if these were drawn alike; `warning` counts them. Pairs whose difference is shown to lie within
    ± `margin` are equivalent.

    The table is that of `evalkit.stats.compare_all`, with unit (``%`` for shares) and sentence (what the pair says). A
    model without any outcome is not compared, and the pair says why.
    """
    data, cells = scored_cells(runs, value)
    return _pairs(cells, data, target, margin)


def _pairs(cells: Cells, data: Outcomes, target: Target = "new tasks", margin: float | None = None) -> pd.DataFrame:
    table = compare_all(_leading(cells), target=target, margin=margin)
    has_value = data.table.groupby("model_name")["value"].count() > 0
    for side in ("model_a", "model_b"):
        nothing = ~table[side].map(has_value).astype(bool)
        table.loc[nothing, "warning"] = table.loc[nothing, side].map(lambda model: note("unmeasured", model=model))
    table["unit"] = "%" if data.is_share else data.unit
    return table.assign(sentence=pd.Series(map(pair_text, table.to_dict("records")), table.index, dtype="str"))


def scored_cells(runs: pd.DataFrame | Outcomes | Leaderboard, value: str = "") -> tuple[Outcomes, Cells]:
    """Return the outcomes of runs and their cells by task, model and condition; those of a leaderboard are made."""
    if isinstance(runs, Leaderboard):
        return runs.outcomes, runs.cells
    data = runs if isinstance(runs, Outcomes) else outcomes(runs, value)
    return data, cells_of(data.table, "model_name", "task", "value", *WITHIN)


def _leading(cells: Cells) -> Cells:
    """Return the cells of the models whose pairs are compared: of more than 100, the 30 with the highest means."""
    if len(cells.models) <= MOST_PAIRED:
        return cells
    means = pd.DataFrame(cells.over_conditions.means).mean()
    return cells.take(models=sorted(means.nlargest(MOST_SHOWN).index))


def notable(pairs: pd.DataFrame, most: int = MOST_PAIRS) -> pd.DataFrame:
    """Select the pairs that a page shows: all of up to 10 models, else those with the smallest p values.

    Columns are model_a, model_b, n_tasks, n_unshared (where there are such tasks), estimate (a minus b), low, high,
    p_adjusted, claim_at (where it is not 0.05), decided, equivalent (with a margin).
    """
    shown = pairs.nsmallest(most, "p_adjusted") if len(pairs) > most else pairs
    columns = ["model_a", "model_b", "n_tasks", "n_unshared", "estimate", "low", "high", "p_adjusted", "claim_at"]
    columns += ["decided", "equivalent"]
    if not shown["n_unshared"].any():
        columns.remove("n_unshared")
    if shown["claim_at"].min() == shown["claim_at"].max() == LEVEL or shown.empty:
        columns.remove("claim_at")
    if shown["p_equivalent"].isna().all():
        columns.remove("equivalent")
    return shown[columns]


def pairs_text(pairs: pd.DataFrame) -> str:
    """Describe pairs in sentences, one per line; of over 10 models, the decided ones with the smallest p values."""
    if len(pairs) <= MOST_PAIRS:
        return "\n".join(map(plain, pairs["sentence"])) or "There is one model."
    decided = pairs[pairs["decided"]].nsmallest(MOST_PAIRS, "p_adjusted")
    count = len({*pairs["model_a"], *pairs["model_b"]})  # of many, only the first were compared
    head = f"{int(pairs['decided'].sum())} of {len(pairs):,} pairs of {count} models are decided."
    return "\n".join([head, *map(plain, decided["sentence"])])


def discordant(runs: pd.DataFrame | Outcomes, model_a: str = "", model_b: str = "", value: str = "") -> pd.DataFrame:
    """Find the tasks with opposite outcomes for two models, with the runs that had them.

    Runs of a task are paired by repetition, in the order of the repetitions. A run without an outcome is a failure
    if another run of its model has one, as in all comparisons. For scores, pairs that differ by more than half of the
    largest difference count as opposite.

    Without names of models every pair of models is looked at, of more than 200 those of the highest means; with one,
    that model against all others. Columns are task, model_a, model_b, repetition (of `model_a`), value_a, value_b,
    run_id_a, run_id_b; one row per pair of runs, sorted by models and task.
    """
    scored = runs if isinstance(runs, Outcomes) else outcomes(runs, value)
    named = {name for name in (model_a, model_b) if name}
    table = scored.table.dropna(subset="value")
    table = table[table["model_name"].isin(named)] if len(named) == 2 else table
    table = table if named else leading(table)
    table = table.sort_values(["model_name", "task", "repetition"], kind="stable", ignore_index=True)
    place = table.groupby(["model_name", "task"]).cumcount()
    order = {name: n for n, name in enumerate([model_a, *sorted(set(table["model_name"]) - named), model_b])}
    side, values = table["model_name"].map(order).to_numpy(int), table["value"].to_numpy(float)
    units = pd.DataFrame({"unit": table.groupby([table["task"], place]).ngroup(), "row": table.index})
    both = units.merge(units, on="unit")  # of numbers, as many models have many pairs
    left, right = both["row_x"].to_numpy(), both["row_y"].to_numpy()
    gaps = np.abs(values[left] - values[right])
    is_kept = (side[left] < side[right]) & (gaps > 0)
    if len(named) == 1:
        is_kept &= (side[left] == order[next(iter(named))]) | (side[right] == order[next(iter(named))])
    is_kept &= gaps > gaps[is_kept].max(initial=0) / 2
    left, right = left[is_kept], right[is_kept]
    by_models = np.lexsort((side[right], side[left]))
    pairs = table[["task", "repetition"]].take(left[by_models]).reset_index(drop=True)
    for letter, rows in (("a", left[by_models]), ("b", right[by_models])):
        for name, column in (("model", "model_name"), ("value", "value"), ("run_id", "run_id")):
            pairs[f"{name}_{letter}"] = table[column].take(rows).array
    return pairs[_DISCORDANT]


def examples(pairs: pd.DataFrame) -> tuple[Example, ...]:
    """Return the first pairs of runs as examples, of different tasks if possible; `pairs` as from `discordant`."""
    rows = pairs.drop_duplicates(["task"]).head(MOST_EXAMPLES).to_dict("records")
    return tuple(Example(row["task"], row["run_id_a"], row["run_id_b"]) for row in rows)


def against(
    runs: pd.DataFrame,
    baseline: str,
    value: str = "",
    *,
    margin: float | None = None,
    target: Target = "new tasks",
    planned: Iterable[str] = (),
) -> pd.DataFrame:
    """Compare every model with a baseline: better, not worse by more than the margin, a regression, or not decided.

    The `baseline` is a model, a SourceError if it has no runs; no rows if it is empty. The `margin` is the largest loss
    that is acceptable, in the unit of the values, by default 0.05 for shares, and none for others. `warning` says which
    models lack runs that others have, or that were `planned`, and what had followed from their failure. The rest is as
    for `pairs`, the table that of `evalkit.stats.compare_to_baseline`.
    """
    scored = outcomes(runs, value)
    there = sorted(scored.table["model_name"].unique())
    if baseline and baseline not in there:
        raise SourceError(f"no runs of the baseline {baseline!r}; there are runs of {', '.join(map(repr, there))}")
    least = margin or (LEAST if scored.is_share else sys.float_info.min)
    base = baseline or there[0]
    rows = scored.table if baseline else scored.table[scored.table["model_name"] == base]
    _, cells = scored_cells(scored._replace(table=rows))
    table = compare_to_baseline(cells, base, target=target, margin=least)
    absent = absent_runs(rows, planned)
    if not (lacking := absent_counts(absent)):
        return table
    would_be = table["verdict"]  # had absent runs failed
    if scored.is_share:
        _, filled = scored_cells(scored._replace(table=with_failures(rows, absent)))
        failed = compare_to_baseline(filled, base, target=target, margin=least)
        would_be = table["model"].map(failed.set_index("model")["verdict"])
    warnings = []
    for row, verdict in zip(table.to_dict("records"), would_be, strict=True):
        counts = [one for one in lacking["models"] if one[0] in (row["model"], base)]
        other = "" if verdict == row["verdict"] else verdict
        absence = note("absent", **{**lacking, "models": counts}, verdict=other) if counts else Notes()
        warnings.append(row["warning"] + absence)
    return table.assign(warning=pd.Series(warnings, table.index, dtype="object"))


def reliability(runs: pd.DataFrame | Leaderboard, ks: Sequence[int] | None = None) -> pd.DataFrame:
    """Estimate pass@k, pass^k and agreement per model, each k on tasks with at least k runs.

    The table is that of `evalkit.stats.reliability`, by model_name; no rows if runs have no success or failure.
    Of more than 200 models, it has those with the highest means.
    """
    data, cells = scored_cells(runs, "is_successful")
    if len(cells.models) > MOST_MODELS:
        _, cells = scored_cells(data._replace(table=leading(data.table)))
    return reliability_of(cells, ks=ks, order="repetition")


def plan(runs: pd.DataFrame | Outcomes | Leaderboard, difference: float | None = None, value: str = "") -> pd.DataFrame:
    """Plan tasks and repetitions that show a true difference of a typical pair with 80 % power; `evalkit.stats.plan`.

    The difference is by default 0.1 for shares; for other values a quarter of the standard deviation of task means.
    Of more than 100 models, the plan is for the 30 with the highest means.
    """
    scored, cells = scored_cells(runs, value)
    cells = _leading(cells)
    if difference is None:
        means = pd.Series(cells.over_conditions.means.ravel())
        difference = 0.1 if scored.is_share else float(means.std() / 4 or 1.0)
    return plan_pairs(cells, difference)


def cost(runs: pd.DataFrame | Leaderboard, value: str = "") -> tuple[pd.DataFrame, str]:
    """Compare the results of models with their cost: US dollars, else tokens, else seconds, whichever runs have.

    The table is that of `evalkit.stats.cost_front`; the text says which it is: cost, tokens or duration. No rows, and
    an empty text, if runs have none of these.
    """
    data, cells = scored_cells(runs, value)
    table = data.table
    name = next((name for name in COSTS if table.loc[table["value"].notna(), name].notna().any()), "")
    if not name:
        nothing = table.iloc[:0].assign(**{COSTS[0]: pd.Series(dtype="float64")})
        _, cells = scored_cells(data._replace(table=nothing))
    return cost_front(cells, name or COSTS[0]), name
