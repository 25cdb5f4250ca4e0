"""Estimates and counts of steps, planned steps and analyses of cell types, from frames to frames, and findings."""

import json
from collections.abc import Sequence
from itertools import chain, product
from typing import Any

import pandas as pd

from evalkit._notes import NO_NOTES, Notes
from evalkit._text import counted_noun, sentence
from evalkit.io import SourceError, frame
from evalkit.io.sources import is_sample
from evalkit.io.text import cut_end, message_pattern
from evalkit.kinds import Example, Finding, sections
from evalkit.kinds.findings import MOST_EXAMPLES, files_of
from evalkit.stats import Estimate, estimate_by, proportion_interval
from evalkit.steps import table, words
from evalkit.steps.format import (
    CRITICAL,
    NOT_JUDGED,
    NOT_RUN,
    SILENT,
    STATUSES,
    VERDICTS,
    WENT_WRONG,
    cell_types_of,
    is_talk,
)
from evalkit.steps.judge import History, plan_adherence
from evalkit.steps.logs import StepsLogs

__all__ = [
    "adherence", "confirmed_success", "coverage", "failure_kinds", "focus", "found", "overview", "success_rates",
    "total", "truncation",
]  # fmt: skip
MOST_PAIRS = 100_000  # maximum number of pairs of a cell type and an analysis in one history
SAMPLES = (
    "These samples were made for demonstration: a scripted plan, run on the 700 public blood cells that scanpy "
    "bundles. Tests, counts and errors are real; made-up gene sets replace GO, KEGG and Reactome, as their names show."
)
REPORTED, CONFIRMED = "reported", "confirmed"  # success in the record; success that the result does not contradict


def success_rates(steps: pd.DataFrame, by: str | Sequence[str] = "history") -> pd.DataFrame:
    """Estimate the share of steps that succeeded: as reported, and without silent failures.

    Skipped and unknown steps and steps of copies are left out; every attempt counts. If groups span several histories,
    all histories have equal weight: the estimate is the mean of their shares, and the interval is computed over
    histories, or over families of histories if `load` was called with ``cluster``. Within one history, steps are
    treated as independent, so the interval is too narrow if one failure causes the next.

    Parameters
    ----------
    steps : DataFrame
        One row per step, such as `logs.steps`.
    by : str or sequence of str
        Columns to group by; an empty list pools all steps.

    Returns
    -------
    DataFrame
        `by`, success (reported or confirmed), n (steps), n_tasks, estimate, low, high (shares), method, target,
        warning.

    Examples
    --------
    >>> analysis.success_rates(logs.steps, [])["n"].min() > 0
    np.True_
    """
    counted = originals(steps).loc[lambda rows: ~rows["verdict"].isin(NOT_JUDGED)]
    ended = {REPORTED: counted["success"], CONFIRMED: counted["verdict"].eq("success")}
    both = pd.concat([counted.assign(success=name, value=ok.astype("float64")) for name, ok in ended.items()])
    return _shares(both, [*([by] if isinstance(by, str) else by), "success"])


def originals(table: pd.DataFrame) -> pd.DataFrame:
    """Leave out the rows of copies, so that an execution in several histories counts once."""
    return table[table["copy_of"].isna().to_numpy()]


def _shares(steps: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Estimate the mean of `value` by group: over steps or, if groups span histories, over the shares of histories."""
    if "history" in by or steps["history"].nunique() < 2:
        return estimate_by(steps, by, "value")
    keys = [*by, "history", *steps.columns.intersection(["cluster"])]
    of_history = steps.groupby(keys, dropna=False)["value"].agg(["mean", "size"]).reset_index()
    groups: dict[str, Any] = {}
    if "cluster" in steps:
        of_history["cluster"] = of_history["cluster"].fillna(of_history["history"])
        groups = {"clusters": "history", "families": "cluster"}
    rates = estimate_by(of_history, by, "mean", kind="score", **groups)
    n: Any = of_history.groupby(by, dropna=False)["size"].sum().to_numpy() if by else len(steps)
    return rates.assign(n=n).astype({"n": rates["n"].dtype})


def confirmed_success(steps: pd.DataFrame) -> Estimate:
    """Estimate the share of a history's steps that succeeded without silent failures; see `success_rates`.

    Parameters
    ----------
    steps : DataFrame
        One row per step, such as `logs.steps`.

    Returns
    -------
    Estimate
        The share, from 0 to 1; NaN if no step was judged.

    Examples
    --------
    >>> 0 <= analysis.confirmed_success(logs.steps).estimate <= 1
    np.True_
    """
    rates = success_rates(steps, []).set_index("success")
    if CONFIRMED not in rates.index:
        return proportion_interval(0, 0)
    return Estimate(**rates.loc[CONFIRMED, list(Estimate._fields)])


def overview(runs: pd.DataFrame, steps: pd.DataFrame) -> pd.DataFrame:
    """Summarise each history except copies: the lowest confirmed success first, then the most judged steps.

    Parameters
    ----------
    runs : DataFrame
        One row per history, such as `logs.runs`.
    steps : DataFrame
        One row per step, such as `logs.steps`.

    Returns
    -------
    DataFrame
        One row per history, with the columns `OVERVIEW`.

    Examples
    --------
    >>> "confirmed_estimate" in analysis.overview(logs.runs, logs.steps)
    True
    """
    rows = _summarise(originals(runs), steps, success_rates(steps))
    order = ["confirmed_estimate", "n", "history"]
    return rows.sort_values(order, ascending=[True, False, True], na_position="last", ignore_index=True)


def total(runs: pd.DataFrame, steps: pd.DataFrame) -> pd.DataFrame:
    """Summarise several histories, with equal weights, in one row with the columns of `overview`.

    Parameters
    ----------
    runs : DataFrame
        One row per history, such as `logs.runs`.
    steps : DataFrame
        One row per step, such as `logs.steps`.

    Returns
    -------
    DataFrame
        One row, or none for a single history.

    Examples
    --------
    >>> len(analysis.total(logs.runs, logs.steps)) <= 1
    True
    """
    runs, steps = originals(runs), originals(steps)
    name = {"history": f"all {len(runs)} histories"}
    several = runs.assign(**name, run_id=None) if len(runs) > 1 else runs.iloc[:0]
    return _summarise(several, steps.assign(**name), success_rates(steps, []).assign(**name))


def _summarise(runs: pd.DataFrame, steps: pd.DataFrame, rates: pd.DataFrame) -> pd.DataFrame:
    """Build one row per label in `runs` from the counts of runs, the verdicts on steps, and the rates."""
    groups = runs.rename(columns={"turns": "records"}).groupby("history", sort=False)
    out = groups[["records", "loops", "cut"]].sum().join(groups["run_id"].first())
    verdicts = steps.groupby(["history", "verdict"]).size().unstack(fill_value=0)
    out = out.join(verdicts.reindex(index=out.index, columns=list(VERDICTS), fill_value=0))
    for which in (REPORTED, CONFIRMED):
        by_label = rates[rates["success"].eq(which)].set_index("history").reindex(out.index)
        out = out.join(by_label[["estimate", "low", "high"]].add_prefix(f"{which}_"))
        out["n"], out["warning"] = by_label["n"].fillna(0), by_label["warning"].map(str, na_action="ignore")
    reason = out["records"].gt(0).map({True: "no step can be judged", False: "no records"})
    out["warning"] = out["warning"].fillna(reason)
    return frame(out.reset_index().to_dict("records"), table.OVERVIEW)


def focus(runs: pd.DataFrame, steps: pd.DataFrame, label: str = "") -> str:
    """Return the label of the history to show in detail: `label` if given, else the first of `overview`.

    Parameters
    ----------
    runs : DataFrame
        One row per history, such as `logs.runs`.
    steps : DataFrame
        One row per step, such as `logs.steps`.
    label : str
        Label of a history; empty for the first of `overview`.

    Returns
    -------
    str
        The label; empty if there is no history.

    Raises
    ------
    SourceError
        If no history has this label.

    Examples
    --------
    >>> analysis.focus(logs.runs, logs.steps) in set(logs.runs["history"])
    True
    """
    known = list(runs["history"])
    if label and label not in known:
        raise SourceError(f"no history named {label!r}: there is {', '.join(known[:5]) or 'none'}")
    return label or next(iter(overview(runs, steps)["history"]), "")


def failure_kinds(steps: pd.DataFrame) -> pd.DataFrame:
    """Count failures by kind: the class of the error or, without one, the message without its variable parts.

    Parameters
    ----------
    steps : DataFrame
        One row per step, such as `logs.steps`.

    Returns
    -------
    DataFrame
        One row per kind, the most frequent first, with the columns `FAILURE_KINDS`.

    Examples
    --------
    >>> "steps" in analysis.failure_kinds(logs.steps)
    True
    """
    failed = originals(steps).loc[lambda rows: rows["verdict"].isin(WENT_WRONG)]
    message = failed["error"].where(failed["verdict"] != SILENT, failed["silent_failure_reason"])
    message = message.fillna("unknown error").map(lambda text: cut_end(text, 300))
    failed = failed.assign(message=message, kind=failed["error_type"].fillna(message.map(message_pattern)))
    rows = []
    for _, group in failed.groupby(["verdict", "kind"]):
        functions = sorted(group["function_name"].dropna().unique())
        counts = {"steps": len(group), "histories": group["history"].nunique(), "functions": functions}
        rows.append(dict(group[["verdict", "kind", "error_category", "message"]].iloc[0]) | counts)
    return frame(sorted(rows, key=lambda row: -row["steps"]), table.FAILURE_KINDS)


def truncation(steps: pd.DataFrame) -> pd.DataFrame:
    """Estimate the share of steps reporting success whose stored result is cut, by type of result.

    Histories are weighted as in `success_rates`.

    Parameters
    ----------
    steps : DataFrame
        One row per step, such as `logs.steps`.

    Returns
    -------
    DataFrame
        result_type, n (steps), n_tasks, estimate, low, high (shares of cut results), method, target, warning.

    Examples
    --------
    >>> "estimate" in analysis.truncation(logs.steps)
    True
    """
    successful = reporting_success(steps)
    return _shares(successful.assign(value=successful["truncated"].astype("float64")), ["result_type"])


def reporting_success(steps: pd.DataFrame) -> pd.DataFrame:
    """Select the steps that report success, whether their results confirm it or not; copies are left out."""
    return originals(steps[steps["verdict"].isin(("success", SILENT)).to_numpy()])


def found(results: pd.DataFrame) -> pd.DataFrame:
    """Summarise each number that steps found: its median over histories, without copies.

    In each history, the last step of an analysis counts. If its steps differ in a setting, such as a condition, the
    last step with each setting counts.

    Parameters
    ----------
    results : DataFrame
        One row per finding of a step, such as `logs.results`.

    Returns
    -------
    DataFrame
        function_name, cell_type, method, category, quantity, histories (count), value, lowest, highest, terms.

    Examples
    --------
    >>> "histories" in analysis.found(logs.results)
    True
    """
    by = ["function_name", "cell_type", "method", "category"]
    rows = _with_settings(originals(results))
    for same in (["function_name", "parameters"], by):  # the last of equal calls, then of an analysis
        last = rows.groupby(["history", *same], dropna=False)["position"].transform("max")
        rows = rows[rows["position"] == last]
    numbers = rows[rows["term"].isna()].groupby([*by, "quantity"], dropna=False, sort=False)
    table = numbers.agg(
        histories=("history", "nunique"), value=("value", "median"), lowest=("value", "min"), highest=("value", "max")
    ).reset_index()
    terms = rows.dropna(subset="term").groupby(by, dropna=False, sort=False)["term"]
    names = terms.agg(lambda own: list(own.value_counts().index)).rename("terms").reset_index()
    table = table.merge(names, on=by, how="left")
    return table.sort_values("method", key=pd.isna, kind="stable", ignore_index=True)


def _with_settings(results: pd.DataFrame) -> pd.DataFrame:
    """Append to cell types the parameters in which steps of one history differ."""
    analyses = [results["function_name"], results["cell_type"]]
    parameters = {text: json.loads(text) for text in results["parameters"].unique()}
    shown = results["cell_type"]
    for name in dict.fromkeys(chain.from_iterable(parameters.values())):
        values = {text: _setting(name, own.get(name)) for text, own in parameters.items()}
        texts = results["parameters"].map(values)
        differ = texts.groupby([results["history"], *analyses], dropna=False).transform("nunique") > 1
        differ = differ.groupby(analyses, dropna=False).transform("any")
        is_added = differ & texts.ne("") & texts.ne(results["category"])
        shown = shown.mask(is_added, shown.str.cat(texts, sep=", ").fillna(texts))
    return results.assign(cell_type=shown)


def _setting(name: str, value: Any) -> str:
    """Format a parameter: a text unchanged, another value with the name of the parameter, a missing value as ""."""
    texts = [value] if isinstance(value, str) else value
    if isinstance(texts, list) and all(isinstance(one, str) for one in texts):
        return ", ".join(texts)
    return "" if value is None else f"{name}={json.dumps(value, ensure_ascii=False)}"


def coverage(histories: Sequence[History]) -> pd.DataFrame:
    """Return how each analysis of each cell type ended; if it had several steps, the best outcome counts.

    An analysis without a step is ``not run``. `process_cells` is listed only if it has a step, since no log shows
    whether a cell type can be divided further. If a history has more than `MOST_PAIRS` pairs of a cell type and an
    analysis, only pairs with a step are listed.

    Parameters
    ----------
    histories : sequence of History
        The histories, such as `logs.histories`.

    Returns
    -------
    DataFrame
        One row per history, cell type and analysis, with the columns `COVERAGE`.

    Examples
    --------
    >>> "status" in analysis.coverage(logs.histories)
    True
    """
    rows = []
    for history in histories:
        verdicts: dict[tuple[str, str], list[tuple[str, int | None]]] = {}
        types: dict[str, None] = {}
        for position, (record, evaluation) in enumerate(zip(history.records, history.evaluations, strict=True)):
            function = record["step"]["function_name"]
            if function == "process_cells" and record["success"] is True:
                types |= dict.fromkeys(history.readings[position].found["discovered_cell_types"])
            if is_talk(function) or history.options.is_plot(function):
                continue
            for cell_type in cell_types_of(record):
                types[cell_type] = None
                verdicts.setdefault((cell_type, function), []).append((evaluation["verdict"], position))
        analyses = dict.fromkeys(function for _, function in verdicts)
        every = product(types, analyses) if len(types) * len(analyses) <= MOST_PAIRS else verdicts
        for cell_type, analysis in every:
            ended = verdicts.get((cell_type, analysis), [])
            if not ended and analysis == "process_cells":
                continue
            best, first = min(ended or [(NOT_RUN, None)], key=lambda pair: STATUSES.index(pair[0]))
            row: dict[str, Any] = {
                "history": history.label,
                "cell_type": cell_type,
                "analysis": analysis,
                "status": best,
            }
            if first is not None:
                row |= {"run_id": history.run_id, "position": first, "turn": history.turns_of_results[first]}
            rows.append(row | {"steps": len(ended)})
    return frame(rows, table.COVERAGE)


def adherence(histories: Sequence[History]) -> pd.DataFrame:
    """Return the outcome of each planned step, for histories with a stored plan (dumped states and checkpoints).

    Parameters
    ----------
    histories : sequence of History
        The histories, such as `logs.histories`.

    Returns
    -------
    DataFrame
        One row per planned step, with the columns `ADHERENCE`.

    Examples
    --------
    >>> "history" in analysis.adherence(logs.histories)
    True
    """
    rows = [{"history": history.label, **step._asdict()} for history in histories for step in plan_adherence(history)]
    return frame(rows, table.ADHERENCE)


def describe_histories(histories: Sequence[History], source: str | Sequence[str] = "", chosen: Notes = NO_NOTES) -> str:
    """Describe what was read and what the samples are, and append the notes in `chosen`."""
    records = sum(len(history.records) for history in histories)
    text = f"{counted_noun(len(histories), 'history')} with {counted_noun(records, 'record')} of steps."
    if is_sample(source):
        text += f" {SAMPLES}"
    return " ".join([text, *map(sentence, chosen.notes)])


def answer_table(overview: pd.DataFrame) -> pd.DataFrame:
    """Return the confirmed and reported success of each history, the lowest first, with counts of its failures."""
    confirmed = {f"confirmed_{end}": end for end in ("estimate", "low", "high")}
    kept = ["history", *confirmed, "reported_estimate", "reported_low", "reported_high", "n", SILENT, "loops", "cut"]
    return overview[kept].rename(columns=confirmed)


def numbered(table: pd.DataFrame, position: str = "record") -> pd.DataFrame:
    """Number records and steps from 1 for display: `record` and `step` replace positions from 0."""
    names = {name: shown for name, shown in (("position", position), ("step_index", "step")) if name in table}
    return table.assign(**{name: table[name] + 1 for name in names}).rename(columns=names)


def short_steps(steps: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of steps that fit on a page; `remark` is the error or, without one, the summary."""
    remarks = steps[["silent_failure_reason", "error", "skip_reason", "summary"]]
    first = ["position", "step_index", "attempt", "function_name", "verdict"]
    last = ["result_type", "truncated", "cell_type", "run_id", "turn"]
    remark = remarks.bfill(axis="columns").iloc[:, 0].map(lambda text: cut_end(text, 300), na_action="ignore")
    return numbered(steps[first].assign(remark=remark).join(steps[last]))


def findings(logs: StepsLogs) -> list[Finding]:
    """Find how many steps succeeded, how many only reported success, what failed, and which results were cut."""

    def examples(some: pd.DataFrame) -> tuple[Example, ...]:
        first = some.drop_duplicates("function_name").head(MOST_EXAMPLES)
        rows = zip(*(first[name] for name in ("position", "function_name", "run_id", "turn")), strict=True)
        return tuple(Example(f"record {place + 1}, {function}", run, turn=turn) for place, function, run, turn in rows)

    steps, n = originals(logs.steps), len(originals(logs.runs))
    verdicts, rates = steps["verdict"], success_rates(steps, []).set_index("success")
    results = [Finding("no_steps", sections.SUCCESS, {"n_histories": n}, template=words.NO_STEPS)]
    if len(rates):
        silent = verdicts.eq(SILENT)
        wrong = silent if silent.any() else ~verdicts.isin(("success", *NOT_JUDGED))
        both = {which: rates.loc[which].to_dict() for which in (CONFIRMED, REPORTED)}
        n_judged = steps.loc[~verdicts.isin(NOT_JUDGED), "history"].nunique()
        values = {"n": int(rates["n"].iloc[0]), "n_histories": n_judged, "silent": int(silent.sum()), **both}
        results = [Finding("steps", sections.SUCCESS, values, examples(steps[wrong]), words.steps)]
    if len(kinds := failure_kinds(steps)):
        ways = list(kinds.head(2)[["kind", "steps"]].itertuples(index=False, name=None))
        values = {"n": int(kinds["steps"].sum()), "ways": len(kinds), "first": ways}
        failed = steps[verdicts.isin(("failure", CRITICAL)).to_numpy()]
        results.append(Finding("failures", "failures", values, examples(failed), words.failures))
    successful = reporting_success(steps)
    if len(cut := successful[successful["truncated"]]):
        values = {"cut": len(cut), "n": len(successful)}
        results.append(Finding("cut", "cut", values, examples(cut), words.CUT))
    if n_copies := len(logs.runs) - n:
        values = {"copies": n_copies, "n": len(logs.runs)}
        results.append(Finding("same_executions", sections.DATA_QUALITY, values, template=words.SAME_EXECUTIONS))
    return [*results, Finding("files", sections.DATA_QUALITY, {"files": files_of(logs.ledger)})]


def open_checks(checks: pd.DataFrame) -> pd.DataFrame:
    """Return the checks that did not pass or could not be computed."""
    selected = checks[checks["severity"].isin(("warning", "error", "critical")).to_numpy()]
    return numbered(selected[["position", "function_name", "name", "severity", "label", "score", "explanation"]])
