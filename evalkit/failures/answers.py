"""Findings about failures: loops, the main reasons, what differs between failed and successful runs."""

import pandas as pd

from evalkit.failures import words
from evalkit.failures.contrast import contrast
from evalkit.failures.events import events
from evalkit.failures.modes import UNEXPLAINED, failed_runs, leading_modes, mode_shares, modes
from evalkit.kinds import Example, Finding, Logs

LONG_LOOP = 10  # equal calls that are a finding of their own
MODES, CONTRAST, EVENTS = "Why do runs fail?", "What differs from successful runs", "Events"  # headings of sections


def findings(logs: Logs, compared: pd.DataFrame | None = None) -> list[Finding]:
    """Describe why runs fail, the most important first, with an example of each.

    Parameters
    ----------
    logs : Logs
    compared : DataFrame, optional
        As from `contrast`, which is made if it is not given.

    Returns
    -------
    list of Finding
        Long repetitions of one call, the main reasons, the most frequent modes by model, and what differs from
        successful runs.
    """
    runs, rule = failed_runs(logs)
    table = modes(logs)
    n_failed = table["run_id"].nunique()
    found = (
        []
        if n_failed
        else [Finding("no_failures", MODES, {}, (), words.UNKNOWN if rule == "unknown" else words.NOTHING)]
    )
    found += _loops(logs, runs, rule)
    if not n_failed:
        return found
    lead = table[table["leads"]]
    counts = lead["mode"].value_counts()
    reasons = [(str(mode), int(n)) for mode, n in counts.items() if mode != UNEXPLAINED]
    unexplained = int(counts.get(UNEXPLAINED, 0))
    first = lead.drop_duplicates("mode").set_index("mode")
    examples = tuple(Example(mode, first["run_id"][mode], turn=int(first["turn"][mode])) for mode, _ in reasons[:3])
    values = {"failed": n_failed, "rule": rule, "reasons": reasons, "unexplained": unexplained}
    found.append(Finding("reasons", MODES, values, examples, words.leading))
    if table["model_name"].nunique() > 1:
        shares = mode_shares(table)
        for mode, _ in reasons[:2]:
            own = shares[shares["mode"] == mode].sort_values("estimate", ascending=False, kind="stable")
            rows = own[["model_name", "runs", "n"]].to_dict("records")
            found.append(Finding("mode", MODES, {"mode": mode, "rows": rows}, (), words.mode_of_models))
    compared = contrast(logs) if compared is None else compared
    if rule != "events":
        n_tasks = int(compared["n_tasks"].max()) if len(compared) else 0
        claimed = compared[compared["claimed"]].to_dict("records")
        differing = {"claimed": claimed, "tested": len(compared), "n_tasks": n_tasks}
        found.append(Finding("contrast", CONTRAST, differing, (), words.contrasts))
    return found


def _loops(logs: Logs, runs: pd.DataFrame, rule: str) -> list[Finding]:
    """Find failed runs, or all runs if nothing says which failed, that repeat one call many times."""
    failed = runs[runs["failed"]] if rule != "unknown" else logs.runs
    found = events(logs)
    repeats = found[found["event"].eq("repeated_call") & found["run_id"].isin(set(failed["run_id"]))]
    repeats = repeats.assign(times=pd.to_numeric(repeats["detail"], errors="coerce"))
    long = repeats[repeats["times"] >= LONG_LOOP].sort_values("times", ascending=False, kind="stable")
    if long.empty:
        return []
    ids = set(long["run_id"])
    model = (
        failed.assign(has=failed["run_id"].isin(ids)).groupby("model_name", dropna=False)["has"].agg(["sum", "size"])
    )
    top = model.sort_values("sum", ascending=False, kind="stable").head(1)
    several = len(model) > 1 and isinstance(top.index[0], str)
    values = {"n": len(ids), "failed": len(failed), "least": LONG_LOOP, "rule": rule}
    values |= {"most": int(long["times"].iloc[0]), "call": long["evidence"].iloc[0].partition(" → ")[0][:80]}
    values |= {
        "model": top.index[0] if several else "",
        "of_model": int(top["sum"].iloc[0]),
        "n_model": int(top["size"].iloc[0]),
    }
    examples = tuple(
        Example(f"{row['times']:.0f} times", row["run_id"], turn=row["turn"])
        for row in long.drop_duplicates("run_id").head(3).to_dict("records")
    )
    return [Finding("loops", MODES, values, examples, words.loops)]


def with_main_reason(table: pd.DataFrame, logs: Logs) -> pd.DataFrame:
    """Add to a table of models the column main_reason: the failure mode that leads most often, and in how many runs.

    Of models without a failed run, and of kinds without transcripts, it is empty.
    """
    if logs.kind.transcript is None:
        return table
    leading = leading_modes(modes(logs))
    texts = {row.model_name: f"{row.main_reason} ({row.runs} of {row.n})" for row in leading.itertuples()}
    return table.assign(main_reason=table["model_name"].map(texts).fillna(""))


def headline(table: pd.DataFrame) -> tuple[dict[str, float], str]:
    """Return the mode that leads most often, as the index of reports shows it: its share of failed runs, and its name.

    `table` is as from `modes`. Without failed runs there is no share.
    """
    shares = mode_shares(table, [])
    known = shares[shares["mode"] != UNEXPLAINED].sort_values("leading", ascending=False, kind="stable")
    if known.empty:
        return {}, "failed runs that rules explain"
    row = known.iloc[0]
    return {name: row[name] for name in ("estimate", "low", "high", "n")}, f"failed runs: {row['mode']}"


def describe_rule(logs: Logs) -> str:
    """Say which runs of logs count as failed."""
    return words.RULES[failed_runs(logs).rule]
