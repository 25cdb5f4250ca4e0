"""Make findings about failures: loops, the main reasons, and how failed runs differ from successful runs."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from evalkit._text import Part, Parts, fill, sentence
from evalkit.compare.ranking import leaderboard, ranked
from evalkit.failures import words
from evalkit.failures.contrasts import comparable, contrast
from evalkit.failures.failure_modes import (
    UNEXPLAINED,
    UNSEARCHED,
    Failed,
    error_groups,
    failed_runs,
    mode_shares,
    modes_of,
)
from evalkit.failures.search import events, search
from evalkit.kinds import Example, Finding, Logs, outcomes, sections

LONG_LOOP = 10  # minimum number of equal calls for a separate finding
MOST_SEARCHED = 20_000  # maximum number of runs to search in reports that only name the main reason


def findings(logs: Logs, compared: pd.DataFrame | None = None) -> list[Finding]:
    """Describe why runs fail in findings with examples, the most important first.

    Parameters
    ----------
    logs : Logs
    compared : DataFrame, optional
        Result of `contrast`; computed if not given.

    Returns
    -------
    list of Finding
        Long repetitions of one call, the main reasons, the most frequent modes by model, errors, and differences from
        successful runs.

    Examples
    --------
    >>> [finding.code for finding in failures.findings(logs)]
    ['reasons', 'mode', 'mode', 'errors', 'contrast']
    """
    failed = failed_runs(logs)
    compared = contrast(logs) if compared is None else compared
    return findings_of(logs, failed, modes_of(logs, failed.table), error_groups(logs), compared)


def findings_of(
    logs: Logs, failed: Failed, table: pd.DataFrame, groups: pd.DataFrame, compared: pd.DataFrame
) -> list[Finding]:
    """Make the result of `findings` from its tables: failed runs, their modes, groups of errors, and the contrast."""
    runs, rule = failed
    n_failed = table["run_id"].nunique()
    found = loops(logs, failed=failed)
    if not n_failed:
        text = words.UNKNOWN if rule == "unknown" else words.NOTHING
        found.insert(0, Finding("no_failures", sections.MODES, {}, (), text))
        if rule == "unknown" and outcomes(logs.runs).table["ended"].ne("").any():  # it is known how runs ended
            found.insert(0, ranked(leaderboard(logs.runs))._replace(section=sections.MODES))
        return found
    main = _reasons(table, rule)
    found.append(main)
    if table["model_name"].nunique() > 1:
        shares = mode_shares(table)
        sizes = shares.groupby("model_name")["n"].first()
        for mode, _ in main.values["reasons"][:2]:
            own = shares[shares["mode"] == mode].set_index("model_name")[["runs", "estimate"]]
            own = own.reindex(sizes.index, fill_value=0).assign(n=sizes)  # also models without this mode
            rows = own.sort_values("estimate", ascending=False, kind="stable").reset_index().to_dict("records")
            found.append(Finding("mode", sections.MODES, {"mode": mode, "rows": rows}, (), words.mode_of_models))
    if len(groups):
        top = groups.iloc[0]
        values = {
            "calls": int(groups["calls"].sum()),
            "groups": len(groups),
            "rule": rule,
            "error": top["error"],
            "n": int(top["calls"]),
            "runs": int(top["runs"]),
        }
        example = Example("the error", top["run_id"], turn=int(top["turn"]))
        found.append(Finding("errors", "errors", values, (example,), words.errors))
    if rule != "events":
        own, across_models = comparable(runs[runs["run_id"].isin(search(logs).searched)])
        decided: list[Any] = compared[compared["decided"]].to_dict("records")
        counts = {"events": len(compared), "tested": int(compared["p_value"].notna().sum())}
        differing = {"decided": decided, **counts, "n_tasks": own["unit"].nunique(), "across_models": across_models}
        found.append(Finding("contrast", "contrast", differing, (), words.contrasts))
    return found


def _reasons(table: pd.DataFrame, rule: str) -> Finding:
    """Make the finding on the modes that lead most often, with an example of each."""
    lead = table[table["leads"]]
    counts: dict[Any, int] = lead["mode"].value_counts().to_dict()
    reasons = [(mode, n) for mode, n in counts.items() if mode not in (UNEXPLAINED, UNSEARCHED)]
    first = lead.drop_duplicates("mode").set_index("mode")
    examples = [Example(mode, first["run_id"][mode], turn=int(first["turn"][mode])) for mode, _ in reasons[:3]]
    links = {mode: {"leading_mode": mode} for mode in counts}
    values = {
        "failed": len(lead),
        "rule": rule,
        "reasons": reasons,
        "unexplained": counts.get(UNEXPLAINED, 0),
        "unsearched": counts.get(UNSEARCHED, 0),
    }
    return Finding("reasons", sections.MODES, values, tuple(examples), words.leading, links)


def loops(logs: Logs, failed: Failed | None = None) -> list[Finding]:
    """Make a finding on failed runs that repeat one call many times, if any do; without outcomes, on all runs."""
    runs, rule = failed or failed_runs(logs)
    if rule == "unknown":
        runs = logs.runs
    elif rule != "events":
        runs = runs[runs["failed"]]
    found = events(logs)
    is_repeat = found["event"].isin(["repeated_call", "retry_unchanged"])
    repeats = found[is_repeat & found["run_id"].isin(set(runs["run_id"]))]
    repeats = repeats.assign(times=pd.to_numeric(repeats["detail"], errors="coerce"))
    long = repeats[repeats["times"] >= LONG_LOOP].sort_values("times", ascending=False, kind="stable")
    if long.empty:
        return []
    ids = set(long["run_id"])
    by_model = runs.assign(has=runs["run_id"].isin(ids)).groupby("model_name", dropna=False)["has"]
    counts = by_model.agg(["sum", "size"]).sort_values("sum", ascending=False, kind="stable")
    model = counts.index[0] if len(counts) > 1 and isinstance(counts.index[0], str) else ""
    values = {
        "n": len(ids),
        "total": len(runs),
        "least": LONG_LOOP,
        "rule": rule,
        "most": int(long["times"].iloc[0]),
        "call": long["evidence"].iloc[0].partition(" → ")[0][:80],
        "model": model,
        "of_model": int(counts["sum"].iloc[0]),
        "n_model": int(counts["size"].iloc[0]),
    }
    examples = tuple(
        Example(f"{row['times']:.0f} times", row["run_id"], turn=row["turn"])
        for row in long.drop_duplicates("run_id").head(3).to_dict("records")
    )
    return [Finding("loops", sections.MODES, values, examples, words.loops)]


def _modes_to_name(logs: Logs) -> tuple[pd.DataFrame, str] | None:
    """Return the failure modes and the rule for failed runs, for pages on other questions.

    Returns None if runs can't be shown turn by turn, if logs only have scores, or if there are too many runs to search.
    """
    if logs.kind.transcript is None or len(logs.runs) > MOST_SEARCHED:
        return None
    runs, rule = failed_runs(logs)
    return None if rule == "score" else (modes_of(logs, runs), rule)


def with_leading_mode(runs: pd.DataFrame, logs: Logs) -> pd.DataFrame:
    """Add the column leading_mode to runs; it is empty if a run did not fail, and where `reasons` finds nothing."""
    named = _modes_to_name(logs)
    lead: Any = {} if named is None else named[0].drop_duplicates("run_id").set_index("run_id")["mode"]
    return runs.assign(leading_mode=runs["run_id"].map(lead).fillna(""))


def with_main_reason(
    table: pd.DataFrame, runs: pd.DataFrame, link: Callable[[pd.DataFrame], pd.DataFrame] | None = None
) -> pd.DataFrame:
    """Add the column main_reason to a table of models: the mode that leads most often, with its number of runs.

    `runs` is a result of `with_leading_mode`, and `link` is `Evidence.link`. Runs without a transcript are excluded. Of
    equally frequent modes, the first one counts, but ``unexplained`` comes last. If it leads, the next mode follows.
    """
    texts: dict[Any, str] = {}
    links: dict[Any, Parts] = {}
    lead = runs[~runs["leading_mode"].isin(["", UNSEARCHED])]
    for model, own in lead.groupby("model_name", observed=True)["leading_mode"]:
        counts = Counter(own)
        modes = sorted(counts, key=lambda mode: (-counts[mode], mode == UNEXPLAINED))
        modes = modes[:2] if modes[0] == UNEXPLAINED else modes[:1]
        labels = [f"{mode} ({counts[mode]} of {len(own)})" for mode in modes]
        texts[model] = ", ".join(labels)
        groups = pd.DataFrame({"model_name": model, "leading_mode": modes})
        if link is not None:
            groups = link(groups)
        if "href" in groups:
            parts = [Part(label, href) for label, href in zip(labels, groups["href"], strict=True)]
            links[model] = fill(", ".join(["{}"] * len(parts)), *parts)
    if texts:
        table = table.assign(main_reason=table["model_name"].map(texts).fillna(""))
    if links:
        table = table.assign(main_reason_href=table["model_name"].map(links))
    return table


def reasons(logs: Logs, models: Sequence[str] = ()) -> list[Finding]:
    """Return the finding on the main reasons of failure, for pages on other questions, or an empty list.

    `models` selects the models whose runs count, by default all.
    """
    named = _modes_to_name(logs)
    if named is None:
        return []
    table, rule = named
    if models:
        table = table[table["model_name"].isin(list(models))]
    return [_reasons(table, rule)] if (table["mode"] != UNSEARCHED).any() else []


def headline(table: pd.DataFrame) -> tuple[dict[str, float], str]:
    """Return the share of failed runs and the name of the mode that leads most often, for the index of reports.

    `table` is the result of `modes`. The share is empty if no rule explains a failed run.
    """
    shares = mode_shares(table, []).sort_values("leading", ascending=False, kind="stable")
    known = shares[shares["mode"] != UNEXPLAINED]
    if known.empty:
        return {}, "failed runs that rules explain"
    row = known.iloc[0]
    return {name: row[name] for name in ("estimate", "low", "high", "n")}, f"failed runs: {row['mode']}"


def describe_rule(logs: Logs, failed: Failed | None = None) -> str:
    """Describe which runs count as failed, with notes on their outcomes; empty for the rule "unknown" without notes."""
    judged = outcomes(logs.runs, kind=logs.kind).judged
    return " ".join([words.RULES[(failed or failed_runs(logs)).rule], *map(sentence, judged.notes)]).strip()
