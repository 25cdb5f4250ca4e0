"""Format the terminal output of ``evalkit compare`` and ``evalkit audit``, and decide whether a build fails."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from evalkit._notes import Notes
from evalkit._text import counted_noun, format_interval, listed, sentence
from evalkit.compare.answers import plan_findings
from evalkit.compare.audit import Audit
from evalkit.compare.baseline import LEAST, against, baseline_named, changed_tasks
from evalkit.compare.comparison import Comparison, comparison
from evalkit.compare.costs import at_budget
from evalkit.compare.items import fewer_tasks, task_items
from evalkit.compare.pairwise import pairs_text
from evalkit.compare.ranking import FIRST, Leaderboard, leaderboard, rank_table, ranked, ranks_text, with_short_names
from evalkit.display.terminal import INTERVAL, NAME_WIDTH, Answer, Part, name_width, on_screen, unmeasured_lines
from evalkit.display.words import finding_text, undecided_text, why_undecided
from evalkit.io import distinct_names, plain
from evalkit.kinds import Finding, Outcomes, outcomes, rates
from evalkit.kinds.findings import similar_names, variants
from evalkit.kinds.runs import UNKNOWN, Value, kind_of
from evalkit.kinds.success_rates import best_first
from evalkit.stats.adjusted import ADJUSTED
from evalkit.stats.intervals import CONFIDENCE, Target

MOST_ANSWERED = 40  # maximum number of models that the commands of kinds rank; `evalkit compare` has no maximum
MOST_PAIRS, MOST_VERDICTS = 6, 16  # maximum numbers of rows on one screen
VERDICTS_OF_TASKS = {
    "all solve": "solved by all models",
    "none solves": "solved by none",
    "equal": "with equal results of all models",
    "contradicts the order": "contradicting the order of models",
    "discriminates": "that separate models in their order",
}
VERDICTS = ("regression", "not decided", "not worse", "better")  # verdicts that fail a build come first


def answer(runs: pd.DataFrame, planned: Sequence[str] = ()) -> Answer:
    """State which model is best, or the rate of all runs if no run names a model."""
    named = runs.loc[runs["model_name"] != UNKNOWN, "model_name"].nunique()
    if named > MOST_ANSWERED:
        known = best_first(rates(runs)).dropna(subset="estimate")
        if len(known):
            data = outcomes(runs)
            ends = known.iloc[0][["estimate", "low", "high"]]
            rate = format_interval(*ends, percent=data.is_share, unit=data.unit or None)
            text = f"{named:,} models, sorted by rate; the first has a {data.name} of {rate}"
            return Answer(f"{text}; `evalkit compare` tests which are better.")
    board = leaderboard(runs, planned=planned)
    in_sentences = with_short_names(board, name_width())
    ranking = ranked(in_sentences)
    text = "\n".join(_answer_lines(in_sentences, ranking))
    if "higher" not in ranking.values["headline"] or not board.has_means:
        return Answer(text)
    table = with_short_names(board, NAME_WIDTH).table
    shown = [format_interval(rate, None, None, percent=board.outcomes.is_share) for rate in table["adjusted_estimate"]]
    adjusted = rank_table(board).filter(regex="^(model_name|measure|adjusted_.*)$")
    return Answer(text, board.basis, dict(zip(table["model_name"], shown, strict=True)), adjusted)


def _answer_lines(board: Leaderboard, ranking: Finding) -> list[str]:
    """State which model is best, with its estimate and the shared tasks, then the caveats of the claim."""
    answer = " ".join([plain(finding_text(ranking)), *_lines(board.notes.only("partly"))])
    return [answer, *_lines(board.notes.only(*FIRST, "variants", "families"))]


def _lines(notes: Notes) -> list[str]:
    return [plain(sentence(note)) for note in notes.notes]


def describe_comparison(
    runs: pd.DataFrame,
    *,
    value: Value | None = None,
    margin: float | None = None,
    planned: Sequence[str] = (),
    detect: float = 0.0,
    below: Sequence[str] = (),
    everything: bool = False,
    board: Leaderboard | None = None,
) -> str:
    """Format which model is best, the models with their ranks and rates, the plan, and pairs, the best models first.

    The plan is the number of tasks that would decide between models, also for a difference of `detect`
    (`evalkit.compare.plan_findings`). `planned` is as for `leaderboard`, and `below` are lines to print at the end.
    The output fits on one screen, unless `everything` is set. `board` is the leaderboard, if it is already computed.
    """
    if board is None:
        board = leaderboard(runs, value or "", margin=margin, planned=planned)
    in_sentences = with_short_names(board, name_width())
    plans = [plain(finding_text(one)) for one in plan_findings(in_sentences, detect)]
    ranking = ranked(in_sentences)
    board = with_short_names(board, NAME_WIDTH)
    table, share = board.table, board.outcomes.is_share
    title, lines = board.outcomes.title, _answer_lines(board, ranking)
    rows, pairs = [], []
    if not board.has_means:
        title = f"{title} over all conditions"
        lines.append("The means below mix different conditions, so they support no claim.")
    for row, rank in zip(table.to_dict("records"), ranks_text(table), strict=True):
        cells = {"model": row["model_name"], "rank": rank or "–", "runs": str(row["n"]), "tasks": str(row["n_tasks"])}
        ends = row["estimate"], row["low"], row["high"]
        cells[f"{title}{INTERVAL}"] = format_interval(*ends, percent=share)
        if board.is_adjusted:
            cells[board.basis] = format_interval(row["adjusted_estimate"], None, None, percent=share)
        rows.append(cells)
    reasons = zip(table["model_name"], table["warning"], strict=True)
    copies = [plain(f"{name}: {why}.") for name, why in reasons if why and "only_copies" in why]
    stated = ["absent"] if ranking.values["headline"].get("absent") else []  # the answer includes this note
    notes = _lines(board.notes.without(*FIRST, "partly", "variants", "families", "same_order", *stated)) + copies
    notes += _lines(similar_names(runs))
    if board.basis == ADJUSTED:
        notes.append(f"Rates {ADJUSTED} assume that no model is better suited to some tasks.")
    notes += filter(None, [undecided_text(ranking.values["headline"].get("undecided", 0))])
    place = {name: number for number, name in enumerate(table["model_name"])}
    for row in board.pairs.to_dict("records"):
        if place[row["model_b"]] < place[row["model_a"]]:  # the model that ranks higher comes first
            row |= {"model_a": row["model_b"], "model_b": row["model_a"]}
            row |= {"estimate": -row["estimate"], "low": -row["high"], "high": -row["low"]}
        if row["decided"]:
            verdict = "better" if row["estimate"] > 0 else "worse"
        else:
            verdict = "equivalent" if row["equivalent"] is True else "not decided"
        if why := why_undecided(row):
            verdict += f" ({why})"
        sides = {"model": row["model_a"], "against": row["model_b"], **_tasks(row, board.pairs)}
        pairs.append({**sides, **_difference(row, board.outcomes), "": verdict})
    pairs.sort(key=lambda pair: (place[pair["model"]], place[pair["against"]]))
    parts = [
        Part("the answer", lines, always=True),
        Part("models", rows=rows, always=True),
        Part("what would decide, and notes", [*plans, *notes], always=bool(detect)),
        Part("pairs", rows=pairs, most=MOST_PAIRS, last=0, left=2, spare=("tasks",)),
        Part("tasks", _items_lines(board) if everything and len(table) > 1 else []),
        Part("at equal budgets", rows=_budget_rows(board) if everything else []),
        Part("pairs in words", pairs_text(board.pairs).split("\n") if everything and pairs else []),
        Part("rates of measured runs only", unmeasured_lines(runs, ["model_name"], kind_of(runs), value or "")),
        Part("files and choices", below, always=True),
    ]
    return on_screen(parts, everything=everything, compared_by=board.outcomes.compared_by)


def _items_lines(board: Leaderboard) -> list[str]:
    """Describe how tasks separate models, and how few tasks would give the same first model."""
    table, fewer = task_items(board), fewer_tasks(board)
    numbers = table["verdict"].value_counts()
    counts = ", ".join(f"{n:,} {VERDICTS_OF_TASKS[str(verdict)]}" for verdict, n in numbers.items())
    lines = [f"Of {counted_noun(len(table), 'task')}: {counts}."]
    against_order = table.loc[table["verdict"] == "contradicts the order", "task"].head(MOST_PAIRS)
    if len(against_order):
        named = ", ".join(map(plain, against_order))
        lines.append(f"Tasks that contradict the order of models, perhaps by chance: {named}.")
    enough = fewer.loc[fewer["same_first"] >= CONFIDENCE, "n_tasks"]
    if len(enough):
        tasks = counted_noun(enough.iloc[0], "task")
        lines.append(f"{tasks}, drawn at random, would give the same first model in at least 95 % of draws.")
    return lines


def _budget_rows(board: Leaderboard) -> list[dict[str, str]]:
    """Format the success rates of models at equal budgets, one row per budget."""
    table, unit = at_budget(board)
    rows = []
    for budget, own in table.groupby("budget"):
        rates = {f"at most, {unit} per run": f"{budget:,.4g}"}
        for row in own.to_dict("records"):
            rates[str(row["model_name"])] = format_interval(row["estimate"], row["low"], row["high"])
        rows.append(rates)
    return rows


def _tasks(row: Mapping[Any, Any], table: pd.DataFrame) -> dict[str, str]:
    """Return the number of shared tasks of a row, and of unshared tasks if any row of the table has some."""
    if not table["n_unshared"].any():
        return {"tasks": str(row["n_tasks"])}
    return {"tasks": str(row["n_tasks"]), "unshared": str(row["n_unshared"])}


def _difference(row: Mapping[Any, Any], data: Outcomes) -> dict[str, str]:
    """Format the difference between two models, with its unit and p value."""
    scale, unit, digits = (100, "points", 0) if data.is_share else (1, data.unit, 2)
    ends = (row[end] * scale for end in ("estimate", "low", "high"))
    return {
        f"difference, {unit}".rstrip(", ") + INTERVAL: format_interval(*ends, percent=False, digits=digits),
        "p, corrected": "–" if pd.isna(row["p_adjusted"]) else f"{row['p_adjusted']:.2g}",
    }


def describe_baseline(
    runs: pd.DataFrame | Comparison,
    baseline: str,
    *,
    value: Value | None = None,
    margin: float | None = None,
    target: Target = "new tasks",
    strict: bool = False,
    below: Sequence[str] = (),
    everything: bool = False,
    table: pd.DataFrame | None = None,
) -> tuple[str, bool]:
    """Format each model's verdict against a baseline, then `below`; also return whether a build passes.

    The build fails if a model is a regression or, with `strict`, if a model is not shown to be no worse. `table` is the
    result of `against`, if it is already computed.
    """
    compared = comparison(runs, value or "")
    baseline = baseline_named(compared, baseline)
    if table is None:
        table = against(compared, baseline, margin=margin, target=target)
    if table.empty:
        alone = [f"{plain(baseline)} is the only model, so there is no comparison.", *_lines(compared.unnamed)]
        return "\n".join([*alone, *below]), not strict
    table = table.sort_values("verdict", key=lambda verdicts: verdicts.map(VERDICTS.index), kind="stable")
    data, share = compared.outcomes, compared.outcomes.is_share
    unit = "percentage points" if share else data.unit
    names = distinct_names(table["model_name"], NAME_WIDTH)
    rows, lacking = [], []
    for row in table.to_dict("records"):
        verdict = row["verdict"]
        if verdict == "not decided" and (why := why_undecided(row)):
            verdict += f" ({why})"
        cells = {"model": names[row["model_name"]], **_tasks(row, table)}
        for head, name in (("model's", "mean"), ("baseline's", "mean_baseline")):
            cells[head] = format_interval(row[name], None, None, percent=share)
        rows.append({**cells, **_difference(row, data), "verdict": verdict})
        if absent := row["warning"].only("absent"):
            lacking.append(plain(f"{names[row['model_name']]}: {absent}."))
    least = LEAST if margin is None and share else margin
    loss = f"a loss of less than {(least or 0) * (100 if share else 1):g} {unit}".rstrip() + " is no regression"
    if least is None:
        loss = f"any loss that is shown is a regression (--margin, in {unit or 'the unit of the score'}, allows some)"
    found = table["verdict"].value_counts().reindex(VERDICTS).dropna().astype(int)
    counts = [counted_noun(n, name) if name == "regression" else f"{n:,} {name}" for name, n in found.items()]
    head = f"Against {plain(baseline)}: {', '.join(counts)}. By {data.title} on the tasks both ran; {loss}."
    bad = {"regression", "not decided"} if strict else {"regression"}
    if target == "these tasks":
        head = f"{head} The question is whether they differ on these tasks, run again."
    tasks = []
    for row in changed_tasks(compared, baseline).sort_values("p_adjusted", kind="stable").to_dict("records"):
        own, base = (format_interval(row[name], None, None, percent=share) for name in ("mean", "mean_baseline"))
        cells = {"task": plain(row["task"]), "model": names[row["model_name"]], "": row["change"], "model's": own}
        cells |= {"baseline's": base, "p, corrected": "–" if pd.isna(row["p_adjusted"]) else f"{row['p_adjusted']:.2g}"}
        tasks.append(cells | {"a run": row["run_ids"][0], "baseline's run": row["run_ids_baseline"][0]})
    parts = [
        Part("the question", [head], always=True),
        Part("models", rows=rows, always=True, most=MOST_VERDICTS, spare=("tasks",)),
        Part("tasks broken and fixed", rows=tasks, most=MOST_PAIRS, last=0, left=2),
        Part("doubts", [*lacking, *_lines(compared.unnamed + compared.doubts + variants(data))], always=True),
        Part("files and choices", below, always=True),
    ]
    text = on_screen(parts, everything=everything, compared_by=data.compared_by)
    return text, not table["verdict"].isin(bad).any()


def describe_audit(found: Audit, *, everything: bool = False) -> str:
    """Format how many checks change the ranking, which checks found something, and which could not be computed."""
    shown = found.shown[["check", "verdict", "found", "alternative ranking"]]
    if not everything:
        shown = shown[shown["verdict"].isin(["wrong", "look"])]
    rows = [{str(name): plain(text) for name, text in row.items()} for row in shown.to_dict("records")]
    fine = found.table.loc[found.table["verdict"].eq("fine"), "check"]
    open_checks = found.table[found.table["verdict"].eq("not computed")]
    lines = []
    for why, own in open_checks.groupby(open_checks["notes"].map(str), sort=False):
        lines.append(plain(sentence(f"not computed, {listed(own['check'])}: {why}")))
    answered, *details = [plain(finding_text(one)) for one in found.findings]
    parts = [
        Part("the answer", [answered], always=True),
        Part("checks", rows=rows, always=True, most=MOST_VERDICTS, last=0, left=2),
        Part("details", details),
        Part("checks that found nothing", [f"Nothing was found by: {plain(listed(fine))}."] if len(fine) else []),
        Part("checks that could not be computed", lines),
    ]
    return on_screen(parts, everything=everything)
