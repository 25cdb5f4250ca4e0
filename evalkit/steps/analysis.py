"""Estimate and count steps, from frames to frames, and measure what the old storage would have lost."""

from collections import Counter
from collections.abc import Sequence
from itertools import product, zip_longest
from typing import Any

import pandas as pd

from evalkit.io import SourceError, frame
from evalkit.io.text import message_pattern
from evalkit.stats import Estimate, compare_all, estimate_by, proportion_interval
from evalkit.steps import table
from evalkit.steps.format import (
    DEFAULTS,
    NOT_JUDGED,
    NOT_RUN,
    PSEUDO_STEPS,
    SILENT,
    STATUSES,
    VERDICTS,
    WENT_WRONG,
    Options,
    cell_types_of,
    number,
    truncated,
)
from evalkit.steps.judge import History, as_history, each_record, find_loops, plan_adherence
from evalkit.steps.normalise import normalise_record, to_jsonable, unique_labels
from evalkit.steps.results import read_result
from evalkit.steps.workflow import simulate_routing

MOST_PAIRS = 100_000  # of cell types and analyses of one history
REPORTED, CONFIRMED = "reported", "confirmed"  # by the record; and not contradicted by the result


def success_rates(steps: pd.DataFrame, by: str | Sequence[str] = "history") -> pd.DataFrame:
    """Estimate the share of steps that succeeded: as reported, and without silent failures.

    Skipped steps, and those whose record does not say, are left out; every attempt counts. Where groups span several
    histories, these (or the clusters that `load` was given) weigh equally: the estimate is the mean of their shares.
    Within one history steps are taken as independent, which makes its interval too narrow if one failure causes the
    next. `by` names columns of the frame; an empty list pools all steps. The column `success` is reported or confirmed.
    """
    steps = with_labels(steps)
    counted = steps[~steps["verdict"].isin(NOT_JUDGED).to_numpy()]
    ended = {REPORTED: counted["success"], CONFIRMED: counted["verdict"].eq("success")}
    both = pd.concat([counted.assign(success=name, value=ok.astype("float64")) for name, ok in ended.items()])
    return _shares(both, [*([by] if isinstance(by, str) else by), "success"])


def _shares(steps: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Estimate the mean of `value` by group: over steps or, where groups span several histories, over their shares."""
    if "history" in by or steps["history"].nunique() < 2:
        return estimate_by(steps, by, "value")
    clusters = ["cluster"] * ("cluster" in steps)
    of_history = steps.groupby([*by, "history", *clusters], dropna=False)["value"].agg(["mean", "size"]).reset_index()
    for name in clusters:
        of_history[name] = of_history[name].fillna(of_history["history"])
    rates = estimate_by(of_history, by, "mean", clusters="cluster" if clusters else None, kind="score")
    n: Any = of_history.groupby(by, dropna=False)["size"].sum().to_numpy() if by else len(steps)
    return rates.assign(n=n).astype({"n": rates["n"].dtype})


def confirmed_success(steps: pd.DataFrame) -> Estimate:
    """Estimate the share of a history's steps that succeeded without silent failures; see `success_rates`."""
    rates = success_rates(steps, []).set_index("success")
    if CONFIRMED not in rates.index:
        return proportion_interval(0, 0)
    return Estimate(**rates.loc[CONFIRMED, list(Estimate._fields)])


def overview(steps: pd.DataFrame, histories: Sequence[History] = (), options: Options = DEFAULTS) -> pd.DataFrame:
    """Summarise each history in a row (`OVERVIEW`): the lowest confirmed success first, and the longer of equal ones.

    Members of `histories` without records have no rows in `steps`, but one here.
    """
    steps = with_labels(steps)
    rows = _summarise(steps, success_rates(steps), _labels(steps, histories), options)
    order = ["confirmed_estimate", "n", "history"]
    return rows.sort_values(order, ascending=[True, False, True], na_position="last", ignore_index=True)


def total(steps: pd.DataFrame, histories: Sequence[History] = (), options: Options = DEFAULTS) -> pd.DataFrame:
    """Summarise several histories, which weigh equally, in one row with the columns of `overview`; one gives no row."""
    steps = with_labels(steps)
    name = f"all {len(_labels(steps, histories))} histories"
    rates = success_rates(steps, []).assign(history=name)
    several = [name] * (len(_labels(steps, histories)) > 1)
    return _summarise(steps.assign(history=name), rates, several, options)


def focus(steps: pd.DataFrame, histories: Sequence[History], label: str = "") -> list[History]:
    """Return the history to show in detail, if any: the one with this label, else the first of `overview`."""
    by_label = {history.label: history for history in histories}
    if label and label not in by_label:
        known = ", ".join(list(by_label)[:5]) + ", …" * (len(by_label) > 5)
        raise SourceError(f"no history is called {label!r}: there is {known or 'none'}")
    return [by_label[label or overview(steps, histories)["history"].iloc[0]]] if by_label else []


def _labels(steps: pd.DataFrame, histories: Sequence[History]) -> list[str]:
    """List the labels of a frame, then those of histories without records."""
    return list(dict.fromkeys([*steps["history"], *(history.label for history in histories if not history.records)]))


def with_labels(steps: pd.DataFrame) -> pd.DataFrame:
    """Relabel the histories of a frame if their labels are not distinct, as in one concatenated from several loads."""
    known = steps[["history", "source", "thread"]].drop_duplicates()
    if known["history"].is_unique and not known.duplicated(["source", "thread"]).any():
        return steps
    pairs = list(zip(steps["source"], steps["thread"].fillna(""), strict=True))
    labels = unique_labels(pairs)
    return steps.assign(history=pd.Series([labels[pair] for pair in pairs], index=steps.index, dtype="str"))


def _summarise(steps: pd.DataFrame, rates: pd.DataFrame, labels: Sequence[str], options: Options) -> pd.DataFrame:
    """Build one row per label from the rates and the counts of its steps."""
    looping = steps["attempt"].eq(options.loop_length) & steps["success"].eq(False).fillna(False)  # once per loop
    counts = pd.DataFrame({"records": 1, "loops": looping, "cut": steps["truncated"]}, index=steps.index)
    counts = counts.assign(**{verdict: steps["verdict"].eq(verdict) for verdict in VERDICTS}).astype("int64")
    out = counts.groupby(steps["history"].to_numpy()).sum().reindex(list(labels), fill_value=0)
    for which in (REPORTED, CONFIRMED):
        by_label = rates[rates["success"].eq(which)].set_index("history").reindex(list(labels))
        out = out.join(by_label[["estimate", "low", "high"]].add_prefix(f"{which}_"))
        out["n"], out["warning"] = by_label["n"].fillna(0), by_label["warning"].map(str, na_action="ignore")
    none = out["records"].map(lambda records: "no step can be judged" if records else "no records")
    out["warning"] = out["warning"].fillna(none)
    return frame(out.rename_axis("history").reset_index().to_dict("records"), table.OVERVIEW)


def steps_of(steps: pd.DataFrame, histories: Sequence[History]) -> pd.DataFrame:
    """Return the rows of a frame that belong to these histories."""
    wanted = {(history.source, history.thread) for history in histories}
    return steps[[pair in wanted for pair in zip(steps["source"], steps["thread"], strict=True)]]


def failure_kinds(steps: pd.DataFrame) -> pd.DataFrame:
    """Sort failures and silent failures by kind (`FAILURE_KINDS`), the most frequent first.

    The kind is the class of the error if recorded, else the message without what varies in it.
    """
    steps = with_labels(steps)
    failed = steps[steps["verdict"].isin(WENT_WRONG).to_numpy()]
    message = failed["error"].where(failed["verdict"] != SILENT, failed["silent_failure_reason"])
    message = message.fillna("unknown error").str.slice(0, 300)
    failed = failed.assign(message=message, kind=failed["error_type"].fillna(message.map(message_pattern)))
    rows = []
    for _, group in failed.groupby(["verdict", "kind"]):
        row = dict(group[["verdict", "kind", "error_category", "message"]].iloc[0])
        row |= {"steps": len(group), "histories": group["history"].nunique()}
        rows.append(row | {"functions": sorted(group["function_name"].dropna().unique())})
    return frame(sorted(rows, key=lambda row: -row["steps"]), table.FAILURE_KINDS)


def truncation(steps: pd.DataFrame, by: Sequence[str] = ("history", "result_type")) -> pd.DataFrame:
    """Estimate the share of successful steps whose stored result is cut, in the groups of `success_rates`."""
    successful = reporting_success(with_labels(steps))
    shares = _shares(successful.assign(value=successful["truncated"].astype("float64")), list(by))
    several = "history" not in by and successful["history"].nunique() > 1
    return shares if several else shares.drop(columns="n_clusters")


def reporting_success(steps: pd.DataFrame) -> pd.DataFrame:
    """Select the steps that report success, whether their results confirm it or not."""
    return steps[steps["verdict"].isin(("success", SILENT)).to_numpy()]


def storage_comparison(histories: Sequence[History], options: Options = DEFAULTS) -> pd.DataFrame:
    """Compare the old storage on disk with the new one, for the same executions: how much of each result survives.

    For every successful step whose result was stored unchanged (shape B), the old storage, shape C, is applied to the
    same result, and both are read back by the same reader: numbers, items (terms, genes, named groups) and characters,
    with the columns of `STORAGE`.
    """
    rows = []
    for ids, record, reading in each_record(histories):
        is_kept = record["shape"] == "B" and record["result_type"] in ("structured", "visualization")
        if not is_kept or record["success"] is not True or not record["result"]:
            continue
        flat = {key: record["step"].get(key) for key in ("function_name", "parameters")} | {"success": True}
        flat["result_summary"] = str(record["result"])[: options.text_limit]
        old = normalise_record(flat, options)
        row = {**ids, "result_type": record["result_type"], "cut": truncated(old)}
        for which, version, read in (("new", record, reading), ("old", old, read_result(old, options))):
            numbers, items, inner = 0, 0, [(False, read.value)]  # of single values: whether they stand in a list
            for is_listed, value in inner:  # grows by what is within
                if isinstance(value, dict):
                    inner += [(False, one) for one in value.values()]
                elif isinstance(value, list):
                    inner += [(True, one) for one in value]
                else:
                    numbers += number(value) is not None
                    items += is_listed and isinstance(value, str)
            groups = read.found.get("group_to_cell_type", ())  # named by an annotation; else terms, genes, …
            row |= {f"numbers_{which}": numbers, f"items_{which}": len(groups) or items}
            row[f"characters_{which}"] = len(str(version["result"]))
        rows.append(row)
    return frame(rows, table.STORAGE)


def enrichments(histories: Sequence[History]) -> pd.DataFrame:
    """List the enrichment of each step by method (`ENRICHMENTS`); methods rest on different p-values."""
    rows = []
    for ids, _, reading in each_record(histories, "perform_enrichment_analyses"):
        for name, method in reading.found.items():
            first = zip_longest(method["top_terms"][:3], method["p_values"][:3])
            top = [str(term) if p is None else f"{term or '?'} (p = {p:.2g})" for term, p in first]
            row = {"method": name.upper(), "listed": len(method["top_terms"]), "top_terms": top}
            rows.append({**ids, **row, "total_significant": method["total_significant"]})
    return frame(rows, table.ENRICHMENTS)


def annotations(histories: Sequence[History]) -> pd.DataFrame:
    """List the cell types that each annotation step discovered, and those expected (`ANNOTATIONS`)."""
    rows = []
    for ids, _, reading in each_record(histories, "process_cells"):
        evaluation = (reading.evaluation or {})["process_cells_evaluation"]
        row = {"status": evaluation["discovery_status"], "partial": evaluation["partial"]}
        row["discovered"] = evaluation["discovered_cell_types"]
        row |= {name: evaluation.get(f"{name}_children") or [] for name in ("expected", "missing", "unexpected")}
        rows.append(ids | row)
    return frame(rows, table.ANNOTATIONS)


def coverage(histories: Sequence[History], options: Options | None = None) -> pd.DataFrame:
    """Return for each cell type and analysis whether it was done (`COVERAGE`): the best outcome of its steps counts.

    Cell types are those a step names and those an annotation discovered, so an analysis that was never requested shows
    as ``not run``; of more than `MOST_PAIRS` pairs only those that were run are listed. Plots and talk are no analyses.
    """
    rows = []
    for history in (as_history(one, options) for one in histories):
        verdicts: dict[tuple[str, str], list[tuple[str, int | None]]] = {}
        types: dict[str, None] = {}
        for position, (record, evaluation) in enumerate(zip(history.records, history.evaluations, strict=True)):
            function = record["step"]["function_name"]
            if function == "process_cells" and record["success"] is True:
                types |= dict.fromkeys(history.readings[position].found["discovered_cell_types"])
            if function is None or function in PSEUDO_STEPS or history.options.is_plot(function):
                continue
            for cell_type in cell_types_of(record):
                types[cell_type] = None
                verdicts.setdefault((cell_type, function), []).append((evaluation["verdict"], position))
        analyses = dict.fromkeys(function for _, function in verdicts)
        every = product(types, analyses) if len(types) * len(analyses) <= MOST_PAIRS else verdicts
        for cell_type, analysis in every:
            ended = verdicts.get((cell_type, analysis), [])
            best, first = min(ended or [(NOT_RUN, None)], key=lambda pair: STATUSES.index(pair[0]))
            row = {"history": history.label, "cell_type": cell_type, "analysis": analysis, "status": best}
            rows.append(row | {"steps": len(ended), "position": first})
    return frame(rows, table.COVERAGE)


def loops(histories: Sequence[History], options: Options | None = None) -> pd.DataFrame:
    """List runs of failures of one call (`LOOPS`)."""
    rows = [{"history": h.label, **loop._asdict()} for h in histories for loop in find_loops(h, options)]
    return frame(rows, table.LOOPS)


def routing(histories: Sequence[History], options: Options | None = None) -> pd.DataFrame:
    """Return what the router would have done at each record; columns as `simulate_routing`, after `history`."""
    rows = [{"history": h.label, **row} for h in histories for row in simulate_routing(h, options=options)]
    return frame(rows, table.ROUTING)


def adherence(histories: Sequence[History], options: Options | None = None) -> pd.DataFrame:
    """Return the outcome of each planned step, for histories with a stored plan (dumped states and checkpoints)."""
    each = [(history.label, step) for history in histories for step in plan_adherence(history, options=options)]
    rows = [{"history": label, "function_name": step.call.function_name, **step._asdict()} for label, step in each]
    return frame(rows, table.ADHERENCE)


def changes(steps: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """Compare the steps of two histories, as `evalkit.steps.compare_histories`; an empty frame without a second one."""
    return compare_steps(steps, others) if len(others) else frame([], table.COMPARISON)


def compare_steps(*steps: pd.DataFrame) -> pd.DataFrame:
    """Compare two frames of steps, as `evalkit.steps.compare_histories`."""
    sides: list[dict[tuple, dict[str, Any]]] = [{}, {}]  # the last attempt of each run of a call
    for side, one in zip(sides, steps, strict=True):
        runs = Counter[tuple]()
        for row in to_jsonable(one):
            call = (row["function_name"], row["parameters"])
            runs[call] += row["attempt"] == 1
            side[(*call, runs[call])] = row
    rows = []
    for key in dict.fromkeys([*sides[0], *sides[1]]):
        a, b = (side.get(key, {}) for side in sides)
        before, after = a.get("verdict"), b.get("verdict")
        if before is None or after is None:
            change = "only in b" if before is None else "only in a"
        elif before == after:
            change = "same"
        else:
            change = "fixed" if after == "success" else "broken" if before == "success" else "changed"
        row = {"function_name": key[0], "cell_type": (a or b)["cell_type"], "run": key[2], "change": change}
        for name, step in (("a", a), ("b", b)):
            row |= {f"{column}_{name}": step.get(column) for column in ("verdict", "truncated", "total_significant")}
            row[f"attempts_{name}"] = step.get("attempt")
        rows.append(row)
    return frame(rows, table.COMPARISON)


def paired_success(table: pd.DataFrame, a: str = "a", b: str = "b") -> pd.DataFrame:
    """Compare the confirmed success of two histories, `a` and `b` by name, on the steps that both ran.

    The table is that of `changes`. Returns one row as `evalkit.stats.compare_all`, or none if they share no step. The
    target is new steps like these.
    """
    judged = table[["verdict_a", "verdict_b"]].set_axis([a, b], axis="columns").dropna()
    success = (judged[~judged.isin(NOT_JUDGED).any(axis="columns")] == "success").astype("float64")
    rows = success.rename_axis("step").reset_index().melt("step", var_name="history", value_name="success")
    return compare_all(rows, "history", "step", "success")
