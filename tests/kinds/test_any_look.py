"""What the table of a growing source says of rates that are looked at again and again."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from evalkit.kinds.progress import Counted, Snapshot, any_look_lines
from evalkit.kinds.registry import kind_named
from evalkit.stats import mean_sequence
from tests.compare.runs import runs_of


class Source:
    """Runs that are looked at."""

    def __init__(self):
        self.counted = Counted()

    def look(self, runs, running=()):
        kind = kind_named(runs["kind"].iloc[0] if len(runs) else "mindcraft")
        look = Snapshot(None, lambda path: 0.0, frozenset(), None, None, 60, self.counted)
        return any_look_lines(
            look, SimpleNamespace(kind=kind, runs=runs), None if running is None else runs["run_id"].isin(running)
        )


def started(runs, order=None):
    """Runs that began a minute after each other, in their order or another one."""
    minutes = pd.Series(range(len(runs)) if order is None else order, runs.index)
    return runs.assign(started=pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(minutes, unit="min"))


def test_while_following_rates_and_differences_hold_at_every_look():
    wins = {"strong": 27, "weak": 3, "also weak": 5}
    runs = started(runs_of([(m, f"t{t}", t * 7 % 30 < n) for t in range(30) for m, n in wins.items()]))
    lines = Source().look(runs)
    text = " ".join(lines)
    assert "strong is ahead of weak" in text
    assert "weak is ahead of also weak" not in text
    assert "also weak is ahead" not in text
    for model in wins:
        low, high = map(int, re.search(rf"[:;] {model} \[(\d+), (\d+)\]", text).groups())
        assert low < 100 * wins[model] / 30 < high
        assert high - low > 20  # wider than an interval that may be looked at once
    assert max(map(len, lines)) <= 60
    many = started(runs_of([(f"m{m}", f"t{t}", m < 3) for t in range(40) for m in range(6)]))
    assert Source().look(many) == ["9 of 15 pairs of models differ, however often one looks"]
    assert Source().look(runs.iloc[:0]) == Source().look(started(runs_of([("m", "t", 7.5)], kind="crafter"))) == []


def test_runs_count_up_to_the_oldest_that_still_runs_and_keep_their_place():
    runs = started(runs_of([(m, f"t{t}", t % 2 == 0) for t in range(4) for m in "ab"]))
    table = runs.rename(columns={"task_id": "task"}).assign(value=runs["is_successful"].astype(float))

    def look(counted, n, running):
        counted.see(table.iloc[:n].assign(running=table["run_id"].isin(running)))
        return counted.values("a"), counted.values("a", "b")

    counted = Counted()
    assert look(counted, 6, {"1", "2"}) == ([[1.0]], [[], []])
    assert look(counted, 6, {"2"}) == ([[1.0]], [[1.0], [1.0]])
    assert look(counted, 7, set()) == ([[1.0, 0.0, 1.0, 0.0]], [[1.0, 0.0, 1.0], [1.0, 0.0, 1.0]])
    assert look(counted, 8, {"7"})[1] == [[1.0, 0.0, 1.0], [1.0, 0.0, 1.0]]
    assert look(counted, 8, {"1"})[1][0][1:] == [0.0, 1.0, 0.0]  # it is written to again, and keeps its place
    assert counted.late == 0


def test_looks_one_after_the_other_say_what_one_look_says():
    rng = np.random.default_rng(1)
    runs = started(runs_of([(m, f"t{t}", bool(rng.random() < 0.4)) for t in range(30) for m in "ab"]))
    table = runs.rename(columns={"task_id": "task"}).assign(value=runs["is_successful"].astype(float), running=False)
    counted, at_once = Counted(), Counted()
    for n in (1, 2, 9, 40, 60):
        counted.see(table.iloc[:n])
        rate, gap = counted.claim("a"), counted.claim("a", "b") if n > 1 else None
    at_once.see(table)
    assert (rate.low, rate.high) == tuple(mean_sequence(*at_once.values("a")).iloc[-1][["low", "high"]])
    last = mean_sequence(np.subtract(*at_once.values("a", "b")), bounds=(-1, 1)).iloc[-1]
    assert (2 * gap.low - 1, 2 * gap.high - 1, bool(gap.ahead)) == pytest.approx(
        (last["low"], last["high"], last["low"] > 0 or last["high"] < 0)
    )


EQUAL = [(m, f"t{t}", m == "a") for t in range(40) for m in "ab"]


@pytest.mark.parametrize(
    ("runs", "running", "reason"),
    [
        (started(runs_of(EQUAL)), None, "the logs do not say which runs are still running"),
        (runs_of(EQUAL), (), "the logs do not say when runs began"),
    ],
)
def test_where_logs_do_not_tell_the_order_nothing_is_claimed_and_the_text_says_why(runs, running, reason):
    text = " ".join(Source().look(runs, running))
    assert text.startswith("Which model is ahead can't be said before all runs have ended:")
    assert reason in text
    assert Source().look(runs[runs["model_name"] == "a"], None) == []


def test_runs_that_show_only_when_they_have_ended_end_all_claims():
    """Their place in the order would follow from their results."""
    runs, source = started(runs_of(EQUAL)), Source()
    assert "a is ahead of b" in " ".join(source.look(runs.iloc[30:]))
    assert "30 runs had ended when first seen, after younger ones" in " ".join(source.look(runs))
    assert "a is ahead" not in " ".join(source.look(runs))
