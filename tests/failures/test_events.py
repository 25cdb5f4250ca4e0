"""Events, failure modes and contrasts of runs of every kind."""

import importlib
import itertools
import json
import random
import sys
import warnings
from itertools import groupby, zip_longest
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import evalkit
from benchmarks import failures as planted
from evalkit import failures
from evalkit.failures import failure_modes, words
from evalkit.failures import search as events_module
from evalkit.failures.contrasts import contrast_of
from evalkit.failures.rules import COMMON, repeated_call
from evalkit.kinds import Call, Transcript, Turn
from evalkit.kinds.detectors import seen
from evalkit.kinds.registry import all_kinds
from evalkit.kinds.transcript import transcripts
from evalkit.trajectories.events import cut_off
from tests.mindcraft import builders as game

ALL = [*COMMON, *(one for kind in all_kinds() for one in kind.detectors)]


def call(name, arguments="", result="x", has_failed=None):
    return Turn("agent", "action", name, agent="agent", call=Call(name, arguments, result, has_failed))


def say(text, role="assistant"):
    return Turn("agent", role, text, agent="agent")


def found(*turns, target="", ended=""):
    transcript = seen(Transcript("", [], turns), target, ended)
    return {one.name for one in COMMON for _ in one.find(transcript)}


def repeats(calls):
    """Find repeated calls as the docstring of the rule says, in quadratic time."""
    for call_ in dict.fromkeys((one.call.name, one.call.arguments) for one in calls):
        equal = [at for at, one in enumerate(calls) if (one.call.name, one.call.arguments) == call_]
        stretches = [list(same) for _, same in groupby(equal, lambda at: calls[at].call.result)]
        for same, after in zip_longest(stretches, stretches[1:]):
            new = after and {one.call.name for one in calls[same[-1] : after[0]]}
            is_polling = after and len(same) < 10 and new <= {one.call.name for one in calls[same[0] : same[-1]]}
            if len(same) >= 3 and not is_polling:
                yield same[0] + 1, str(len(same))


@given(
    st.lists(st.builds(call, st.sampled_from("abc"), st.sampled_from("1123"), st.sampled_from("xxxxy")), max_size=60)
)
def test_repeated_calls_are_found_with_work_in_between(calls):
    made = repeated_call(seen(Transcript("", [], calls), "", ""))
    assert sorted((turn, n) for turn, n, _ in made) == sorted(repeats(calls))


def test_repeated_calls_are_found_in_a_long_run():
    keys = range(6_000)  # in quadratic time, this would take minutes
    calls = [call("f", str(key), f"{half}{key}") for half in "rs" for _ in range(3) for key in keys]
    assert len(list(repeated_call(seen(Transcript("", [], calls), "", "")))) == len(keys)


FAILED, FINE = "Error: it broke", "fine"
RULES = {
    "two equal calls are no event": ([call("a")] * 2, set()),
    "three equal calls are repeated": ([call("a")] * 3, {"repeated_call"}),
    "other calls may come between": (
        [call("a"), call("b", "1"), call("a"), call("b", "2"), call("a")],
        {"repeated_call"},
    ),
    "other arguments are another call": ([call("a", str(i)) for i in range(3)], set()),
    "polling whose result changes is healthy": ([call("a", "", str(i)) for i in range(9)], set()),
    "polling between which it sleeps is healthy": (
        [*[call("a", "", "wait"), call("sleep", "", "")] * 4, call("a", "", "done")],
        set(),
    ),
    "polling between which a shell sleeps is healthy": (
        [*[call("bash", '{"cmd":"sleep 20"}', ""), call("a", "", "wait")] * 5, call("a", "", "done")],
        set(),
    ),
    "polling without a change is repeated": (
        [call("a", "", "wait"), call("browser_wait", '{"ms":9}', "waited")] * 3,
        {"repeated_call"},
    ),
    "a list of those who wait is no pause": ([call("waitlist_show", "{}", "Ann, Bo")] * 3, {"repeated_call"}),
    "a pause that fails is no pause": (
        [call("wait", "{}", FAILED)] * 3,
        {"repeated_call", "failed_call", "ignored_error"},
    ),
    "another answer after other work is no polling": (
        [*[call("a")] * 3, call("b"), call("a", "", "y")],
        {"repeated_call"},
    ),
    "polling that ends with a change is healthy": ([*[call("a", "", "wait")] * 5, call("a", "", "done")], set()),
    "ten equal results are no polling": ([*[call("a", "", "wait")] * 10, call("a", "", "done")], {"repeated_call"}),
    "results that were not logged equal none": ([call("a", "", None)] * 5, set()),
    "two calls in turn are a cycle": ([call("a"), call("b")] * 3, {"cycle", "repeated_call"}),
    "three calls in turn are a cycle": ([call("a"), call("b"), call("c")] * 3, {"cycle", "repeated_call"}),
    "two rounds are no cycle": ([call("a"), call("b")] * 2, set()),
    "a cycle has the same results": ([call(name, "", str(i)) for i in range(3) for name in "ab"], set()),
    "a failed call": ([call("a", "", FAILED)], {"failed_call"}),
    "a call that failed by its log": ([call("a", "", FINE, True)], {"failed_call"}),
    "a call that is fine by its log": ([call("a", "", FAILED, False)], set()),
    "a retry that succeeds is healthy": ([call("a", "", FAILED), call("a", "", FINE)], {"failed_call"}),
    "the unchanged call fails again": ([call("a", "", FAILED)] * 2, {"failed_call", "ignored_error"}),
    "a changed call is no ignored error": ([call("a", "1", FAILED), call("a", "2", FAILED)], {"failed_call"}),
    "a claim of success": ([call("a", "", FAILED), say("I have updated it.")], {"failed_call", "ignored_error"}),
    "an admission": ([call("a", "", FAILED), say("I could not update it.")], {"failed_call"}),
    "a claim after a success": ([call("a", "", FAILED), call("b"), say("All done.")], {"failed_call"}),
    "an unknown tool": ([call("a", "", "Unknown tool: a")], {"failed_call", "unknown_tool"}),
    "an unsupported call": ([call("a", "", "unsupported call: a", True)], {"failed_call", "unknown_tool"}),
    "ten different calls with one result": ([call("a", str(i), "nothing") for i in range(10)], {"no_progress"}),
    "ten different calls that find nothing": ([call("a", str(i), "[]") for i in range(10)], {"no_progress"}),
    "nine are too few": ([call("a", str(i), "nothing") for i in range(9)], set()),
    "results that acknowledge are progress": ([call("a", str(i), "ok") for i in range(20)], set()),
    "a last third without a new result": (
        [call("a", str(i), f"r{i}") for i in range(10)] + [call("b", str(i), f"r{i}") for i in range(5)],
        {"no_progress"},
    ),
    "a limit by a message": ([call("a"), say("Maximum number of steps reached", "system")], {"limit_reached"}),
    "a limit in place of an answer": ([call("a"), say("Stopped: max iterations reached.")], {"limit_reached"}),
    "a limit of cost in place of an answer": ([call("a"), say("Budget of 9 EUR exhausted.")], {"limit_reached"}),
    "an answer about a limit of time": ([call("a"), say("The time limit for the tour is exceeded.")], set()),
    "results that log thoughts are progress": ([call("a", str(i), "Thought recorded.") for i in range(20)], set()),
    "an answer about limits": ([call("a"), say("The baggage limit of your fare was reached.")], set()),
    "a limit in the middle is none": ([say("Maximum number of steps reached", "system"), call("a"), say("x")], set()),
    "five messages before the first call": ([*[say("hm")] * 5, call("a")], {"late_first_action"}),
    "four are few": ([*[say("hm")] * 4, call("a")], set()),
    "five of many are few": ([*[say("hm")] * 5, *[call("a", str(i), str(i)) for i in range(20)]], set()),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_finds_its_event_and_nothing_else(rule):
    turns, expected = RULES[rule]
    assert found(*turns) == expected


ENDINGS = {
    "an answer": ([say("It is done.")], False),
    "a call": ([call("bash")], True),
    "a call that hands in": ([call("bash"), call("mark_task_complete")], False),
    "an answer that says that the task goes on": ([say('{"commands": [], "task_complete": false}')], True),
    "an answer that says that the task is complete": ([say('{"commands": [], "is_task_complete": true}')], False),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_run_is_cut_off_unless_its_agent_ends_it(ending):
    turns, is_cut_off = ENDINGS[ending]
    assert bool(list(cut_off(Transcript("", [], turns)))) == is_cut_off


def test_calls_of_two_agents_are_not_mixed():
    turns = [replace(call("a"), agent=agent) for agent in ("x", "y", "x", "y")]
    assert found(*turns) == set()


def test_failed_calls_of_a_long_run_are_searched_in_linear_time():
    turns = [one for n in range(20_000) for one in (say("I try it."), call("a", str(n), FAILED))]
    transcript = seen(Transcript("", [], [*turns, say("I have updated it.")]), "", "")
    (rule,) = (one for one in COMMON if one.name == "ignored_error")
    assert [event[1] for event in rule.find(transcript)] == ["claimed success"]  # a quadratic search takes an hour


@pytest.mark.parametrize("ended", ["max_steps", "AgentTimeoutError", "exit_cost", "time_limit", "LimitsExceeded"])
def test_a_status_of_a_limit_is_an_event(ended):
    assert found(call("a"), ended=ended) == {"limit_reached"}


@pytest.mark.parametrize(
    "ended", ["EnvironmentStartTimeoutError", "VerifierTimeoutError", "AgentSetupTimeoutError", "RateLimitError"]
)
def test_a_status_of_a_failure_of_the_environment_is_no_limit(ended):
    assert found(call("a"), ended=ended) == set()
    assert found(call("a"), ended="user_stop") == set()


def test_lines_that_state_the_outcome_are_hidden():
    turns = [say("Go", "user"), Turn("game", "system", "won", states_outcome=True), say("reward: 1.0\nbye", "user")]
    texts = [turn.text for turn in seen(Transcript("model alder", ["score 1"], turns)).turns]
    assert texts == ["Go", "", "\nbye"]
    assert seen(Transcript("model alder", ["score 1"], turns))[:2] == ("", [])


TEXTS = st.text(max_size=40) | st.sampled_from([FAILED, FINE, "done", "", "Maximum steps reached", '{"error": 1}'])
CALLS = st.builds(
    Call, st.sampled_from(["a", "bash", "submit", ""]) | st.text(max_size=5), TEXTS, st.none() | TEXTS,
    st.none() | st.booleans(), st.integers(0, 3),
)  # fmt: skip
VALUES = st.fixed_dictionaries(
    {}, optional={"words": TEXTS, "acts": st.booleans(), "silent_failure": st.none() | TEXTS}
)
TURNS = st.builds(
    Turn, st.sampled_from(["x", "y", ""]), st.sampled_from(["assistant", "action", "system", "user", "tool"]), TEXTS,
    call=st.none() | CALLS, values=VALUES,
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(TURNS, max_size=14), TEXTS)
def test_no_detector_raises_and_all_turns_exist(turns, target):
    transcript = seen(Transcript("", [], turns), target)
    for one in ALL:
        for turn, detail, evidence in one.find(transcript):
            assert 1 <= turn <= max(len(turns), 1)
            assert isinstance(detail, str)
            assert isinstance(evidence, str)


@pytest.mark.parametrize("name", planted.KINDS)
def test_planted_causes_are_found_and_healthy_runs_are_not(name):
    table, wrong = planted.measured(name, 40, 3)
    assert (table["precision"] >= 0.95).all(), wrong
    assert (table["recall"] >= 0.9).all(), wrong


def chats(folder, n=12):
    """Write a table in which failed runs repeat a call."""
    rows = []
    for i in range(n):
        chat = planted.Chat(random.Random(i), is_code=False)
        succeeded = i % 2 == 0
        (planted.healthy if succeeded else planted.repeated_call)(chat)
        row = {"task_id": f"t{i // 2}", "model": ("alder", "birch")[i % 3 == 0], "success": succeeded}
        rows.append(row | {"messages": chat.messages})
    (folder / "runs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return rows


def test_shuffled_outcomes_and_models_and_another_order_give_the_same_events(tmp_path):
    rows = chats(tmp_path)
    before = failures.events(evalkit.load(tmp_path))
    for row, other in zip(rows, reversed(rows), strict=True):
        row["success"], row["model"] = other["success"], "cedar"
    (tmp_path / "runs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    after = failures.events(evalkit.load(tmp_path))
    columns = ["turn", "agent", "event", "detail", "evidence"]
    assert before[columns].sort_values(columns).values.tolist() == after[columns].sort_values(columns).values.tolist()


def test_unchanged_runs_are_not_searched_again(tmp_path, monkeypatch):
    monkeypatch.setenv("EVALKIT_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "logs"
    folder.mkdir()
    chats(folder)
    before = failures.events(evalkit.load(folder))
    searched = []
    monkeypatch.setattr(events_module, "_search_chunk", lambda ids: searched.append(ids))
    after = failures.events(evalkit.load(folder))
    assert searched == []
    pd.testing.assert_frame_equal(before, after)


@pytest.fixture
def own_detectors():
    """Begin without detectors of users, and forget those that the test registers."""
    with mock.patch.dict(events_module.OWN_DETECTORS, clear=True):
        yield


def test_events_of_a_users_detector_count_like_others_and_one_that_raises_is_named(tmp_path, own_detectors):
    chats(tmp_path)

    @failures.detector("says_order", "Does it speak of orders?", severity=10)
    def says_order(transcript):
        for number, turn in enumerate(transcript.turns, 1):
            if "order" in turn.text:
                yield number, "", turn.text

    @failures.detector("broken", "Does it break?")
    def broken(transcript):
        raise ZeroDivisionError("no")

    logs = evalkit.load(tmp_path)
    with pytest.warns(UserWarning, match="detector broken failed in 12 runs: ZeroDivisionError: no"):
        found = failures.events(logs)
    assert {"says_order", "repeated_call"} <= set(found["event"])
    table = failures.modes(logs)
    assert set(table.loc[table["leads"], "mode"]) == {"says order"}


def after_two(transcript):
    yield 2, "", ""
    raise ValueError("stop")


@pytest.mark.parametrize(
    ("find", "events_of_runs", "message"),
    [
        (lambda transcript: None, 0, ""),
        (lambda transcript: [(1, "", "")], 12, ""),
        (after_two, 0, "failed in 12 runs: ValueError: stop"),
        (lambda transcript: [(1, "", ""), (0, "", "")], 0, "failed in 12 runs: ValueError: there is no turn 0 of"),
        (lambda transcript: [(2.5, "", "")], 0, "failed in 12 runs: ValueError: there is no turn 2.5 of"),
        (lambda transcript: [(99, "", "")], 0, "failed in 12 runs: ValueError: there is no turn 99 of"),
    ],
)
def test_a_detector_finds_nothing_in_a_run_in_which_it_fails(tmp_path, own_detectors, find, events_of_runs, message):
    failures.detector("own", "?")(find)
    chats(tmp_path)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        found = failures.events(evalkit.load(tmp_path))
    assert found["event"].eq("own").sum() == events_of_runs
    assert [message in str(one.message) for one in warned] == [True] * bool(message)


def test_a_users_detector_sees_the_current_values_of_its_variables(tmp_path, monkeypatch, own_detectors):
    monkeypatch.setenv("EVALKIT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "logs").mkdir()
    chats(tmp_path / "logs")
    (tmp_path / "own_detectors.py").write_text(
        "def made(limit):\n    return lambda transcript: [(1, str(limit), '')]\n"
        "LIMIT = 3\ndef fixed(transcript):\n    return [(1, str(LIMIT), '')]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("own_detectors")
    monkeypatch.setitem(sys.modules, "own_detectors", module)
    details = []
    for find, limit in ((module.made(1), 0), (module.made(2), 0), (module.fixed, 3), (module.fixed, 4)):
        monkeypatch.setattr(module, "LIMIT", limit)
        failures.detector("own", "?")(find)
        found = failures.events(evalkit.load(tmp_path / "logs"))
        details += found.loc[found["event"] == "own", "detail"].unique().tolist()
    assert details == ["1", "2", "3", "4"]


def test_every_failed_run_has_modes_of_which_one_leads(tmp_path):
    chats(tmp_path)
    logs = evalkit.load(tmp_path)
    table = failures.modes(logs)
    assert table.loc[table["leads"], "run_id"].tolist() == logs.runs.loc[~logs.runs["is_successful"], "run_id"].tolist()
    assert set(table.loc[table["leads"], "mode"]) == {"repeats calls without effect"}
    table = table[table["leads"]]  # without the modes of noise
    shares = failures.mode_shares(table)
    assert shares["estimate"].tolist() == [1.0, 1.0]
    assert shares["n"].sum() == 6
    assert failures.mode_shares(table, [])["n_tasks"].tolist() == [6]
    assert set(shares["measure"]) == {"share of failed runs"}
    assert set(failures.contrast(logs)["measure"]) <= {"share of runs with the event: failed minus successful runs"}
    assert "measure" in failures.contrast(logs)


def test_what_no_rule_explains_is_counted(tmp_path):
    rows = [{"task_id": "a", "model": "alder", "success": False, "messages": [{"role": "user", "content": "q"}] * 1}]
    rows[0]["messages"] += [{"role": "assistant", "content": "four"}]
    rows += [{"task_id": "b", "model": "alder", "success": False}]
    rows += [{"task_id": "c", "model": "alder", "success": False, "messages": [{"role": "system", "content": "no"}]}]
    (tmp_path / "runs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert failures.modes(evalkit.load(tmp_path))["mode"].tolist() == ["unexplained", *["no transcript"] * 2]


@pytest.mark.parametrize("ending", ["Task timeout reached ended with code : 2", "Task unsuccessful: Timeout reached"])
def test_a_final_message_after_a_command_of_mindcraft_is_no_answer_to_it(tmp_path, ending):
    said = [("assistant", "Wait. !stay(5)"), ("system", "Agent waited"), ("assistant", "!stay(6)"), ("system", ending)]
    game.write(tmp_path / "cooking_a/andy_0.json", {"turns": [game.turn(*one) for one in said]})
    assert failures.events(evalkit.load(tmp_path, "mindcraft"))["event"].tolist() == ["limit_reached"]


@pytest.mark.parametrize(
    "ending", ["Agent ended goal", "No other agents found ended with code : 3", "Task ended in score: 1"]
)
def test_detectors_do_not_see_how_a_run_of_mindcraft_ended(tmp_path, ending):
    said = [("assistant", "No other agents found here, I go on."), ("system", ending)]
    game.write(tmp_path / "cooking_a/andy_0.json", {"turns": [game.turn(*one) for one in said]})
    ((_, transcript),) = transcripts(evalkit.load(tmp_path, "mindcraft"))
    assert [turn.text for turn in seen(transcript).turns] == [said[0][1], ""]


def test_that_logs_do_not_say_what_failed_is_said_once(tmp_path):
    row = {"task_id": "a", "model": "alder", "success": None, "messages": [{"role": "assistant", "content": "four"}]}
    (tmp_path / "runs.jsonl").write_text(json.dumps(row) + "\n" + json.dumps(row | {"task_id": "b"}))
    logs = evalkit.load(tmp_path)
    assert failures.findings(logs)[0].template == failures.words.UNKNOWN
    assert failures.describe_rule(logs) == ""
    assert failures.describe_failures(logs).count(failures.words.UNKNOWN) == 1


def test_logs_without_failures_say_so(tmp_path):
    row = {"task_id": "a", "model": "alder", "success": True, "messages": [{"role": "assistant", "content": "four"}]}
    (tmp_path / "runs.jsonl").write_text(json.dumps(row) + "\n" + json.dumps(row | {"task_id": "b"}))
    logs = evalkit.load(tmp_path)
    assert [one.code for one in failures.findings(logs)] == ["no_failures"]
    assert failures.modes(logs).empty
    assert failures.mode_shares(failures.modes(logs)).empty
    assert failures.contrast(logs).empty
    assert failures.divergences(logs).empty
    assert "No run failed" in failures.describe_failures(logs)


def history(folder, name, repeats, succeed=False):
    records = []
    for i in range(5):
        about = {"timestamp": f"2025-08-01T10:00:{i:02d}", "function_name": "process_cells", "success": True}
        result = f"group_to_cell_type = {{'0': 'T cell {i}'}}"
        records.append(about | {"parameters": {"cell_type": f"{name} {i}"}, "error": None, "result_summary": result})
    for i in range(repeats):
        about = {"timestamp": f"2025-08-01T11:00:{i:02d}", "function_name": "compare_cell_counts", "success": succeed}
        ended = (
            {"error": None, "result_summary": "12 cells"}
            if succeed
            else {"error": "no such cells", "result_summary": None}
        )
        records.append(about | {"parameters": {"cell_type": "B"}} | ended)
    (folder / f"{name}.json").write_text(json.dumps(records))


def test_a_loop_of_43_identical_calls_is_the_first_finding(tmp_path):
    history(tmp_path, "a", 43)
    history(tmp_path, "b", 0)
    history(tmp_path, "c", 1)
    logs = evalkit.load(tmp_path, "steps")
    assert failures.failed_runs(logs).rule == "events"
    assert failures.failed_runs(logs).table["failed"].tolist() == [True, False, True]
    first = failures.findings(logs)[0]
    assert (first.code, first.values["most"], first.values["n"], first.values["total"]) == ("loops", 43, 1, 3)
    assert "43 times: compare_cell_counts" in failures.describe_failures(logs)


def test_a_loop_of_successful_steps_is_a_finding(tmp_path):
    history(tmp_path, "a", 0)
    history(tmp_path, "b", 21, succeed=True)
    codes = {one.code: one for one in failures.findings(evalkit.load(tmp_path, "steps"))}
    assert list(codes) == ["no_failures", "loops"]
    text = codes["loops"].template(**codes["loops"].values)
    assert text.startswith("1 of 2 histories repeats one call")
    assert "21 times: compare_cell_counts" in text


def test_an_event_of_failed_runs_only_is_claimed_and_one_of_all_runs_is_not():
    rng = np.random.default_rng(1)
    runs = pd.DataFrame({"run_id": [f"r{i}" for i in range(80)], "unit": np.repeat(range(20), 4), "model_name": "elm"})
    runs["failed"] = np.tile([True, True, False, False], 20)
    only = runs.loc[runs["failed"] & (rng.random(80) < 0.9), "run_id"]
    every = runs["run_id"]
    found = pd.DataFrame({"run_id": [*only, *every], "event": ["only"] * len(only) + ["every"] * len(every)})
    table = contrast_of(runs, found, {"only": "", "every": "", "never": ""}).set_index("event")
    assert table["decided"].to_dict() == {"only": True, "every": False}
    assert table.loc["every", "estimate"] == 0
    assert table.loc["only", "n_tasks"] == 20


@pytest.mark.parametrize("models", [1, 3])
def test_contrasts_of_outcomes_that_no_event_relates_to_claim_little(models):
    claims, samples = planted.null(12, 5, models)
    assert claims <= 0.2 * samples


@pytest.mark.parametrize(
    ("repetitions", "claimed", "says"),
    [
        (6, ["first"], "of the same task and model: first (100% against 0%), over 12 tasks with both outcomes."),
        (1, [], "in the 12 tasks with both outcomes, the same models fail, so models may be the reason."),
    ],
)
def test_an_event_of_the_model_that_fails_more_often_is_no_event_of_failures(repetitions, claimed, says):
    rows = []  # the event "first" is in failed runs, "poor" in most runs of the poorer model
    for task, model, repetition in itertools.product(range(12), ("good", "poor"), range(repetitions)):
        failed = (model == "poor") if repetitions == 1 else repetition < (4 if model == "poor" else 1)
        rows.append({"run_id": f"{task}-{model}-{repetition}", "unit": task, "model_name": model, "failed": failed})
    runs = pd.DataFrame(rows)
    first = runs.loc[runs["failed"], "run_id"]
    poor = runs.loc[(runs["model_name"] == "poor") & (np.random.default_rng(1).random(len(runs)) < 0.9), "run_id"]
    found = pd.DataFrame({"run_id": [*first, *poor], "event": ["first"] * len(first) + ["poor"] * len(poor)})
    table = contrast_of(runs, found, {"first": "", "poor": ""})
    assert table.loc[table["decided"], "event"].tolist() == claimed
    across, tested = bool(table["across_models"].all()), int(table["p_value"].notna().sum())
    claims = table[table["decided"]].to_dict("records")
    assert words.contrasts(claims, len(table), tested, 12, across).endswith(says)


def test_models_that_ran_tasks_once_are_compared_adjusted_for_models():
    rng = np.random.default_rng(0)
    runs = pd.DataFrame(itertools.product(range(40), ("good", "fair", "poor")), columns=["unit", "model_name"])
    runs["run_id"] = [f"r{i}" for i in range(len(runs))]
    runs["failed"] = rng.random(120) < runs["model_name"].map({"good": 0.3, "fair": 0.5, "poor": 0.7})
    related = runs["failed"] & (rng.random(120) < 0.9)
    of_model = runs["model_name"].eq("poor") & (rng.random(120) < 0.9)
    events = {"related": related, "of_model": of_model}
    found = pd.concat([runs.loc[has, ["run_id"]].assign(event=name) for name, has in events.items()])
    table = contrast_of(runs, found, dict.fromkeys(events, "")).set_index("event")
    assert table["across_models"].all()
    assert table["decided"].to_dict() == {"related": True, "of_model": False}
    assert table["estimate"].to_dict() == pytest.approx({"related": 0.9, "of_model": 0.0}, abs=0.15)
    assert (table["failed_share"] - table["successful_share"]).to_numpy() == pytest.approx(table["estimate"])


@pytest.mark.parametrize("cell", [cell for cell in planted.POWER if cell[1] >= 10])
def test_an_event_that_is_far_more_frequent_in_failed_runs_is_claimed_in_few_tasks(cell):
    assert planted.power(4, 1, *cell) >= 3


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (
            {"a": "10", "b": "01", "c": "110"},
            "no event occurred in the 3 tasks with both outcomes.",
        ),
        ({"a": "10", "b": "00"}, "only one task has transcripts of both."),
        ({"a": "11", "b": "00"}, "no task has transcripts of both."),
        ({"a": "1f", "b": "s0"}, "no task has transcripts of both."),
    ],
)
def test_a_contrast_without_events_says_why(tmp_path, rows, reason):
    runs = []
    for task, outcomes in rows.items():
        for outcome in outcomes:  # "s" and "f" are a success and a failure without a transcript
            row = {"task_id": task, "model": "elm", "success": outcome in "1s"}
            if outcome in "10":
                row["messages"] = [{"role": "user", "content": "Four?"}, {"role": "assistant", "content": "Yes."}]
            runs.append(row)
    (tmp_path / "runs.jsonl").write_text("\n".join(map(json.dumps, runs)))
    [found] = [one for one in failures.findings(evalkit.load(tmp_path)) if one.code == "contrast"]
    assert found.template(**found.values).endswith(f": {reason}")


def test_two_runs_of_a_task_part_at_their_first_different_call(tmp_path):
    rows = []
    for succeeded, second in ((False, "b"), (True, "c")):
        chat = planted.Chat(random.Random(1), is_code=False)
        chat.style = "ids"
        chat.call("a", {}, "one")
        chat.call(second, {}, "two")
        rows.append({"task_id": "t", "model": "alder", "success": succeeded, "messages": chat.messages})
    (tmp_path / "runs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    [row] = failures.divergences(evalkit.load(tmp_path)).to_dict("records")
    assert (row["same_calls"], row["next_a"], row["next_b"], row["turn_a"], row["turn_b"]) == (1, "b {}", "c {}", 5, 5)


def test_error_texts_that_differ_in_names_and_numbers_are_one_group(tmp_path):
    rows = []
    for i in range(4):
        chat = planted.Chat(random.Random(i), is_code=False)
        chat.style = "ids"
        chat.call("a", {"n": i}, f"Error: no file '/data/x{i}/y.csv' for user 'u{i}' at (1{i}, 2, 3)")
        chat.call("b", {"n": i}, "Error: the connection was refused")
        rows.append({"task_id": f"t{i}", "model": "alder", "success": False, "messages": chat.messages})
    (tmp_path / "runs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    groups = failures.error_groups(evalkit.load(tmp_path))
    assert groups["calls"].tolist() == [4, 4]
    assert set(groups["cause"]) == {"not found", "connection"} or len(groups) == 2
    assert groups["turn"].notna().all()


MASKED = {
    '{"error": "tank is empty", "code": 3}': "tank is empty",
    "{'status': 'failed', 'reason': 'tank is leaking'}": "tank is leaking",
    'Error 500: {"detail": {"message": "pump 4 is off", "at': "Error <n>: pump <n> is off",
    '{"ok": false, "error": "pump_not_found"}': "pump_not_found",
    '{"failed": true, "result": "the hose is gone"}': "{failed: true, result: the hose is gone}",
    "Won't water Ben's roses: they're Eve's": "Won't water Ben's roses: they're Eve's",
    "No plant 'red rose' in \"the garden behind the old house\"": "No plant <name> in <name>",
    "Error: 'the hose is gone'": "Error: 'the hose is gone'",
}


@pytest.mark.parametrize("text", MASKED)
def test_a_masked_error_text_keeps_its_message(text):
    assert failure_modes.masked_text(text) == MASKED[text]


@pytest.mark.parametrize("kind", ["mindcraft/runs", "crafter", "steps", "trajectories"])
def test_samples_of_every_kind_have_findings_and_a_text_on_one_screen(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        logs = evalkit.load(f"samples:{kind}")
        text = failures.describe_failures(logs)
    assert text.splitlines()
    assert set(failures.events(logs)["event"]) <= {one.name for one in failures.detectors(logs.kind)}
