"""Estimate and count steps, from frames to frames, and measure what the old storage would have lost."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from evalkit.io import SourceError, escape_surrogates, frame
from evalkit.io.text import message_pattern
from evalkit.stats import Estimate, estimate_by, proportion_interval
from evalkit.steps.format import DEFAULTS, NOT_JUDGED, SILENT, VERDICTS, WENT_WRONG, Options, number, truncated
from evalkit.steps.history.records import History, each_record, normalise_record, unique_labels
from evalkit.steps.history.results import content, read_annotation
from evalkit.steps.table import FAILURE_KINDS, OVERVIEW, STORAGE

REPORTED, CONFIRMED = "reported", "confirmed"  # by the record; and not contradicted by the result


def success_rates(steps: pd.DataFrame, by: str | Sequence[str] = "history") -> pd.DataFrame:
    """Estimate the share of steps that succeeded: as reported, and without silent failures.

    Skipped steps, and those whose record does not say, are left out; every attempt counts. Where groups span several
    histories, these (or the clusters that `load` was given) weigh equally, as in `evalkit.compare`: the estimate is the
    mean of their shares. Within one history steps are taken as independent, which makes its interval too narrow if one
    failure causes the next. Histories are distinguished by source and thread, never by their labels alone. `by` names
    columns of the frame, or ``history``; an empty list pools all steps. Columns: those of `by`, `success` (reported or
    confirmed), n, n_clusters, estimate, low, high, method, warning.
    """
    by = [by] if isinstance(by, str) else list(by)
    counted = with_labels(steps)
    counted = counted[~counted["verdict"].isin(NOT_JUDGED).to_numpy()]
    ended = {REPORTED: counted["success"], CONFIRMED: counted["verdict"].eq("success")}
    both = pd.concat([counted.assign(success=name, value=ok.astype("float64")) for name, ok in ended.items()])
    return _shares(both, [*by, "success"])


def _shares(steps: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Estimate the mean of `value` by group: over steps or, where groups span several histories, over their shares."""
    if "history" in by or steps["history"].nunique() < 2:
        return estimate_by(steps, by, "value")
    clusters = ["cluster"] * ("cluster" in steps)
    of_history = steps.groupby([*by, "history", *clusters], dropna=False)["value"].agg(["mean", "size"]).reset_index()
    given = {name: of_history[name].fillna(of_history["history"]) for name in clusters}
    table = estimate_by(of_history.assign(**given), by, "mean", clusters="cluster" if clusters else None, kind="score")
    n: Any = of_history.groupby(by, dropna=False)["size"].sum().to_numpy() if by else len(steps)
    return table.assign(n=n).astype({"n": table["n"].dtype})


def confirmed_success(steps: pd.DataFrame) -> Estimate:
    """Estimate the share of a history's steps that succeeded without silent failures; see `success_rates`."""
    rates = success_rates(steps, []).set_index("success")
    if CONFIRMED not in rates.index:
        return proportion_interval(0, 0)
    return Estimate(**rates.loc[CONFIRMED, list(Estimate._fields)])


def overview(steps: pd.DataFrame, histories: Sequence[History] = (), options: Options = DEFAULTS) -> pd.DataFrame:
    """Summarise each history in a row: the lowest confirmed success first, and the longer of equal ones.

    The columns are those of `OVERVIEW`: rates with intervals as `success_rates` returns them, missing if no step can be
    judged; then counts. Members of `histories` without records have no rows in `steps`, but one here.
    """
    steps = with_labels(steps)
    table = _summarise(steps, success_rates(steps), _labels(steps, histories), options)
    order = ["confirmed_estimate", "n", "history"]
    return table.sort_values(order, ascending=[True, False, True], na_position="last", ignore_index=True)


def total(steps: pd.DataFrame, histories: Sequence[History] = (), options: Options = DEFAULTS) -> pd.DataFrame:
    """Summarise several histories together in one row with the columns of `overview`; a single one gives no row.

    Histories weigh equally.
    """
    steps = with_labels(steps)
    if (n := len(_labels(steps, histories))) < 2:
        return frame([], OVERVIEW)
    name = f"all {n} histories"
    return _summarise(steps.assign(history=name), success_rates(steps, []).assign(history=name), [name], options)


def focus(steps: pd.DataFrame, histories: Sequence[History], label: str = "") -> list[History]:
    """Return the history to show in detail, if any: the one with this label, else the first of `overview`.

    Raises SourceError if no history has this label.
    """
    by_label = {history.label: history for history in histories}
    if label and label not in by_label:
        known = ", ".join(list(by_label)[:5]) + ", …" * (len(by_label) > 5)
        raise SourceError(f"no history is called {label!r}: there is {known or 'none'}")
    return [by_label[label or overview(steps, histories)["history"].iloc[0]]] if by_label else []


def _labels(steps: pd.DataFrame, histories: Sequence[History]) -> list[str]:
    """List the labels of a frame, then those of histories without records."""
    return list(dict.fromkeys([*steps["history"], *(history.label for history in histories if not history.records)]))


def with_labels(steps: pd.DataFrame) -> pd.DataFrame:
    """Return a frame of steps in which every history has a distinct label in the column `history`.

    Labels from `load` are kept if they are distinct; if not, as in a frame concatenated from several loads, all are
    relabelled.
    """
    if "history" in steps:
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
    return frame(out.rename_axis("history").reset_index().to_dict("records"), OVERVIEW)


def steps_of(steps: pd.DataFrame, histories: Sequence[History]) -> pd.DataFrame:
    """Return the rows of a frame that belong to these histories."""
    wanted = {(escape_surrogates(history.source), escape_surrogates(history.thread)) for history in histories}
    pairs = zip(steps["source"], steps["thread"], strict=True)
    return steps[pd.Series([pair in wanted for pair in pairs], index=steps.index, dtype=bool)]


def failure_kinds(steps: pd.DataFrame) -> pd.DataFrame:
    """Sort failures and silent failures by kind, the most frequent first; columns as in `FAILURE_KINDS`.

    The kind is the class of the error if recorded, else the message without what varies in it, so that
    ``No cells of type 'B'`` and ``No cells of type 'T'`` are one.
    """
    failed = with_labels(steps)
    failed = failed[steps["verdict"].isin(WENT_WRONG).to_numpy()]
    messages = failed["error"].where(failed["verdict"] != SILENT, failed["silent_failure_reason"])
    failed = failed.assign(message=messages.fillna("unknown error").str.slice(0, 300))
    failed = failed.assign(
        kind=failed["error_type"].where(failed["error_type"].notna(), failed["message"].map(message_pattern))
    )
    rows = [
        {
            **group[["verdict", "kind", "error_category", "message"]].iloc[0],
            "steps": len(group),
            "histories": group["history"].nunique(),
            "functions": sorted(group["function_name"].dropna().unique()),
        }
        for _, group in failed.groupby(["verdict", "kind"], sort=True)
    ]
    return frame(sorted(rows, key=lambda row: -row["steps"]), FAILURE_KINDS)


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

    For every successful step whose result was stored unchanged (shape B), the old storage is applied to the same
    result, and both are read back by the same reader: numbers, items (terms, genes, named groups) and characters, with
    the columns of `STORAGE`.
    """
    rows = []
    for ids, record in each_record(histories):
        kept = record["shape"] == "B" and record["result_type"] in ("structured", "visualization")
        if not kept or record["success"] is not True or not record["result"]:
            continue
        old = normalise_record(old_flat(record["step"], record["result"], True, options=options), options)
        row = {**ids, "result_type": record["result_type"], "cut": truncated(old)}
        for which, version in (("new", record), ("old", old)):
            values = list(_values(content(version)))
            items = len(read_annotation(version).groups)  # those named by an annotation, else terms, genes, …
            row[f"characters_{which}"] = len(str(version["result"]))
            row[f"numbers_{which}"] = sum(number(value) is not None for value, _ in values)
            row[f"items_{which}"] = items or sum(listed and isinstance(value, str) for value, listed in values)
        rows.append(row)
    return frame(rows, STORAGE)


def _values(structure: Any, listed: bool = False) -> Iterator[tuple[Any, bool]]:
    """Yield the single values in a structure, and whether they stand in a list."""
    if isinstance(structure, (Mapping, list)):
        for item in structure if isinstance(structure, list) else structure.values():
            yield from _values(item, isinstance(structure, list))
    else:
        yield structure, listed


def old_flat(
    step: Mapping[str, Any],
    result: Any,
    success: bool,
    error: Any = None,
    timestamp: str | None = None,
    options: Options = DEFAULTS,
) -> dict[str, Any]:
    """Store a step on disk as shape C did: the first 500 characters of any result, called a summary."""
    return {
        "timestamp": timestamp,
        "function_name": step.get("function_name"),
        "parameters": step.get("parameters", {}),
        "success": success,
        "error": None if error is None else str(error),
        "result_summary": str(result)[: options.text_limit] if result else None,
    }
