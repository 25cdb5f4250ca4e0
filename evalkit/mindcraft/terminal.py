"""Terminal output for task runs."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

from evalkit._names import check_columns
from evalkit.io import SourceError, plain, short_paths, unescape_surrogates
from evalkit.io.screen import so_far
from evalkit.kinds import Logs, Look
from evalkit.kinds.findings import counted_noun
from evalkit.kinds.terminal import any_look_lines, file_lines, fit_table, key_of, names_of
from evalkit.mindcraft.format import UNKNOWN, CompletionStatus
from evalkit.mindcraft.original_scripts import COMMIT

if TYPE_CHECKING:
    import pandas as pd

MOST_NAME = 120  # characters of a name while following; a narrow terminal shows fewer
_SPARE = ("success", "broken", "partial", "no score", "timed out", "zero", "running")
SCRIPTS = {
    "evaluation": "evaluation_script.py",
    "crafting": "analyze_crafting_tasks.py",
    "analyse_results": "analyse_results.py",
    "cooking": "analyze_cooking_tasks.py",
    "construction": "analyze_construction_tasks.py",
}
GIVEN = {  # what each script is given for its first table
    "evaluation": "given all task folders of these types",
    "crafting": "given all crafting folders",
    "analyse_results": "given all crafting folders",
    "cooking": "the sums of all folders with cooking tasks",
    "construction": "given the folders with construction tasks of each model, with all that lies in them",
}
SHORT = {
    CompletionStatus.SUCCESS: "success",
    CompletionStatus.FAILED_PARTIAL_SCORE: "partial",
    CompletionStatus.FAILED_SCORE_ZERO: "zero",
    CompletionStatus.TIMED_OUT: "timed out",
    CompletionStatus.NO_SCORE_LOGGED: "no score",
    CompletionStatus.LOG_FILE_ERROR: "broken",
}


def describe(logs: Logs, views: Mapping[str, Any]) -> str:
    """Format the success rates and statuses of groups of runs, the ledger's summary and any other views.

    Parameters
    ----------
    logs : Logs
    views : mapping
        by (columns of the runs to group by; model_name by default), cooking, legacy.

    Raises
    ------
    SourceError
        If there is no such column.
    """
    from evalkit.mindcraft.analysis.rates import overview

    by = list(dict.fromkeys(views.get("by") or ["model_name"]))
    runs = _with_groups(logs.runs, by)
    table = overview(runs, by)
    names = _group_names(table, by)
    rows = [_overview_cells(row, names) for row in table.to_dict("records")]
    lines = _table(rows, len(by)) if rows else ["no runs"]
    sections = ["\n".join([*lines, *file_lines(logs.ledger, len(runs)), *_notes(runs)])]
    sections += [cooking_text(logs.runs)] * bool(views.get("cooking"))
    sections += [legacy_text(logs)] * bool(views.get("legacy"))
    return "\n\n".join(sections)


def progress(look: Look, options: Mapping[str, Any]) -> tuple[str, bool]:
    """Format the progress of each model, and the rates of its finished runs.

    A run is finished once one of its logs holds a final message, or once none has changed for as long as the task may
    take. Until then it is running, and counts in no rate.
    """
    logs = look.logs
    by = list(dict.fromkeys(options.get("by") or ["model_name"]))
    runs = _with_groups(logs.runs, by).assign(_running=_running(look))
    done = _tasks_done(runs, look.expected, len(logs.definitions))
    table = fit_table(_progress_rows(runs, by, done), left=len(by), spare=_SPARE, width=look.width)
    n_done, expected = done["done"].sum(), done["expected"].sum(skipna=False)
    n_running = int(runs["_running"].sum())
    total = f"\ntotal: {so_far(n_done, expected)} tasks done, {counted_noun(n_running, 'run')} running"
    complete = bool((done["done"] >= done["expected"]).all()) and not n_running
    return "\n".join([table, total, *any_look_lines(runs[~runs["_running"]], look.width), *_notes(runs)]), complete


def _running(look: Look) -> "list[bool]":
    """Return which runs are still being written."""
    logs = look.logs
    paths = logs.agents.groupby("run_id")["source"].apply(list).to_dict()
    ended = logs.agents.groupby("run_id")["final_system_message"].any()
    running = []
    for run in logs.runs[["run_id", "source", "timeout"]].itertuples(index=False):
        idle = run.timeout if look.idle is None else look.idle
        run_paths = map(unescape_surrogates, paths.get(run.run_id, [run.source]))
        is_quiet = all(path not in look.writing and look.quiet(path) >= idle for path in run_paths)
        running.append(not is_quiet and not ended.get(run.run_id, False))
    return running


def _tasks_done(runs: "pd.DataFrame", expected: int | None, n_definitions: int) -> "pd.DataFrame":
    """Count for each model the tasks that are done (some run finished, none running), and those expected."""
    import pandas as pd

    rows: dict[Any, dict[str, float]] = {}
    wanted: float
    for model, group in runs.groupby("model_name"):
        totals = group.groupby("experiment_folder")["experiment_total"].max()
        if expected is not None:
            wanted, keys = expected, ["task_id"]
        elif totals.notna().all():
            wanted, keys = int(totals.sum()), ["experiment_folder", "task_id"]
        else:
            wanted, keys = n_definitions or math.nan, ["task_id"]
            group = group[group["has_definition"]] if n_definitions else group
        rows[model] = {"done": int((~group.groupby(keys)["_running"].any()).sum()), "expected": wanted}
    return pd.DataFrame.from_dict(rows, orient="index").astype({"done": "int64", "expected": "float64"})


def _progress_rows(runs: "pd.DataFrame", by: list[str], done: "pd.DataFrame") -> list[dict[str, str]]:
    """Return the rows of the table: rates of the finished runs, and how many are running."""
    from evalkit.mindcraft.analysis.rates import overview

    running = runs.groupby(by, dropna=False)["_running"].sum().rename("running").reset_index()
    finished = runs[~runs["_running"]]
    counts = ["n", *map(str, SHORT)]
    if finished.empty:
        table = running.assign(**dict.fromkeys(counts, 0), estimate=math.nan, low=math.nan, high=math.nan)
    else:
        table = overview(finished, by).merge(running, on=by, how="outer").fillna(dict.fromkeys(counts, 0))
        table = table.sort_values("estimate", ascending=False, kind="stable")
    rows, names = [], _group_names(table, by, MOST_NAME)
    by_model = by == ["model_name"]
    one_each = by_model and (table["n"].to_numpy() == done["done"].reindex(table["model_name"]).to_numpy()).all()
    for row in table.astype(dict.fromkeys(counts, "int64")).to_dict("records"):
        cells = _overview_cells(row, names)
        head = {column: cells[column] for column in by}
        if by_model:
            head["tasks"] = so_far(*done.loc[row["model_name"], ["done", "expected"]])
            if one_each:  # one run per task: no need to show the number twice
                del cells["n"]
        rows.append({**head, "running": str(row["running"]), **cells})
    return rows


def cooking_text(runs: "pd.DataFrame") -> str:
    """Format cooking success by model and number of blocked agents, with overall rows, and the same for each item."""
    from evalkit.mindcraft.analysis.task_types import cooking_item_table, cooking_table

    table = cooking_table(runs)
    if table.empty:
        return "No cooking run, Hell's Kitchen left out."
    by = ["model_name", "n_blocked_agents"]
    lines = ["Cooking by number of agents without access to the recipe, Hell's Kitchen left out:", ""]
    lines += _table(_rate_rows(table, by), len(by))
    for item, rows in cooking_item_table(runs).sort_values(["item", *by]).groupby("item"):
        lines += ["", f"{plain(item)}:", "", *_table(_rate_rows(rows, by), len(by))]
    return "\n".join(lines)


def _rate_rows(table: "pd.DataFrame", by: Sequence[str]) -> list[dict[str, str]]:
    names = _group_names(table, by)
    return [{**_keys(row, names), **_rate_cells(row)} for row in table.to_dict("records")]


def _table(rows: list[dict[str, str]], left: int) -> list[str]:
    """Format rows below their headers, the first columns aligned left, the others right."""
    align = ["left"] * left + ["right"] * (len(rows[0]) - left)
    return tabulate(rows, "keys", tablefmt="simple", colalign=align, disable_numparse=True).split("\n")


def _with_groups(runs: "pd.DataFrame", by: Sequence[str]) -> "pd.DataFrame":
    """Return runs with columns that can be grouped by: lists become texts.

    Raises
    ------
    SourceError
        If there is no such column.
    """
    _check_columns(runs, by)
    return runs.assign(**{c: runs[c].map(_joined) for c in by if runs[c].dtype == object})


def _group_names(table: "pd.DataFrame", by: Sequence[str], width: int = 48) -> dict[str, dict]:
    """Return the terminal names of each column's groups, cut to a width and still distinct."""
    return {column: names_of(table[column], width) for column in by}


def _overview_cells(row: dict, names: dict[str, dict]) -> dict[str, str]:
    """Format a row of `analysis.overview` as cells by header; `names` as returned by `group_names`."""
    statuses = {short: str(row[str(status)]) for status, short in SHORT.items()}
    return {**_keys(row, names), **_rate_cells(row), **statuses}


def _keys(row: dict, names: dict[str, dict]) -> dict[str, str]:
    return {column: names[column][key_of(row[column])] for column in names}


def _rate_cells(row: dict) -> dict[str, str]:
    interval = "–" if row["low"] != row["low"] else f"{row['low'] * 100:.0f} – {row['high'] * 100:.0f} %"
    return {"n": str(row["n"]), "success rate": _percent(row["estimate"]), "95 % interval": interval}


def _notes(runs: "pd.DataFrame") -> list[str]:
    """Describe which runs name no model, what is left out of the rates, and what was assumed for them."""
    from evalkit.mindcraft.analysis.rates import NO_SCORE, has_score, is_stale
    from evalkit.mindcraft.analysis.task_types import describe_scale

    stale, unknown, lines = int(is_stale(runs).sum()), int((runs["model_name"] == UNKNOWN).sum()), []
    if unknown:
        name = "names" if unknown == 1 else "name"
        hint = "--layout tells what the folders mean, e.g. '{model_name}/{task_id}'"
        lines.append(f"{counted_noun(unknown, 'run')} {name} no model; {hint}")
    if stale:
        holds = "holds a copy" if stale == 1 else "hold copies"
        lines.append(
            f"{counted_noun(stale, 'run')} {holds} of another run's log, and count{'s' * (stale == 1)} in no rate"
        )
    if len(runs) and not has_score(runs).any():
        lines.append(NO_SCORE)
    if runs["flag_scale_assumed"].any():
        lines.append(describe_scale(runs))
    return lines


def legacy_text(logs: Logs, limit: int = 60) -> str:
    """Format what the original scripts report for the same folders beside our figures, and a line for each difference.

    Parameters
    ----------
    logs : Logs
    limit : int
        The most folders, and differences of one cause and script, to show; a line says how many more there are.
    """
    from evalkit.mindcraft.legacy.folders import ALL
    from evalkit.mindcraft.legacy.summary import legacy_summary

    totals, differences = legacy_summary(logs.runs, logs.folders)
    lines = [f"What the original scripts (kolbytn/mindcraft, tasks/ at commit {COMMIT}) say, and ours:"]
    for script, of_script in totals.groupby("script", sort=False):
        is_pooled = of_script["folder"] == ""
        pooled, each = of_script[is_pooled], of_script[~is_pooled & (of_script["group"] == ALL)]
        alike = pooled["group"].str.startswith("task ") & (pooled["their_rate"] - pooled["our_rate"]).abs().lt(0.005)
        pooled = pooled[~alike]
        first = ["model_name", "group"] if script == "construction" else ["group"]
        lines += ["", f"{SCRIPTS[str(script)]}, {GIVEN[str(script)]}:"]
        if len(pooled):
            lines += ["", *_table([_legacy_cells(row, first) for row in pooled.to_dict("records")], len(first))]
        lines += [f"… {counted_noun(int(alike.sum()), 'task')} with the same score on both sides"] * bool(alike.any())
        if len(each):
            shown = each.head(limit).assign(folder=each["folder"].map(short_paths(each["folder"].unique())))
            rows = [_legacy_cells(row, ["folder"]) for row in shown.to_dict("records")]
            lines += ["", "  given each folder, with all that lies in it:", "", *_table(rows, 1)]
            lines += [f"… {len(each) - limit} more"] * (len(each) > limit)
    for (name, cause), differing in differences.groupby(["script", "cause"], sort=False):
        lines.append(f"\n{name}: {cause}: {len(differing)}")
        shown = differing.head(limit)
        lines += [f"  {plain(d.source)}: {plain(d.theirs)}, ours {plain(d.ours)}" for d in shown.itertuples()]
        lines += [f"  … {len(differing) - limit} more"] * (len(differing) > limit)
    return "\n".join(lines)


def _legacy_cells(row: dict, first: Sequence[str]) -> dict[str, str]:
    cells = {name: plain(row[name]) for name in first}
    for who in ("their", "our"):
        n, successes, rate = (row[f"{who}_{name}"] for name in ("n", "successes", "rate"))
        score = "–" if rate != rate else f"{rate:.2f}"
        cells[f"{who} n"] = str(n)
        cells[f"{who} successes"] = f"{successes:.6g}" if row["unit"] == "rate" else ""
        cells[f"{who} rate"] = {"rate": _percent(rate), "score": score}.get(row["unit"], "")
    return {**cells, "": plain(row["note"])} if row["note"] else cells


def _percent(rate: float) -> str:
    return "–" if rate != rate else f"{rate * 100:.1f} %"


def _check_columns(table: "pd.DataFrame", columns: Sequence[str]) -> None:
    """Raise SourceError for columns that a frame lacks, with the nearest name."""
    try:
        check_columns(table, *columns)
    except ValueError as error:
        raise SourceError(str(error)) from None


def _joined(value: object) -> object:
    return ", ".join(map(_quoted, value)) if isinstance(value, list) else value


def _quoted(item: object) -> str:
    """Quote an item that would look like two items."""
    return json.dumps(item) if isinstance(item, str) and ("," in item or '"' in item) else str(item)
