"""Define the built-in checks of an audit, in the order in which they run."""

import math
import os
import re
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
import scipy  # `scipy.stats` and `scipy.special` are imported on first use, because this takes half a second

from evalkit import stats
from evalkit._notes import Notes, note
from evalkit._text import listed
from evalkit.compare.check_registry import Audited, Found, NotComputed, check
from evalkit.compare.items import task_items
from evalkit.compare.repeats import reliability
from evalkit.io.text import distinct_names
from evalkit.kinds.findings import absent_runs, bare_name, variants
from evalkit.kinds.runs import STOPPED, UNKNOWN, copied, has_flag, is_excluded
from evalkit.kinds.selection import logged_columns
from evalkit.kinds.success_rates import rates_by_denominator
from evalkit.kinds.transcript import transcripts

SURE = 0.001  # maximum p value of a difference between models or endings that is not due to chance
FEWEST = 10  # minimum number of a model's runs for comparing endings and results
MOST_NAMED = 3  # maximum number of models or reasons listed with their counts
LONGEST = 120  # maximum number of characters of a name or a reason
MOST_READ = 100  # maximum number of transcripts that `leaks` reads, spread evenly over models
LEAST_DISTINCT = 0.2  # minimum share of distinct values in a column that distinguishes runs
SHORTEST_ANSWER = 8  # minimum number of characters of an expected answer that does not occur in a text by chance
LONG_NUMBER = re.compile(r"-?[\d.,]{4,}")  # a number that does not occur in a text by chance
MOST_COMPARED = 20  # maximum number of pairs of runs whose texts are compared
LEAST_EQUAL = 0.9  # minimum share of equal results of two models before their texts are compared
LEAST_WRITTEN = 500  # minimum number of characters that two models do not both write by chance
MOST_UNDECIDED = 0.5  # minimum share of tasks that separate no models for a finding
FINISHED = re.compile(r"finish(?:ed)?|completed?|stop|done|submit(?:ted)?|success|ok|exit|end_turn", re.IGNORECASE)
BROKEN = re.compile(
    r"sandbox|docker|container|environment|infrastr|rate.?limit|quota|overloaded|connect|api.{0,12}(?:error|time)"
    r"|(?:server|service|provider|network)\w*.?(?:error|exception|fail|time|unavailable)",
    re.IGNORECASE,
)
RATE = re.compile(r"(?:.*_)?(?:accuracy|acc|resolved|resolved_rate|success_rate|score|reward|mean|pass[@^]1)$")
PASS = re.compile(r"pass([@^])([2-9]|[1-9]\d{1,2})")
DATED = re.compile(r"[-_@:. (]+(20\d\d)[-_.]?(\d\d)[-_.]?(\d\d)\)?$")
# what providers add to the name of a model
UNNAMING = re.compile(
    r"^(?:\w{2,4}\.)?(?:anthropic|meta|mistral|amazon|cohere|deepseek|qwen|openai)\.|^meta-(?=llama)|:free$|-v\d+:\d+$"
    r"|[-_@:.]latest$"
)
SETTING = r"(?i)^max\w*(?:steps|turns|tokens)$|limit$|^time_?out(?:_s)?$|^top_?[pk]$|effort$|(?:agent|prompt)_version$"
NO_ANSWER = ("empty_patch", "no_answer", "empty_output")
ANSWER = r'"(?:final_|model_|generated_)?(?:answer|prediction|response|output|completion|patch|text|submission)":'
ANSWERED = ANSWER + r'(?!null\b|"\s*"|\[\]|{})'
NEARLY_ALL = 0.9  # minimum share of each model's runs that show the answer, if the answer is part of every prompt
OWN_FILE = re.compile(  # paths of a benchmark's tests and solutions
    r"run-tests\.sh|test_outputs\.py|solution\.yaml|/oracle/|(?<![\w.~*})\]\\/-])/(?:tests|solution)(?=[/\s\"'\\)]|$)"
    r"|\bgold(?:en)?[._-]?patch\b|\b(?:answer_key|ground_truth)\.\w|FAIL_TO_PASS|laude-institute/terminal-bench"
)
WRITTEN = re.compile(  # calls of tools that write, and here-documents that a command writes to a file
    r"\A\s*\w*(?:write|create|save|insert|append|edit|replace|patch|think|plan|note|message|finish|submit|answer)"
    r"(?![\s\S]*\"command\":\s*\"view)[\s\S]*"
    r"|(?:(?:>|\btee\b)[^\n]{0,200}<<-?\s*['\"]?(\w+)|<<-?\s*['\"]?(\w+)['\"]?\s*>)[\s\S]*?(?:^(?:\1|\2)\b|\Z)",
    re.MULTILINE,
)
# what precedes a path in commands that run, write, list or name a file, but do not open it
NOT_OPENED = re.compile(
    r"^\s*$|>\s*[\"']?$|\b(?:mkdir|touch|tee|chmod|rm|ls|cd|stat|test|echo|printf)\s|\"(?:command|cmd|keystrokes)\":\s*\"$"
    r"|^(?!.*\b(?:e?grep|rg|sed|awk)\b).*\b(?:pytest|pip3? install)\s"
    r"|(?:^|[\s\"'])(?:bash|sh|zsh|shell|source|\.|python[\d.]*)(?:\s+-\w+)*\s+[\"']?$"
)


@check("missing trials", "Are planned trials missing?", noun="planned trial")
def missing_trials(audited: Audited) -> Found:
    """Count the planned trials that are missing; the alternative counts them as failures."""
    whole = audited.planned_runs
    plans: Any = getattr(audited.logs, "plans", None)
    if whole is not None and plans["planned"].notna().any():
        # use the number for all tasks together if a plan states it, else the sum over its tasks
        planned = plans.groupby(["source", plans["task_id"].ne("")])["planned"].sum(min_count=1)
        planned = planned.groupby("source").first().dropna()
        present = audited.all_runs["plan"].value_counts().reindex(planned.index, fill_value=0)
        lacking = (planned - present).clip(lower=0).astype("int64")
        gone = whole[whole["status"].eq("missing")]
        alternative = whole if len(gone) else None  # a plan that names no tasks does not show which ones lack trials
        models = audited.all_runs.groupby("plan")["model_name"].unique()
        only_model = models[models.str.len() == 1].str[0]  # of plans for one model
        notes = _by_model(gone) or _counts(lacking[lacking > 0].groupby(only_model).sum())
        return Found(max(len(gone), int(lacking.sum())), int(planned.sum()), alternative=alternative, notes=notes)
    tasks = audited.logs.kind.planned(audited.logs)
    if not tasks:
        raise NotComputed("no_plan_logged", "no log states a plan of these runs")
    due = absent_runs(audited.board.outcomes.table, tasks).query("is_planned")
    absent = due[due["n"] == 0]
    return Found(len(absent), len(due), alternative=audited.board.with_failures(absent))


@check("unequal runs", "Does a model have fewer runs of a task than other models?", noun="expected run")
def unequal_runs(audited: Audited) -> Found:
    """Count the runs that a model lacks compared to other models; the alternative counts them as failures."""
    board, table = audited.board, audited.board.outcomes.table
    cells = absent_runs(table)
    # also tasks that a model never ran, if half of the models with runs of the data set and condition ran them
    data = [cells["task"].map(table.groupby("task")["task_type"].first()).fillna(""), cells["condition"]]
    is_due = cells["n"].groupby([*data, cells["model_name"]]).transform("sum") > 0
    of_task = cells["n"].where(is_due).groupby([cells["task"], cells["condition"]])
    is_unrun = is_due & cells["n"].eq(0) & of_task.transform("median").gt(0)
    cells["absent"] = cells["absent"].mask(is_unrun, of_task.transform("max")).astype("int64")
    count = int(cells["absent"].sum())
    lacking = cells[cells["absent"] > 0].groupby("model_name")["absent"].sum()
    notes = _counts(lacking)
    for model, tasks in cells.loc[is_unrun, "model_name"].value_counts().head(MOST_NAMED).items():
        notes += note("unrun", "{model} has no run of {tasks:task}", model=model, tasks=tasks)
    alternative = board.with_failures(cells) if board.outcomes.is_share else None
    return Found(count, count + int(cells["n"].sum()), alternative=alternative, notes=notes)


@check("retries", "Were runs restarted after an error?")
def retries(audited: Audited) -> Found:
    """Count the runs that were retried; the alternative counts them as failures, except those that are not named."""
    of_plans = pd.Series() if audited.planned_runs is None else audited.logs["plans"]["retried"].dropna()
    if of_plans.empty:
        audited.needs("retries")
    rows = audited.runs[audited.runs["retries"].fillna(0) > 0]
    count = len(rows) + int(of_plans.sum())
    notes = _by_model(rows) + _counted("unnamed", "{count:retry} of runs that the logs do not name", count - len(rows))
    alternative = audited.ending(rows, False) if len(rows) else None
    return Found(min(count, len(audited.runs)), len(audited.runs), rows, alternative, notes=notes)


@check("retried until solved", "Does the number of runs of a task depend on their outcomes?", noun="model")
def retried_until_solved(audited: Audited) -> Found:
    """Count the models whose last runs of tasks succeed more often than others; the alternative uses first runs."""
    _needs_rate(audited)
    table = audited.board.named_runs.dropna(subset="value").sort_values("repetition", kind="stable")
    doubtful = audited.board.retried
    first = audited.runs["run_id"].isin(table.drop_duplicates(["model_name", "task"])["run_id"])
    notes = note("models", "{models}", models=doubtful)
    n_models = table["model_name"].nunique()
    return Found(len(doubtful), n_models, alternative=audited.runs[first], verdict="wrong", notes=notes)


@check("copies", "Are some runs excluded from all rates as copies?")
def copies(audited: Audited) -> Found:
    """Count the runs that flags exclude from rates; the alternative includes them."""
    kind, runs = audited.logs.kind, audited.all_runs
    if not kind.rates.excluding_flags:
        raise NotComputed("no_copies", "{kind} logs do not show which run is a copy", kind=kind.name)
    if "log_id" in runs and runs["log_id"].isna().all():
        raise NotComputed("no_ids", "runs have no ids, which copies would share")
    rows = runs[is_excluded(runs, kind)]
    pairs = copied(runs, kind)
    notes = note("copied", pairs=pairs) if pairs else _by_model(rows)
    counted = runs.assign(run_flags=pd.Series([()] * len(runs), runs.index, dtype="object"))
    return Found(len(rows), len(runs), rows, counted, notes=notes)


@check("equal runs", "Do runs repeat each other, even under another model?")
def equal_runs(audited: Audited) -> Found:
    """Count the runs with the same numbers as an earlier run of the task, and the runs of models that repeat another.

    Times, tokens and cost distinguish runs only if their values seldom repeat, and a run needs two such values. The
    alternative excludes these runs.
    """
    runs = audited.runs
    known = ["started", "duration", "tokens_in", "tokens_out", "cost"]
    telling = [name for name in known if runs[name].nunique() >= LEAST_DISTINCT * max(runs[name].count(), 1)]
    enough = runs[(runs[telling].notna() & runs[telling].ne(0)).sum(axis=1) >= 2]
    repeating = _repeating_models(audited)
    if enough.empty and not repeating:
        raise NotComputed("no_numbers", "too few runs state times or tokens that could distinguish them")
    keys = [name for name in ("task_id", "task_type", *known, "turns") if name in runs]
    rows = pd.concat([enough[enough.duplicated(keys)], runs[runs["model_name"].isin(repeating)]])
    rows = rows.drop_duplicates("run_id")
    others = enough.groupby(keys, dropna=False)["model_name"].nunique().gt(1).sum()
    notes = _by_model(rows) + _counted("between", "{count:group} with runs of several models", others)
    for model, earlier in [*repeating.items()][:MOST_NAMED]:
        notes += note("repeats", "{model} repeats the runs of {earlier}", model=model, earlier=earlier)
    n = len(runs) if repeating else len(enough)
    return Found(len(rows), n, rows, audited.without(rows), verdict="wrong", notes=notes)


def _repeating_models(audited: Audited) -> dict[str, str]:
    """Return a mapping from each model that repeats an earlier model to the earlier one.

    Such a model has runs of the same tasks. It has the same result as the earlier one in each run, which is not due to
    chance if the results of a task's runs could have occurred in many other orders. Or it has the same result in nearly
    all runs, and the agents wrote the same text.
    """
    runs = audited.runs
    results = runs.reindex(columns=["score", "is_successful", "turns", "status", "exit_reason"]).astype("str")
    table = audited.board.named_runs.assign(result=pd.util.hash_pandas_object(results, index=False))
    table = table.sort_values(["task", "repetition"], kind="stable")
    texts_of = cache(partial(_texts_of, audited, table))
    of_tasks: dict[tuple[Any, ...], dict[Any, Any]] = {}  # results by tasks and model
    repeating = {}
    for model, own in table.groupby("model_name", sort=False):
        if len(own) < FEWEST:
            continue
        others = of_tasks.setdefault(tuple(own["task"]), {})
        for earlier, result in others.items():
            equal = (own["result"].to_numpy() == result).mean()
            log_orders = 0.0
            if equal == 1:
                runs_of, equal_of = (own.groupby(keys).size() for keys in (["task"], ["task", "result"]))
                log_orders = scipy.special.gammaln(runs_of + 1).sum() - scipy.special.gammaln(equal_of + 1).sum()
            is_written = equal >= LEAST_EQUAL and sum(map(len, texts_of(model))) >= LEAST_WRITTEN
            if log_orders >= -np.log(SURE) or (is_written and texts_of(model) == texts_of(earlier)):
                repeating[str(model)] = str(earlier)
        if model not in repeating:
            others[model] = own["result"].to_numpy()
    return repeating


def _texts_of(audited: Audited, table: pd.DataFrame, model: str) -> list[str]:
    """Return what agents wrote in a sample of a model's runs, as a text for each run."""
    if audited.logs.kind.transcript is None:
        return []
    run_ids = table.loc[table["model_name"].eq(model), "run_id"]
    sample = run_ids.iloc[:: math.ceil(len(run_ids) / MOST_COMPARED)]
    chosen = audited.runs.set_index("run_id", drop=False).loc[sample]
    return [
        "\n".join(turn.shown for turn in transcript.turns if turn.role in ("assistant", "action"))
        for _, transcript in transcripts(audited.logs, chosen)
    ]


@check("infrastructure", "Did something other than the agent end runs?")
def infrastructure(audited: Audited) -> Found:
    """Count unmeasured runs, and failures of tables with an error; the alternative counts them as successes."""
    runs = audited.runs
    endings = _endings(audited)
    is_unscored = has_flag(runs, "no_outcome") | endings.isin(["", "finished"])  # these belong to check `no_outcome`
    is_broken = audited.outcome.eq("not measured") & ~is_unscored
    is_broken |= audited.outcome.eq("failure") & endings.eq("broken")
    rows = runs[is_broken]
    notes = Notes()
    if len(rows):
        shares = is_broken.groupby(runs["model_name"]).agg(["mean", "sum", "size"])
        worst = shares.sort_values("mean", ascending=False).iloc[0]
        values = {"model": str(worst.name), "count": int(worst["sum"]), "n": int(worst["size"])}
        notes = note("most_broken", "most affected: {model}, {count} of {n:run}", **values)
        reasons = rows["status"].replace(audited.logs.kind.labels)
        if "exit_reason" in rows:
            reasons = rows["exit_reason"].fillna(reasons)
        if "error" in rows:
            reasons = rows["error"].where(endings.eq("broken")).fillna(reasons)
        notes += _counts(reasons.value_counts())
    alternative = audited.ending(rows, True) if audited.board.outcomes.is_share else None
    return Found(len(rows), len(runs), rows, alternative, notes=notes)


@check("no outcome", "Do some runs have no outcome?")
def no_outcome(audited: Audited) -> Found:
    """Count the runs without an outcome and give rates by both denominators; the alternative uses the other one."""
    rows = audited.runs[audited.outcome.eq("not measured")]
    notes = Notes()
    if len(rows) and _has_rate(audited):
        most = rows["model_name"].fillna(UNKNOWN).value_counts().index[0]
        own = audited.runs[audited.runs["model_name"].fillna(UNKNOWN).eq(most)]
        first = rates_by_denominator(own, value="is_successful", kind=audited.logs.kind).iloc[0]
        if first["n_measured"]:
            other = "measured" if "measured_estimate" in first else "lowest"
            rates = {"one": first["estimate"], "other": first[f"{other}_estimate"]}
            notes = note("both_rates", _two_rates, of=most, **rates, of_other="with the other denominator")
    is_counted = audited.logs.kind.rates.denominator == "all" and _has_rate(audited)
    alternative = audited.without(rows) if is_counted else audited.ending(rows, False)
    return Found(len(rows), len(audited.runs), rows, alternative, notes=notes)


@check("time-outs that succeeded", "Did runs succeed although they reached a limit?")
def stopped_but_successful(audited: Audited) -> Found:
    """Count the successes among runs stopped at a limit of time or steps; the alternative counts them as failures."""
    stopped = audited.runs[_endings(audited).eq("stopped")]
    rows = stopped[audited.outcome[stopped.index].eq("success")]
    return Found(len(rows), len(stopped), rows, audited.ending(rows, False), notes=_by_model(rows))


@check("scores out of range", "Are some scores outside 0 to 1, although most are inside?")
def out_of_range(audited: Audited) -> Found:
    """Count the scores below 0 or above 1, if at least 90 % are within; the alternative excludes these runs."""
    audited.needs("score")
    scored = audited.runs.dropna(subset="score")
    is_within = scored["score"].between(0, 1)
    if is_within.mean() < 0.9:
        raise NotComputed("other_scale", "scores are no shares from 0 to 1")
    rows = scored[~is_within]
    return Found(len(rows), len(scored), rows, audited.without(rows), verdict="wrong")


@check("success without an answer", "Did runs succeed without any output?")
def without_answer(audited: Audited) -> Found:
    """Count successes without the turns, tokens or answer of the model's other runs; the alternative fails them."""
    runs = audited.runs
    is_stated = pd.Series(False, runs.index)
    is_silent = runs["status"].isin(NO_ANSWER)
    logged = _as_logged(runs, "turns", "tokens_in", "tokens_out")
    written = logged["tokens_out"].mask(logged["tokens_in"].eq(0).fillna(False))
    cells = runs.get("extra", pd.Series("", runs.index)).astype("str")
    answers = cells.str.contains(ANSWERED).astype("Int64").where(cells.str.contains(ANSWER))
    if "answer_length" in runs:
        answers = runs["answer_length"].fillna(answers)
    for counts in (logged["turns"], written, answers):
        usual = counts.groupby(runs["model_name"].fillna(UNKNOWN)).transform("median").fillna(0) > 0
        is_stated |= usual & counts.notna()
        is_silent |= (usual & counts.eq(0)).fillna(False)
    successes = runs[audited.outcome.eq("success") & (is_stated | is_silent)]
    if successes.empty:
        raise NotComputed("no_output", "no successful run states its turns, tokens or answer")
    rows = successes[is_silent[successes.index]]
    return Found(len(rows), len(successes), rows, audited.ending(rows, False), verdict="wrong")


@check("zero tokens or cost", "Are tokens or costs 0, which usually means that they were not counted?")
def zero_usage(audited: Audited) -> Found:
    """Count the runs whose logs state 0 tokens or a cost of 0."""
    audited.needs("tokens_in", "tokens_out", "cost", "uncounted")
    columns = _as_logged(audited.runs, "tokens_in", "tokens_out", "cost")
    rows = audited.runs[columns.eq(0).fillna(False).any(axis=1)]
    return Found(len(rows), len(columns.dropna(how="all")), rows, notes=_by_model(rows))


@check("tokens missing by ending", "Are tokens missing mainly for some endings, which biases their mean?")
def tokens_by_ending(audited: Audited) -> Found:
    """Count the runs without tokens, of models whose tokens are missing more often after some endings than others."""
    audited.needs("tokens_in", "tokens_out")
    runs = audited.runs
    is_missing = runs[["tokens_in", "tokens_out"]].dropna(axis="columns", how="all").isna().any(axis=1)
    ended = audited.outcome.mask(_endings(audited, needed=False).eq("stopped"), "stopped")
    model = runs["model_name"].fillna(UNKNOWN)
    missing = is_missing.groupby(model).agg(["mean", "size"])
    some = missing[missing["mean"].between(0, 1, inclusive="neither") & missing["size"].ge(FEWEST)]
    doubtful = []
    for name in some.index:
        counts = pd.crosstab(ended[model == name], is_missing[model == name])
        shares = counts[True] / counts.sum(axis=1)
        unlike = len(counts) > 1 and scipy.stats.chi2_contingency(counts).pvalue * len(some) <= SURE
        if unlike and shares.max() - shares.min() > 0.2:
            doubtful.append(name)
    rows = runs[is_missing & model.isin(doubtful)]
    return Found(len(rows), len(runs), rows, notes=_by_model(rows))


@check("published figures", "Do published figures differ from the runs?", noun="figure")
def published_figures(audited: Audited) -> Found:
    """Count the published rates that cannot be reproduced from the runs; the alternative ranks by published rates.

    The first of several rates in a file is assumed to cover all runs. Other rates are compared only if they cover the
    same number of runs.
    """
    table = getattr(audited.logs, "published", pd.DataFrame())
    if table.empty:
        raise NotComputed("none_published", "the logs contain no published figures")
    columns = ["model_name", "logged_model", "agent", "task_type", "score_key", "source", "plan", "experiment"]
    runs = audited.runs.reindex(columns=[*columns, "task_id", "is_successful", "score"])
    names = [runs["model_name"].str.rpartition("/")[2], runs["logged_model"], runs["model_name"]]
    of_model = {model: own for by in names for model, own in runs.groupby(by)}
    known = {name: set(runs[name].dropna()) for name in ("agent", "task_type", "score_key")}
    is_rate = table["metric"].isin(known["score_key"]) | table["metric"].str.match(RATE)
    table = table[is_rate | table["metric"].str.fullmatch(PASS)].dropna(subset="value")
    is_first = ~table.duplicated(["source", "model_name", "agent", "task_type"])
    sizes = runs["model_name"].value_counts()
    sizes_of_files = audited.all_runs.get("source", pd.Series()).value_counts()
    order = audited.estimates.copy()
    compared = skipped = 0
    unlike = list[Notes]()
    for row, leads in zip(table.to_dict("records"), is_first, strict=True):
        # the runs that the figure covers: with its model, agent, dataset and scorer, in its folder or subfolders
        model, n = row["model_name"], row["n"] if pd.notna(row["n"]) else -1  # -1: unknown
        matching = of_model.get(model, runs.iloc[:0]) if isinstance(model, str) and model else runs
        for name, value in {"agent": row["agent"], "task_type": row["task_type"], "score_key": row["metric"]}.items():
            if value in known[name] or (name == "task_type" and isinstance(value, str) and value and known[name]):
                matching = matching[matching[name].eq(value)]
        folder, file = os.path.split(row["source"])
        inside = matching[matching["source"].str.startswith(f"{folder}/")]
        own = inside if len(inside) else matching
        # one folder may contain figures of several experiments
        of_file = [matching[matching[column].eq(row["source"])] for column in ("source", "plan")]
        is_named = [isinstance(one, str) and bool(one) and one in file for one in inside["experiment"]]
        for exact in (*of_file, inside[is_named]):
            if len(exact) == n:
                own = exact
        if sizes_of_files.get(row["source"], 0) == n:  # the file contains the runs, of which some may be copies
            own = of_file[0]
        of_others = n not in (-1, len(own))
        is_partial = of_others and (n > len(own) or not leads or own["task_id"].duplicated().any())
        if own.empty:  # the figure covers other runs
            continue
        rates = _rates_of(own, row["metric"])
        if is_partial or not rates:
            skipped += 1
            continue
        compared += 1
        digits = min(max(len(f"{row['value']:.12g}".partition(".")[2]), 2), 4)
        if min(abs(rate - row["value"]) for rate in rates) > 0.5 * 10**-digits + 1e-9:
            model = own["model_name"].iloc[0]
            if len(own) == sizes[model] and not PASS.fullmatch(row["metric"]):
                order[model] = row["value"]
            values = {"one": row["value"], "of_one": "published", "other": rates[0], "of_other": "from the runs"}
            unlike.append(note("unlike_published", _two_rates, of=f"{model}, {row['metric']}", **values))
    if not compared + skipped:
        raise NotComputed("none_matches", "no published figure is about the runs here")
    others = _counted("not_compared", "not compared: {count:figure} of other or unknown runs", skipped)
    if not unlike and skipped:
        raise NotComputed("some_match", "{others}; {count:figure} agree", others=str(others), count=compared)
    ranking = None if order.equals(audited.estimates) else order.sort_values(ascending=False, kind="stable")
    notes = sum(unlike[:MOST_NAMED], Notes()) + others
    return Found(len(unlike), compared, order=ranking, verdict="wrong", notes=notes)


@check("settings", "Did models run with different limits, versions or temperatures?", noun="setting")
def settings(audited: Audited) -> Found:
    """Count the conditions and settings that differ between models, including columns of tables, by their names."""
    rules = audited.logs.kind.rates
    stated = audited.runs.filter(items=[*rules.conditions, *rules.reported_settings])
    logged = logged_columns(audited.runs).filter(regex=SETTING)
    known = [name for frame in (stated, logged) for name in frame if frame[name].notna().any()]
    if not known:
        raise NotComputed("no_settings", "the logs state no settings")
    values_of = logged.fillna("").groupby(audited.runs["model_name"].fillna(UNKNOWN)).agg(frozenset)
    unlike = {name: sorted(frozenset().union(*own)) for name, own in values_of.items() if own.nunique() > 1}
    notes = audited.board.notes.only("conditions_differ", "settings_differ")
    if unlike:
        notes += note("settings_differ", settings=unlike)
    count = sum(len(one.values.get("settings", one.values.get("conditions", ()))) for one in notes.notes)
    return Found(count, max(len(known), count), notes=notes)


@check("agents", "Did several agents use the same model?", noun="model")
def agents(audited: Audited) -> Found:
    """Count the models that several agents used, even if the comparison is between pairs of agent and model."""
    audited.needs("agent")
    column = "logged_model" if "logged_model" in audited.runs else "model_name"
    counts = audited.runs.groupby(column)["agent"].nunique()
    several = counts[counts > 1]
    notes = _counts(several)
    if audited.board.outcomes.compared_by:
        notes += note("compared_by", columns=audited.board.outcomes.compared_by)
    return Found(len(several), len(counts), notes=notes)


@check("pass^k", "Does pass^k depend on how trials count that were not measured?", noun="model")
def pass_hat_k(audited: Audited) -> Found:
    """Count the models whose pass^k over measured runs differs from pass^k over all, or all planned, runs."""
    _needs_rate(audited)
    whole = audited.planned_runs
    if whole is None:
        whole = audited.ending(audited.runs[audited.outcome.eq("not measured")], False)
    of_all = reliability(whole)
    of_measured = reliability(audited.runs[audited.outcome.ne("not measured")], sorted(set(of_all["k"])))
    one, other = (
        table[table["measure"].str.startswith("pass^")].set_index(["model_name", "measure"])["estimate"]
        for table in (of_measured, of_all)
    )
    gaps = (one - other).abs().dropna().sort_values(ascending=False)
    differ = gaps[gaps > 1e-9]
    notes = Notes()
    if len(differ):
        first = differ.index[0]
        rates = {"one": one[first], "of_one": "of measured trials", "other": other[first], "of_other": "of all"}
        notes = note("both_conventions", _two_rates, of=", ".join(first), **rates)
    models, doubtful = (table.index.get_level_values("model_name").nunique() for table in (gaps, differ))
    return Found(doubtful, models, notes=notes)


@check("undecided ranks", "Is it undecided which model is best?", noun="model")
def undecided_ranks(audited: Audited) -> Found:
    """Count the models that may be the best, unless there is exactly one."""
    ranks = audited.board.table["rank_low"].dropna()
    if len(ranks) < 2:
        raise NotComputed("one_model", "fewer than 2 models were ranked")
    n_best = int(ranks.eq(1).sum())
    return Found(0 if n_best == 1 else n_best, len(ranks), notes=note("may_be_best", "each may be the best"))


@check("variants", "Are tasks variants of a few templates?", noun="task")
def variants_of_few(audited: Audited) -> Found:
    """Count the tasks whose ids suggest that they are variants of a few templates."""
    notes = variants(audited.board.outcomes)
    n = audited.board.outcomes.table["task"].nunique()
    return Found(notes.notes[0].values["tasks"] if notes else 0, n, notes=notes)


@check("tasks that do not separate the models", "Do all models, or none, solve most of the tasks?", noun="task")
def idle_tasks(audited: Audited) -> Found:
    """Count the tasks that all models solve in all runs or that no model ever solves, if they are at least half."""
    if len(audited.board.cells.models) < 2:
        raise NotComputed("one_model", "fewer than 2 models were ranked")
    counts = task_items(audited.board)["verdict"].value_counts()
    idle = counts.reindex(["all solve", "none solves"], fill_value=0)
    are_many = idle.sum() >= MOST_UNDECIDED * counts.sum()
    return Found(int(idle.sum()) if are_many else 0, int(counts.sum()), notes=_counts(idle[idle > 0]))


@check("leaks", "Did agents see the expected answer at the start, or open the benchmark's own files?")
def leaks(audited: Audited) -> Found:
    """Count the runs whose agent saw the expected answer at the start, or opened the benchmark's own files.

    The check reads at most 100 runs and, if it finds a leak, all runs of the models concerned. An answer that nearly
    all runs of all models show is part of the prompts. The alternative excludes the counted runs.
    """
    if audited.logs.kind.transcript is None:
        raise NotComputed("no_transcripts", "{kind} logs can't be shown turn by turn", kind=audited.logs.kind.name)
    runs = audited.runs
    answers = runs.set_index("run_id").get("target", pd.Series()).dropna()
    order = runs.groupby("model_name", dropna=False).cumcount().sort_values(kind="stable")
    is_chosen = runs.index.isin(order.index[:MOST_READ])
    seen = _seen_in(audited, runs[is_chosen], answers)
    shares = seen["shows_answer"].astype("Float64").groupby(runs["model_name"]).mean()
    if len(shares) > 1 and shares.ge(NEARLY_ALL).all():
        seen["shows_answer"] = False
        if not seen["opens_files"].any():
            raise NotComputed("in_prompts", "nearly every prompt contains the answer, perhaps among several choices")
        answers = pd.Series()
    models = runs["model_name"].reindex(seen.index[seen["shows_answer"].fillna(False) | seen["opens_files"]])
    seen = pd.concat([seen, _seen_in(audited, runs[~is_chosen & runs["model_name"].isin(models)], answers)])
    if seen.empty:
        raise NotComputed("none_read", "no run has a transcript that can be read")
    read = seen[seen["shows_answer"].notna() | seen["opens_files"]].fillna(False)
    if read.empty:
        raise NotComputed("short_answers", "the expected answers are too short to search for")
    n_shown = int(read["shows_answer"].sum())
    n_opened = int(read["opens_files"].sum())
    notes = _counted("shows_answer", "{count:run} that show the expected answer at the start", n_shown)
    notes += _counted("opens_files", "{count:run} that open files of the benchmark", n_opened)
    notes += _counted("unread", "{count:run} not read", len(runs) - len(seen))
    rows = runs[runs.index.isin(read.index[read["shows_answer"] | read["opens_files"]])]
    return Found(len(rows), len(read), rows, audited.without(rows), notes=notes)


def _seen_in(audited: Audited, runs: pd.DataFrame, answers: pd.Series) -> pd.DataFrame:
    """Return which runs show their answer at the start (missing if it is too short), and which open own files."""
    seen: dict[str, dict[str, bool | None]] = {}
    for run_id, transcript in transcripts(audited.logs, runs):
        turns = transcript.turns
        begin = next((place for place, turn in enumerate(turns) if turn.role in ("assistant", "action")), None)
        if begin is None:
            continue
        answer = answers.get(run_id, "").strip().casefold()
        pattern: str | None = re.escape(answer)
        if LONG_NUMBER.fullmatch(answer):
            pattern = rf"(?<![\w.,-]){pattern}(?![\w-]|[.,]\d)"
        elif answer and len(answer) < SHORTEST_ANSWER:
            pattern = None
        start = "\n".join(turn.shown.casefold() for turn in turns[:begin])
        seen[run_id] = {
            "shows_answer": None if pattern is None else bool(pattern and re.search(pattern, start)),
            "opens_files": any(turn.role == "action" and opens_own_file(turn.shown) for turn in turns[begin:]),
        }
    places = pd.Series(runs.index, runs["run_id"])[list(seen)].to_numpy()
    made = pd.DataFrame(list(seen.values()), places, columns=["shows_answer", "opens_files"])
    return made.astype({"shows_answer": "boolean", "opens_files": "boolean"})


def opens_own_file(call: str) -> bool:
    """Return whether a call opens files of a benchmark. Running tests does not count, since the harness runs them."""
    if not OWN_FILE.search(call):
        return False
    text = WRITTEN.sub("", call.replace("\\n", "\n").replace('\\"', '"'))
    for command in re.split(r"[;|&`\n]|\$\(", text):
        found = OWN_FILE.search(command)
        if found and not NOT_OPENED.search(command[: found.start()]):
            return True
    return False


@check("names", "Do several names refer to one model?", noun="name")
def names_alike(audited: Audited) -> Found:
    """Count the names that differ only in case, provider, date or form; the alternative merges them."""
    column = "logged_model" if "logged_model" in audited.runs else "model_name"
    names = sorted(set(audited.runs[column].dropna()) - {UNKNOWN})
    groups: dict[str, dict[str, list[str]]] = {}  # by the name without its date: names by date
    for name in names:
        model = UNNAMING.sub("", bare_name(name))
        date = DATED.search(model)
        undated = re.sub(r"-0$", "", model[: date.start()] if date else model)
        version = re.sub(r"(?<=\d)[-_ ](?=\d{1,2}(?![\da-z]))", ".", undated)  # 3-5 as 3.5, but not 3-70b
        parts = " ".join(sorted(re.split(r"[-_\s()@:]+", version)))
        groups.setdefault(parts, {}).setdefault("".join(date.groups()) if date else "", []).append(name)
    notes = Notes()
    for by_date in groups.values():
        groups_of_one_model = list(by_date.values())
        if len(by_date.keys() - {""}) < 2:  # names with different dates are different models
            groups_of_one_model = [[name for own in by_date.values() for name in own]]
        for alike in groups_of_one_model:
            if len(alike) > 1:
                notes += note("alike", names=alike, one=min(alike, key=lambda name: (len(name), name.swapcase())))
    merged = {name: one.values["one"] for one in notes.notes for name in one.values["names"]}
    alternative = None
    if column == "model_name":
        alternative = audited.runs.assign(model_name=audited.runs["model_name"].replace(merged))
    return Found(len(merged), len(names), alternative=alternative, notes=notes)


@check("unnamed runs", "Do some logs name no model?")
def unnamed_runs(audited: Audited) -> Found:
    """Count the runs without a model name, which are not ranked."""
    rows = audited.runs[audited.runs["model_name"].fillna(UNKNOWN).eq(UNKNOWN)]
    return Found(len(rows), len(audited.runs), rows)


def _has_rate(audited: Audited) -> bool:
    return audited.board.outcomes.kind == "proportion"


def _needs_rate(audited: Audited) -> None:
    """Raise NotComputed if no run has a success or failure, or no task was repeated."""
    if not _has_rate(audited):
        raise NotComputed("no_success", "no run has a success or a failure")
    if not audited.board.outcomes.table.duplicated(["model_name", "task"]).any():
        raise NotComputed("none_repeated", "no task was run more than once")


def _endings(audited: Audited, *, needed: bool = True) -> pd.Series:
    """Classify how runs ended: "" if their logs do not state it, stopped (at a limit), finished or other.

    In tables, also broken: by something other than the agent, according to the words or an error that is no limit.
    """
    texts = audited.runs.reindex(columns=["status", "exit_reason", "error", "format"]).astype("str").fillna("")
    is_table = texts["format"].eq("table")
    status, error = texts["status"].replace("completed", ""), texts["error"].where(is_table, "")
    stated = status + "\n" + texts["exit_reason"] + "\n" + error
    classes = {
        "": stated.eq("\n\n"),
        "broken": is_table & stated.str.contains(BROKEN),
        "stopped": stated.str.contains(STOPPED),
        "finished": error.eq("") & status.str.fullmatch(FINISHED),
    }
    if needed and classes[""].all():
        raise NotComputed("no_endings", "the logs do not state how runs ended")
    others = np.where(error.ne(""), "broken", "other")
    return pd.Series(np.select([*classes.values()], [*classes], others), texts.index)


def _as_logged(runs: pd.DataFrame, *names: str) -> pd.DataFrame:
    """Return amounts as logged, with the 0 of uncounted amounts, which is missing in other frames."""
    amounts = runs[[*names]].astype("Float64")
    uncounted = runs.get("uncounted", pd.Series("", runs.index)).fillna("")
    return pd.DataFrame({name: amounts[name].mask(uncounted.str.contains(name), 0) for name in names})


def _counted(code: str, text: str, count: int) -> Notes:
    """Return a note on a count, or no note if it is 0."""
    return note(code, text, count=int(count)) if count else Notes()


def _counts(counts: pd.Series) -> Notes:
    """Return a note on counts by name, the largest first, or no note if there are none."""
    ordered = counts.sort_values(ascending=False, kind="stable")
    return note("counts", _named_counts, counts=ordered.to_dict()) if len(ordered) else Notes()


def _named_counts(counts: Mapping[str, int]) -> str:
    names = distinct_names(counts, LONGEST)
    return listed([f"{names[name]}: {count:,}" for name, count in counts.items()], MOST_NAMED)


def _two_rates(of: str, one: float, other: float, of_other: str, of_one: str = "here") -> str:
    return f"{of}: {one * 100:.1f} % {of_one}, {other * 100:.1f} % {of_other}"


def _by_model(rows: pd.DataFrame) -> Notes:
    return _counts(rows["model_name"].fillna(UNKNOWN).value_counts())


def _rates_of(runs: pd.DataFrame, metric: str) -> list[float]:
    """Return the figures that may be published: rates over all or measured runs, mean scores, and means over tasks."""
    success = runs["is_successful"].astype("Float64")
    columns = [success.fillna(0), success.dropna()]
    if measure := PASS.fullmatch(metric):
        share = stats.pass_at_k if measure[1] == "@" else stats.pass_hat_k
        counts = [values.groupby(runs["task_id"]).agg(["size", "sum"]).astype("float") for values in columns]
        shares = [pd.Series(share(one["size"], one["sum"], int(measure[2]))).dropna() for one in counts]
        return [float(one.mean()) for one in shares if len(one)]
    columns = [values for values in (*columns, runs["score"].dropna(), runs["score"].fillna(0)) if len(values)]
    means = [float(values.mean()) for values in columns]
    if runs["task_id"].duplicated().any():
        means += [float(values.groupby(runs["task_id"]).mean().mean()) for values in columns]
    return means
