"""Loading, collecting and following histories: only what changed is parsed, and a record is judged once per load."""

import json
import os
import sqlite3
import time
from contextlib import closing

import pandas as pd
import pytest

import evalkit
from evalkit.display.follow import Following
from evalkit.steps import KIND, Options, evaluates, load
from tests.steps.cases import CELLS, ENRICHMENT, make
from tests.steps.test_checkpoints import TABLE, state, thread

OLD = 1_600_000_000


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty store."""
    monkeypatch.setenv("EVALKIT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def resting(tmp_path):
    """A folder with two histories that were left alone for a while."""
    (tmp_path / "logs").mkdir()
    write(tmp_path / "logs" / "a.json", [make("process_cells", CELLS), make("f", ENRICHMENT, kind="structured")])
    write(tmp_path / "logs" / "b.json", [make("f", None, False, error="café")])
    return tmp_path / "logs"


def write(path, value, age=0):
    path.write_text(json.dumps(value), encoding="utf-8")
    os.utime(path, (OLD + age, OLD + age))


@pytest.mark.parametrize("odd", ["[" * 300 + "]" * 300, "[NaN, -Infinity]", "1" * 400, '"\\ud800\\u0000"', "-0.0"])
def test_odd_values_come_back_as_they_were(tmp_path, odd):
    record = '{"step": {"function_name": "f", "parameters": {"odd": %s}}, "success": true, "result": "x"}'
    (tmp_path / "a.json").write_text(f"[{record % odd}, {record % 'NaN'}]")
    new, stored = load(tmp_path / "a.json"), load(tmp_path / "a.json")
    for name in ("runs", "steps", "checks", "ledger"):
        pd.testing.assert_frame_equal(getattr(new, name), getattr(stored, name))
    assert new.histories == stored.histories


@pytest.mark.parametrize("settled", [True, False])
def test_what_was_written_to_a_database_last_is_seen(tmp_path, settled):
    path = tmp_path / "c.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = wal")  # as running agents do
        connection.execute(TABLE)
        for number in (1, 2, 3):
            checkpoint = thread(checkpoint_id=str(number), value=state(*[make("f", "x")] * number))
            connection.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?)", checkpoint)
            connection.commit()
            for file in tmp_path.glob("c.sqlite*") if settled else ():
                os.utime(file, (OLD, OLD))
            assert load(path).runs["turns"].tolist() == [number]


def test_options_apply_to_what_is_stored_and_the_order_of_sources_stays(resting):
    a, b = str(resting / "a.json"), str(resting / "b.json")
    assert [history.source for history in load([b, a]).histories] == [b, a]
    assert load([a, b]).steps["truncated"].tolist() == [False, False, False]
    assert load([a, b], Options(text_limit=len(CELLS))).steps["truncated"].tolist() == [True, False, False]


def test_options_of_another_type_are_refused(resting):
    with pytest.raises(TypeError, match=r"evalkit\.steps\.Options, not int"):
        evalkit.load(resting, "steps", options=3)


def test_evaluators_are_asked_at_every_load(resting, evaluators):
    for score in (0.25, 0.75):
        evaluates("f")(lambda record, options, score=score: {"checks": [{"name": "mine", "score": score}]})
        assert load(resting).checks.set_index("name").loc["mine", "score"] == score
    del evaluators["f"]
    assert "mine" not in set(load(resting).checks["name"])


def states(view):
    """Give the state of each history in the order of the table."""
    lines = view.text.split("\n\n")[0].splitlines()[2:]
    return [(line.split()[0], line.split()[-1]) for line in lines]


def test_a_history_that_grows_is_running_until_it_rests(tmp_path):
    (tmp_path / "in").mkdir()
    clock, path = [time.time()], tmp_path / "in" / "a.json"
    look = Following(KIND, tmp_path / "in", {}, clock=lambda: clock[0], expected=2).look
    assert look().text.startswith("no execution history yet")
    write(path, [make("f", "x")])
    write(tmp_path / "in" / "b.json", [make("f", None, False, error="no")])
    view = look()
    assert dict(states(view)) == {"a.json": "running", "b.json": "running"}
    assert "total: 2 of 2 histories, 2 running, confirmed 50 % [" in view.text
    assert not view.done
    clock[0] += 59
    write(path, [make("f", "x")] * 3, age=1)
    look()
    clock[0] += 2
    view = look()
    assert states(view) == [("b.json", "finished"), ("a.json", "running")]  # the lowest first
    assert view.status == "0 of 2 files new"
    clock[0] += 60
    assert look().done
