"""Task runs while an experiment still writes: how far each model is, and the rates of what is finished.

A run is finished once one of its logs holds a final message, or once none of its logs has changed for as long as the
task may take. Until then it is running, and counts in no rate.
"""

import math
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from evalkit.io import Listing, Source, StorageOptions, mark_of, storage
from evalkit.io.follow import Watch
from evalkit.io.live import View, fit_table, so_far
from evalkit.mindcraft.assemble import assemble
from evalkit.mindcraft.definitions import load_task_definitions
from evalkit.mindcraft.outcome import Scale, TaskOutcome
from evalkit.mindcraft.parse import ParsedFile, parse_file
from evalkit.mindcraft.scan import beside, sift
from evalkit.mindcraft.table import aggregate_results_to_dataframe
from evalkit.mindcraft.terminal import SHORT, counted, group_names, overview_cells, summary_lines, with_groups

if TYPE_CHECKING:
    import pandas as pd

MOST_FAILED = 3  # lines on files that could not be read
MOST_NAME = 120  # characters of a name; a terminal may leave fewer
_SPARE = ("success", "broken", "partial", "no score", "timed out", "zero", "running")


class Following:
    """An experiment that is looked at again and again.

    Parameters
    ----------
    runs : str, path, or several of them
        As `path` of `load`; one that is not there yet is waited for.
    tasks : sequence of paths
        Task definition files; read once.
    by : sequence of str
        Columns of the runs to group by; model_name where none is given.
    expected : int, optional
        Tasks of each model. Where none is given, the results files of its experiments tell, else the number of
        definitions.
    idle : float, optional
        Seconds after which a run without a final message that has not changed counts as finished; the timeout of its
        task, where none is given.
    layout, scale, original_mtimes, jobs, storage_options
        As for `load`.
    clock : function
        Gives the time in epoch seconds.

    Attributes
    ----------
    watch : Watch
    runs : DataFrame
        As `load` gives them; of the last look.

    Raises
    ------
    SourceError
        Where definitions are not there.
    """

    def __init__(
        self,
        runs: Source,
        tasks: Sequence[str] = (),
        *,
        by: Sequence[str] = (),
        expected: int | None = None,
        idle: float | None = None,
        layout: str | None = None,
        scale: Scale = "auto",
        original_mtimes: bool = False,
        jobs: int | None = None,
        storage_options: StorageOptions = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._by = list(dict.fromkeys(by)) or ["model_name"]
        self._expected, self._idle, self._layout = expected, idle, layout
        self._options: dict[str, Any] = {"scale": scale, "original_mtimes": original_mtimes}
        with storage(storage_options):
            self._definitions = load_task_definitions(*filter(None, tasks))
        reading = {"jobs": jobs, "storage_options": storage_options, "clock": clock}
        self.watch: Watch[ParsedFile] = Watch(runs, parse_file, _is_broken, choose=_choose, **reading)
        self._outcomes: list[TaskOutcome] = []
        self._state: object = None
        self._view = View("")

    def look(self, width: int | None = None) -> View:
        """Look at the runs once; what is shown keeps to a width, as far as it can.

        Parameters
        ----------
        width : int, optional
            Characters of a line; None: any.

        Returns
        -------
        View
            Its `status` says what was read; it is `done` once all that is expected is there, and nothing is running.

        Raises
        ------
        SourceError
            Where a dataset stands in the source.
        """
        watch = self.watch
        watch.look()
        if watch.changed or self._state is None:
            self._collect()
        running = [self._is_running(outcome) for outcome in self._outcomes]
        state = (running, width, watch.notes())
        if watch.changed or state != self._state:
            self._view = self._show(running, width)
            self._state = state
        return self._view._replace(status=watch.status())

    def _collect(self) -> None:
        """Put the outcomes and the ledger together anew, from the files as they were last parsed."""
        listing, results = self.watch.listing, self.watch.results
        may_tell, others = sift(listing.files)
        near = results.keys() - set(may_tell)
        parsed = [*others, *(_fresh(results[path]) for path in may_tell)]
        above = [results[path] for path in results if path in near]
        found = assemble(parsed, above, listing, self._layout, self._definitions, missing="keep", **self._options)
        self._outcomes = list(found.outcomes)
        self.runs = aggregate_results_to_dataframe(self._outcomes)
        files = found.ledger.frame()
        files = files[~(files["source"].isin(self.watch.writing) & (files["status"] == "failed"))]
        self._ledger = files.assign(source=[self.watch.name(path) for path in files["source"]])

    def _is_running(self, outcome: TaskOutcome) -> bool:
        logs = outcome["agent_outcomes"]
        paths = [log["source"] for log in logs] or [outcome["source"]]
        if any(log["final_system_message"] for log in logs):
            return False
        idle = outcome["facts"]["timeout"] if self._idle is None else self._idle
        return any(path in self.watch.writing or self.watch.quiet(path) < idle for path in paths)

    def _show(self, running: list[bool], width: int | None) -> View:
        notes = [*self.watch.notes(), ""] if self.watch.notes() else []
        if self.runs.empty:
            lines = ["no runs yet", *summary_lines(self.runs, self._ledger, MOST_FAILED)]
            return View("\n".join([*notes, *lines]))
        runs = with_groups(self.runs, self._by).assign(_running=running)
        progress = _progress(runs, self._expected, len(self._definitions))
        table = fit_table(_rows(runs, self._by, progress), left=len(self._by), spare=_SPARE, width=width)
        done, expected = progress["done"].sum(), progress["expected"].sum(skipna=False)
        n_running = sum(running)
        total = f"\ntotal: {so_far(done, expected)} tasks done, {counted(n_running, 'run')} running"
        lines = [*notes, table, total, *summary_lines(runs, self._ledger, MOST_FAILED)]
        complete = bool((progress["done"] >= progress["expected"]).all()) and not n_running and not notes
        return View("\n".join(lines), done=complete)


def _choose(listing: Listing) -> list[str]:
    """Name the files worth reading, and those above the listed ones that are there."""
    near = [path for path in beside(listing.files) if mark_of(path) is not None]
    return [*sift(listing.files)[0], *near]


def _is_broken(file: ParsedFile) -> bool:
    return bool(file.error) or (file.outcome is not None and not file.outcome["agent_log_processed"])


def _fresh(file: ParsedFile) -> ParsedFile:
    """Copy what putting outcomes together adds to."""
    if file.outcome is None:
        return file
    return file._replace(outcome={**file.outcome, "flags": [*file.outcome["flags"]]})


def _progress(runs: "pd.DataFrame", expected: int | None, n_definitions: int) -> "pd.DataFrame":
    """Count for each model the tasks that are done (some run finished, none running), and those expected."""
    import pandas as pd

    rows = {}
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


def _rows(runs: "pd.DataFrame", by: list[str], progress: "pd.DataFrame") -> list[dict[str, str]]:
    """Write the table: rates of the finished runs, and how many are running."""
    from evalkit.mindcraft.analysis import overview

    running = runs.groupby(by, dropna=False)["_running"].sum().rename("running").reset_index()
    finished = runs[~runs["_running"]]
    counts = ["n", *map(str, SHORT)]
    if finished.empty:
        table = running.assign(**dict.fromkeys(counts, 0), estimate=math.nan, low=math.nan, high=math.nan)
    else:
        table = overview(finished, by).merge(running, on=by, how="outer").fillna(dict.fromkeys(counts, 0))
        table = table.sort_values("estimate", ascending=False, kind="stable")
    rows, names = [], group_names(table, by, MOST_NAME)
    by_model = by == ["model_name"]
    one_each = by_model and (table["n"].to_numpy() == progress["done"].reindex(table["model_name"]).to_numpy()).all()
    for row in table.astype(dict.fromkeys(counts, "int64")).to_dict("records"):
        cells = overview_cells(row, names)
        head = {column: cells[column] for column in by}
        if by_model:
            head["tasks"] = so_far(*progress.loc[row["model_name"], ["done", "expected"]])
            if one_each:  # a run of each task: its number need not stand twice
                del cells["n"]
        rows.append({**head, "running": str(row["running"]), **cells})
    return rows
