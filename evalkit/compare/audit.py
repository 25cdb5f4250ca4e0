"""Audit a leaderboard with checks over the common frames, before somebody publishes or trusts it.

A check counts items that may be wrong, and may show how the ranking would change if they were treated differently.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

import pandas as pd

from evalkit._notes import NO_NOTES, note
from evalkit._text import as_list, counted_noun
from evalkit.compare import checks as _registered  # noqa: F401  registers the checks of this package
from evalkit.compare.check_registry import CHECKS, VERDICTS, Audited, Check, NotComputed, first_of
from evalkit.compare.ranking import Leaderboard, headline
from evalkit.kinds import Example, Finding, Logs, sections
from evalkit.kinds.findings import MOST_EXAMPLES
from evalkit.kinds.runs import Value


@dataclass(frozen=True, repr=False)
class Audit:
    """The result of an audit.

    The table has a row per check, the most serious first: check, question, verdict (fine, look, wrong, not computed),
    count (doubtful items) and n (items examined), noun, first (the first model of the alternative ranking), moved
    (number of models whose rank changes; missing without an alternative), notes, run_id (an example).
    """

    table: pd.DataFrame
    findings: list[Finding]  # the first one is the overall result
    board: Leaderboard  # the audited leaderboard

    @property
    def shown(self) -> pd.DataFrame:
        """The table for pages: check, question, verdict, found, alternative ranking, notes, run_id."""
        rows = []
        for row in self.table.to_dict("records"):
            ranking = "–"
            if pd.notna(row["moved"]):
                places = counted_noun(row["moved"], "model") + (" moves" if row["moved"] == 1 else " move")
                ranking = f"{row['first'] or 'none alone'} first, {places}" if row["moved"] else "unchanged"
            count = "–" if pd.isna(row["count"]) else f"{row['count']:,} of {counted_noun(row['n'], row['noun'])}"
            rows.append({**row, "found": count, "alternative ranking": ranking})
        names = ["check", "question", "verdict", "found", "alternative ranking", "notes", "run_id"]
        return pd.DataFrame(rows, columns=names)


def audit(logs: Logs, value: Value = "", runs: pd.DataFrame | None = None, checks: str | Sequence[str] = ()) -> Audit:
    """Run all checks, or the named ones, on logs or on some of their runs.

    Parameters
    ----------
    logs : Logs
    value : {"", "is_successful", "score"}
        As for `leaderboard`.
    runs : DataFrame, optional
        Rows of `logs.runs`; by default all.
    checks : sequence of str
        Names of checks; by default all.

    Returns
    -------
    Audit
        The results. A check that raises an error, or lacks the data it needs, has the verdict "not computed"; its
        notes give the reason.

    Raises
    ------
    ValueError
        For an unknown check.

    Examples
    --------
    >>> compare.audit(logs, checks=["copies", "names"]).table[["check", "verdict", "count", "n"]]
        check verdict  count    n
    0  copies    look      1  133
    1   names    fine      0    4
    """
    checks = as_list(checks)
    unknown = [name for name in checks if name not in CHECKS]
    if unknown:
        raise ValueError(f"no check {unknown[0]!r}; there are {', '.join(CHECKS)}")
    audited = Audited(logs, logs.runs if runs is None else runs, value)
    rows = [_result(one, audited) for one in CHECKS.values() if not checks or one.name in checks]
    rows.sort(key=lambda row: row["moved"] or 0, reverse=True)
    rows.sort(key=lambda row: VERDICTS.index(row["verdict"]))
    table = pd.DataFrame(rows).astype({"moved": "Int64", "count": "Int64", "n": "Int64"})
    leads = audited.first
    counts = {verdict: int(table["verdict"].eq(verdict).sum()) for verdict in VERDICTS}
    others = sorted({row["first"] for row in rows} - {"", leads})
    values = {"changes": int(table["moved"].gt(0).sum()), "checks": len(table), "verdicts": counts}
    values |= {"headline": headline(audited.board), "first": leads, "others": others}
    findings = [Finding("audit", sections.CHECKS, values)]
    if audited.board.outcomes.judged:
        findings.append(Finding("caveat", sections.CHECKS, {"notes": audited.board.outcomes.judged}))
    for row in rows:
        if row["verdict"] in ("wrong", "look"):
            named = ("check", "count", "n", "noun", "verdict", "first", "moved", "notes")
            values = {name: row[name] for name in named} | {"leads": leads}
            examples = tuple(Example(row["check"], run_id) for run_id in row["run_ids"])
            findings.append(Finding("check", sections.CHECKS, values, examples))
    return Audit(table.drop(columns="run_ids"), findings, audited.board)


def _result(one: Check, audited: Audited) -> dict[str, Any]:
    """Run one check, and return its row of the table with the ids of example runs."""
    row: dict[str, Any] = {"check": one.name, "question": one.question, "verdict": "not computed", "count": None}
    row |= {"n": None, "noun": one.noun, "first": "", "moved": None, "notes": NO_NOTES, "run_id": None, "run_ids": []}
    try:
        found = one.function(audited)
        order = found.order
        if found.count and found.alternative is not None:
            order = audited.estimates_of(found.alternative)
        run_ids = [] if found.runs is None else found.runs["run_id"].head(MOST_EXAMPLES).tolist()
        if found.verdict not in VERDICTS:
            raise ValueError(f"its verdict {found.verdict!r} is none of {', '.join(VERDICTS)}")
        row |= {"count": index(found.count), "n": index(found.n), "verdict": found.verdict if found.count else "fine"}
    except NotComputed as error:
        return row | {"notes": error.notes}
    except Exception as error:  # a user's check must not stop the audit
        cause = f"{type(error).__name__}: {error}"
        return row | {"notes": note("failed_check", "the check failed: {cause}", cause=cause)}
    if not found.count:
        return row
    row |= {"notes": found.notes, "run_ids": run_ids, "run_id": next(iter(run_ids), None)}
    if order is not None and len(order):
        is_same = first_of(order) == first_of(audited.estimates)
        row["first"] = audited.first if is_same else first_of(order)
        row["moved"] = moved(audited.estimates, order)
    return row


def moved(before: pd.Series, after: pd.Series) -> int:
    """Count the models that change rank or disappear between two sets of estimates; equal estimates share a rank."""
    both = before.index.intersection(after.index)
    ranks = [estimates[both].round(9).rank(ascending=False, method="min") for estimates in (before, after)]
    return int((ranks[0] != ranks[1]).sum()) + len(before) - len(both)
