"""Show tables of notebooks whose rows link to pages of runs, and pass on what these pages are made from.

A notebook links to pages beside those of reports, and outputs the data they are made from; the batch writes them once
for all its reports. Outside of a report there are no pages, and so no links.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
from IPython.display import display

from evalkit._names import check_columns
from evalkit.display import show_table, show_text
from evalkit.evidence.references import PairRef, RunList, RunRef, as_data, page_name, reference

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
    ids = [run_id for run_id in table["run_id"].dropna().unique() if take(run_id)]
    hand_over(logs, ids, [], caption)
    if chosen == "all" and id(logs) not in _listed:
        _listed.add(id(logs))
        hand_over(logs, list(logs.runs["run_id"]), [], f"all runs of {logs.source}")
    key, known = _key(caption, [page_name(run_id) for run_id in ids]), set(ids)
    turns = table["turn"] if "turn" in table else [None] * len(table)
    rows = zip(table["run_id"], turns, strict=True)
    ends = [(run_id, f"#list={key}" if pd.isna(turn) else f"#t{int(turn)}") for run_id, turn in rows]
    hrefs = [f"{TO_PAGES}{page_name(run_id)}{end}" if run_id in known else None for run_id, end in ends]
    show_table(shown.assign(href=pd.Series(hrefs, shown.index, dtype="object")), caption, **options)
    _say_limit(set(table["run_id"].dropna()) != known)


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
    hand_over(logs, list(dict.fromkeys(run_id for pair in pairs for run_id in pair)), pairs, caption)
    names, known = {pair: page_name("--".join(pair)) for pair in rows}, set(pairs)
    key = _key(caption, [names[pair] for pair in pairs])
    hrefs = [f"{TO_PAGES}{names[pair]}#list={key}" if pair in known else None for pair in rows]
    show_table(shown.assign(href=pd.Series(hrefs, shown.index, dtype="object")), caption, **options)
    _say_limit(None in hrefs)


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


def _say_limit(is_reached: bool) -> None:
    if is_reached:
        show_text(f"Rows without a link: a report links to at most {LIMIT} runs, a table to {MOST_PAIRS} pairs.")


def hand_over(logs: "Logs", ids: Sequence[str], pairs: Sequence[tuple[str, str]], title: str) -> None:
    """Output the data of pages of runs and pairs, and the table of this title as a list of them."""
    wanted = logs.runs[logs.runs["run_id"].isin(set(ids))]
    runs = {run["run_id"]: reference(logs, run) for run in wanted.to_dict("records")}
    complete = [pair for pair in pairs if all(run_id in runs for run_id in pair)]
    if not title:
        members = []
    elif pairs:
        members = [page_name("--".join(pair)) for pair in complete]
    else:
        members = [runs[run_id].page for run_id in ids if run_id in runs]
    about = {"runs": as_data(list(runs.values())), "pairs": complete, "title": title, "members": members}
    data = {**about, "key": _key(title, members)}
    display({EVIDENCE: data, "text/plain": f"{len(runs)} runs with links to their pages"}, raw=True)


def _key(title: str, members: Sequence[str]) -> str:
    """Return the key that identifies a list in an address."""
    return hashlib.blake2b("\0".join([title, *members]).encode(errors="replace"), digest_size=5).hexdigest()


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
    from evalkit.evidence.references import read_reference

    runs: dict[str, RunRef] = {}
    pairs, lists = [], []
    for data in given:
        if not isinstance(data, Mapping):
            continue
        parsed = [run for value in _list(data.get("runs")) if (run := read_reference(value))]
        by_id = {run.run_id: run for run in parsed}
        runs |= {run.page: run for run in parsed}
        named = [
            pair for pair in _list(data.get("pairs")) if isinstance(pair, list) and list(map(type, pair)) == [str, str]
        ]
        resolved = [PairRef(by_id[a], by_id[b]) for a, b in named if {a, b} <= by_id.keys()]
        known = {run.page for run in parsed} | {pair.page for pair in resolved}
        members = [member for member in _list(data.get("members")) if isinstance(member, str) and member in known]
        pairs += resolved
        if members:
            lists.append(RunList(str(data.get("title") or "a table"), page, members, str(data.get("key"))))
    return runs, pairs, lists


def _list(value: Any) -> list:
    return value if isinstance(value, list) else []
