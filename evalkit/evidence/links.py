"""Show tables of notebooks whose rows link to pages of runs, and pass on what these pages are made from.

A notebook links to pages beside those of reports, and outputs the data they are made from; the batch writes them once
for all its reports. Outside of a report there are no pages, and so no links.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
from IPython.display import display

from evalkit._names import check_columns
from evalkit.display import show_table, show_text
from evalkit.evidence.references import PairRef, RunList, RunRef, page_name, read_reference, reference

if TYPE_CHECKING:
    from evalkit.kinds import Logs

EVIDENCE = "application/vnd.evalkit.evidence+json"  # the data of pages of runs; never part of a report's page
VARIABLE = "EVALKIT_EVIDENCE"  # which runs of the current report get pages; empty outside of a report
LIMIT = 200  # runs that one report links to
MOST_PAIRS = 100  # that one table links to
PAIRS = "all-pairs"  # the anchor of the table of pairs
TO_PAGES = "../runs/"  # from a report's page

_linked: dict[str, None] = {}  # runs that this report links to so far; a report has a process of its own
_listed: set[int] = set()  # logs of which all runs were passed on


def show_runs(logs: "Logs", table: pd.DataFrame, caption: str = "", **options: Any) -> None:
    """Show a table whose rows are runs, or parts of runs; in a report each links to the page of its run.

    Parameters
    ----------
    logs : Logs
        The logs that the runs are from.
    table : DataFrame
        With the column `run_id`; with `turn` too, a row links to that turn. Neither is shown.
    caption : str
    **options
        As for `evalkit.show_table`.
    """
    check_columns(table, "run_id")
    chosen, shown = mode(), table.drop(columns="turn", errors="ignore")
    if not chosen or table.empty:
        show_table(shown, caption, **options)
        return
    known = [run_id for run_id in table["run_id"].dropna().unique() if take(run_id)]
    key = hand_over(logs, known, [], caption)
    if chosen == "all" and id(logs) not in _listed:
        _listed.add(id(logs))
        hand_over(logs, list(logs.runs["run_id"]), [], f"all runs of {logs.source}")
    hrefs = [address(run_id, turn, f"list={key}") if run_id in known else None for run_id, turn in with_turns(table)]
    _show_linked(shown, hrefs, caption, set(table["run_id"].dropna()) != set(known), **options)


def with_turns(table: pd.DataFrame) -> Iterator[tuple[Any, Any]]:
    """Yield the run of each row and its turn, missing where the table has none."""
    return zip(table["run_id"], table["turn"] if "turn" in table else [None] * len(table), strict=True)


def address(name: str, turn: Any, otherwise: str) -> str:
    """Return the address of a run's page, at a turn if it is known, else at another place."""
    return f"{TO_PAGES}{page_name(name)}#{otherwise if pd.isna(turn) else f't{int(turn)}'}"


def _show_linked(table: pd.DataFrame, hrefs: list[str | None], caption: str, is_limited: bool, **options: Any) -> None:
    show_table(table.assign(href=pd.Series(hrefs, table.index, dtype="object")), caption, **options)
    if is_limited:
        show_text(f"Rows without a link: a report links to at most {LIMIT} runs, a table to {MOST_PAIRS} pairs.")


def show_pairs(logs: "Logs", table: pd.DataFrame, caption: str = "", **options: Any) -> None:
    """Show a table whose rows are pairs of runs of one task; in a report each links to the two side by side.

    Parameters
    ----------
    logs, caption, options
        As for `show_runs`.
    table : DataFrame
        With the columns `run_id_a` and `run_id_b`, as returned by `evalkit.compare.discordant`; they are not shown.
    """
    check_columns(table, "run_id_a", "run_id_b")
    shown = table.drop(columns=["run_id_a", "run_id_b"])
    options = {"anchor": PAIRS, **options}
    if not mode() or table.empty:
        show_table(shown, caption, **options)
        return
    rows = list(zip(table["run_id_a"], table["run_id_b"], strict=True))
    pairs = [pair for pair in rows[:MOST_PAIRS] if take(*pair)]
    known = set(pairs)
    key = hand_over(logs, list(dict.fromkeys(run_id for pair in pairs for run_id in pair)), pairs, caption)
    hrefs = [address("--".join(pair), None, f"list={key}") if pair in known else None for pair in rows]
    _show_linked(shown, hrefs, caption, None in hrefs, **options)


def mode() -> str:
    """Return which runs of the current report get pages; empty if none do, and outside of a report."""
    chosen = os.environ.get(VARIABLE, "")
    return chosen if chosen in ("linked", "all") else ""


def take(*run_ids: str) -> bool:
    """Add runs to those that the report links to; False if that would exceed the limit."""
    if len(_linked.keys() | set(run_ids)) > LIMIT:
        return False
    _linked.update(dict.fromkeys(run_ids))
    return True


def hand_over(logs: "Logs", ids: Sequence[str], pairs: Sequence[tuple[str, str]], title: str) -> str:
    """Output the data of pages of runs and pairs, and the table of this title as a list of them; return its key."""
    wanted = logs.runs[logs.runs["run_id"].isin(set(ids))]
    runs = {run["run_id"]: reference(logs, run) for run in wanted.to_dict("records")}
    complete = [pair for pair in pairs if runs.keys() >= set(pair)]
    members = ["--".join(pair) for pair in complete] if pairs else [run_id for run_id in ids if run_id in runs]
    pages = [page_name(member) for member in members] if title else []
    key = hashlib.blake2b("\0".join([title, *pages]).encode(errors="replace"), digest_size=5).hexdigest()
    data = {"runs": list(map(list, runs.values())), "pairs": complete, "title": title, "members": pages, "key": key}
    display({EVIDENCE: data, "text/plain": f"{len(runs)} runs with links to their pages"}, raw=True)
    return key


def read_handed_over(given: Sequence[Any], page: str) -> tuple[dict[str, RunRef], list[PairRef], list[RunList]]:
    """Read the data that the notebook of a report passed on; malformed items are left out.

    Parameters
    ----------
    given : sequence
        Values of `EVIDENCE` in its outputs.
    page : str
        The report's page, relative to the pages of runs.

    Returns
    -------
    runs : dict of str to RunRef
        Keyed by the names of their pages.
    pairs : list of PairRef
    lists : list of RunList
    """
    runs: dict[str, RunRef] = {}
    pairs, lists = [], []
    for data in filter(lambda value: isinstance(value, Mapping), given):
        parsed = [run for value in _list(data.get("runs")) if (run := read_reference(value))]
        by_id = {run.run_id: run for run in parsed}
        runs |= {run.page: run for run in parsed}
        named = (pair for pair in _list(data.get("pairs")) if isinstance(pair, list) and len(pair) == 2)
        ids = [(a, b) for a, b in named if isinstance(a, str) and isinstance(b, str) and {a, b} <= by_id.keys()]
        resolved = [PairRef(by_id[a], by_id[b]) for a, b in ids]
        known = {run.page for run in parsed} | {pair.page for pair in resolved}
        members = [member for member in _list(data.get("members")) if isinstance(member, str) and member in known]
        pairs += resolved
        if members:
            lists.append(RunList(str(data.get("title") or "a table"), page, members, str(data.get("key"))))
    return runs, pairs, lists


def _list(value: Any) -> list:
    return value if isinstance(value, list) else []
