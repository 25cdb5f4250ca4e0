"""Session traces while an experiment still writes: a trace counts as soon as its file can be read."""

import time
from collections.abc import Callable
from functools import partial

from evalkit.crafter.collecting import EVERY
from evalkit.crafter.evaluate import TraceScore, score_file
from evalkit.crafter.parse import SERIAL_BELOW
from evalkit.crafter.scoring import WEIGHTS, Counting
from evalkit.crafter.table import episodes_of_results
from evalkit.io import Ledger, Source, StorageOptions, plain
from evalkit.io.follow import Watch
from evalkit.io.ledger import Entry
from evalkit.io.live import View, so_far

MOST_FAILED = 3  # lines on files that could not be read


class Following:
    """Traces that are looked at again and again.

    Parameters
    ----------
    traces : str, path, or several of them
        As `trace_dir` of `evaluate_all_traces`; one that is not there yet is waited for.
    pattern, recursive, counting
        As for `evaluate_all_traces`.
    by_difficulty : bool
        Break the scores down by difficulty too.
    expected : int, optional
        Traces of each model.
    jobs, storage_options
        As for `evaluate_all_traces`.
    clock : function
        Gives the time in epoch seconds.
    """

    def __init__(
        self,
        traces: Source,
        *,
        pattern: str = EVERY,
        recursive: bool = True,
        counting: Counting = "achievement",
        by_difficulty: bool = False,
        expected: int | None = None,
        jobs: int | None = None,
        storage_options: StorageOptions = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._by_difficulty, self._expected = by_difficulty, expected
        self.watch: Watch[tuple[Entry, TraceScore | None]] = Watch(
            traces,
            partial(score_file, weights=dict(WEIGHTS), counting=counting),
            lambda found: found[0].status == "failed",
            pattern=pattern,
            recursive=recursive,
            jobs=jobs,
            serial_below=SERIAL_BELOW,
            storage_options=storage_options,
            clock=clock,
        )

    def look(self, width: int | None = None) -> View:
        """Look at the traces once.

        Parameters
        ----------
        width : int, optional
            Characters of a line, which the table has no need of.

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
        found = watch.results.values()
        scored = [result for _, result in found if result is not None]
        notes = [*watch.notes(), ""] if watch.notes() else []
        lines = [*notes, *(self._scores(scored) if scored else ["no traces yet"]), "", *self._files()]
        return View("\n".join(lines), watch.status(), self._is_done(scored) and not notes)

    def _scores(self, scored: list[TraceScore]) -> list[str]:
        from evalkit.crafter import analysis, terminal  # imports pandas

        episodes = episodes_of_results(scored)
        lines = terminal.breakdown_lines(episodes, "model_name", lambda n: so_far(n, self._expected))
        if self._by_difficulty:
            lines += ["", *terminal.breakdown_lines(episodes, "difficulty")]
        expected = None if self._expected is None else self._expected * episodes["model_name"].nunique()
        (mean,) = analysis.mean_scores(episodes, []).to_dict("records")
        zero = analysis.with_aborted_at_zero(episodes, []).to_dict("records")
        total = f"total: {so_far(len(scored), expected)} traces, mean score {terminal.interval_text(mean)}"
        return [*lines, "", total, *(f"aborted: {terminal.aborted_text(row)}" for row in zero)]

    def _files(self) -> list[str]:
        """Say how many files there are, and which failed."""
        ledger = Ledger()
        for path, (entry, _) in self.watch.results.items():
            if entry.status != "failed" or path not in self.watch.writing:
                ledger.entries.append(entry)
        failed = [(self.watch.name(entry.source), entry.reason) for entry in ledger.entries if entry.status == "failed"]
        lines = [f"📁 {ledger.summary()}"]
        lines += [f"   failed: {plain(name)}: {plain(reason)}" for name, reason in failed[:MOST_FAILED]]
        return lines + [f"   … {len(failed) - MOST_FAILED} more"] * (len(failed) > MOST_FAILED)

    def _is_done(self, scored: list[TraceScore]) -> bool:
        if self._expected is None or not scored or self.watch.writing:
            return False
        models = [result["model_name"] for result in scored]
        return min(map(models.count, set(models))) >= self._expected
