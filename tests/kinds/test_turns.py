"""A turn has one number: pages, `evalkit show`, findings, links and frames all give the same."""

import json
import re
import warnings

import pandas as pd
import pytest

import evalkit
from evalkit.evidence import reference
from evalkit.evidence.pages import run_page
from evalkit.kinds.transcript import TURNS
from evalkit.steps.analysis import coverage, findings
from evalkit.trajectories.transcript import opened_file
from tests.mindcraft.builders import SCORE, turn, write, write_all
from tests.steps.test_checkpoints import database, thread
from tests.trajectories import folders as make

SAMPLES = ("mindcraft/runs", "crafter", "steps", "trajectories/harbor", "trajectories/inspect", "trajectories/tau2")


@pytest.fixture(scope="module", params=SAMPLES)
def logs(request):
    where = "repetition=1" if request.param == "mindcraft/runs" else ""
    return evalkit.load(f"samples:{request.param}", where=where)


def test_the_frame_of_turns_has_the_numbers_of_pages_and_of_show(logs):
    assert "turns" in dir(logs)
    assert list(logs.turns) == [column.name for column in TURNS]
    assert set(logs.turns["run_id"]) == set(logs.runs["run_id"])
    for run in logs.runs.head(3).to_dict("records"):
        rows = logs.turns[logs.turns["run_id"] == run["run_id"]]
        shown = logs.show(run["run_id"])
        assert rows["turn"].tolist() == list(range(1, len(shown.turns) + 1))
        assert rows["text"].tolist() == [turn.text for turn in shown.turns]
        assert [turn.shown for turn in shown.turns] == [turn.text for turn in shown.turns]  # the texts have the calls
        page = run_page(reference(logs, run), shown)
        assert list(map(int, re.findall(r'<li id="t(\d+)"', page))) == rows["turn"].tolist()
        first_lines = re.findall(r"^(\d+) . ", shown.text(), flags=re.MULTILINE)
        assert list(map(int, first_lines)) == rows["turn"].tolist()
        last = shown.text(last=1).splitlines()[4]
        assert last.startswith(f"{len(shown.turns)} ")


@pytest.mark.parametrize(
    ("source", "options", "expected"),
    [
        ("samples:mindcraft/runs", {"where": "task_type=construction"}, {"target": "blueprint", "repetition": "0"}),
        ("samples:mindcraft/runs", {"where": "task_type=techtree"}, {"scorer": "final message in the log"}),
        ("samples:crafter", {}, {"target": "not recorded", "scorer": "points for achievements"}),
        ("samples:steps", {}, {"repetition": "not recorded", "scorer": "share of confirmed steps"}),
        ("samples:trajectories/harbor", {}, {"target": "not recorded"}),
        ("samples:trajectories/inspect", {}, {}),
        ("laps.csv", {"columns": "score=laps"}, {"model": "pike", "scorer": "laps", "target": "not recorded"}),
        ("laps.csv", {"columns": ["score=secs", "success=won"]}, {"scorer": "won and secs", "score": "7"}),
    ],
)
def test_what_was_expected_of_a_run_is_stated_for_every_kind(tmp_path, monkeypatch, source, options, expected):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "laps.csv").write_text("model,task,laps,secs,won\npike,a,3,7,1\npike,b,4,9,0\n")
    logs = evalkit.load(source, **options)
    run = logs.runs.iloc[0].to_dict()
    facts = dict(reference(logs, run).facts)
    assert {"model", "target", "score", "scorer", "repetition"} <= set(facts)
    assert facts | expected == facts
    assert {f"{name} {text}" for name, text in expected.items()} <= set(logs.show(run["run_id"]).facts)


def test_steps_checks_results_and_findings_give_the_turn_of_a_result(tmp_path):
    data = database([thread("one"), thread("two")])
    (tmp_path / "c.sqlite").write_bytes(data)
    for logs in (evalkit.load("samples:steps"), evalkit.load(tmp_path)):
        turns = logs.turns.set_index(["run_id", "turn"])
        steps = logs.steps
        for frame in (steps, logs.checks, logs.results):
            shown = turns.loc[list(zip(frame["run_id"], frame["turn"], strict=True))]
            assert (shown["role"] == "result").all()
            assert shown["agent"].tolist() == frame["function_name"].fillna("").tolist()
        run = coverage(logs.histories).query("status != 'not run'")
        shown = turns.loc[list(zip(run["run_id"], run["turn"], strict=True))]
        assert shown["agent"].tolist() == run["analysis"].tolist()
        results = turns[turns["role"] == "result"]
        assert list(results.index) == list(zip(steps["run_id"], steps["turn"], strict=True))
        examples = [example for finding in findings(logs) for example in finding.examples]
        assert all(example.label.endswith(turns.loc[(example.run_id, example.turn), "agent"]) for example in examples)


def test_messages_and_calls_of_tools_give_the_turn_that_shows_them():
    for name in ("harbor", "inspect", "tau2", "swe-agent"):
        logs = evalkit.load(f"samples:trajectories/{name}")
        text = logs.turns.set_index(["run_id", "turn"])["text"]
        for row in logs.messages.to_dict("records"):
            calls = row["tool_calls"] > 0
            shown = text.loc[(row["run_id"], row["turn"])]
            assert shown == (row["reasoning"] or row["text"]) or (calls and not row["reasoning"] + row["text"])
        for row in logs.tool_calls.to_dict("records"):
            assert text.loc[(row["run_id"], row["turn"])] == f"{row['name']} {row['arguments']}".strip()


HEARD = turn("user", "Jill: (FROM OTHER BOT)hi !come")


def test_messages_and_commands_of_agents_give_the_turn_that_shows_them(tmp_path):
    files = {
        "e/t/Andy_0_0.json": {"turns": [turn("assistant", "hello !go(1, 2)"), HEARD, turn("system", [1]), 7]},
        "e/t/Jill_1_0.json": {"turns": [turn("assistant", "hi !come then !stop"), turn("system", f"{SCORE}1")]},
        "e/t/Zoe_2_0.json": "",
        "e/t/Abe_3_0.json": "[",
        "e/u/Andy_0_0.json": {"turns": [HEARD, turn("assistant", None), turn("assistant", "!alone")]},
        "e/v/Andy_0_0.json": "",
        "e/w/Andy_0_0.json": {"turns": []},
    }
    for path, content in files.items():
        write(tmp_path / path, content)
    for source, options in ((tmp_path, {}), ("samples:mindcraft/runs", {"where": "experiment=birch_cooking"})):
        check_messages(evalkit.load(source, "mindcraft", **options))


def check_messages(logs):
    """Check that messages and commands join to turns, and that only turns of unreadable logs have no message."""
    with warnings.catch_warnings(action="ignore"):  # turns: a run with only an unreadable log has none
        turns = logs.turns.set_index(["run_id", "turn"])
    assert not turns.index.has_duplicates
    keys = list(zip(logs.messages["run_id"], logs.messages["turn"], strict=True))
    assert len(set(keys)) == len(keys)
    shown = turns.loc[keys]
    assert shown["role"].tolist() == logs.messages["role"].tolist()
    for text, content in zip(shown["text"], logs.messages["content"], strict=True):
        assert text == content or (pd.isna(content) and (text.startswith("(no text: ") or text == "7"))
    others = turns[~turns.index.isin(keys)]
    assert all(marks == ["unreadable log"] for marks in others["marks"])
    commands = logs.commands
    assert len(commands) >= 4
    shown = turns.loc[list(zip(commands["run_id"], commands["turn"], strict=True))]
    for name, arguments, text in zip(commands["command"], commands["arguments"], shown["text"], strict=True):
        assert (name if pd.isna(arguments) else f"{name}({arguments})") in text


def test_agents_are_named_in_runs_of_one_agent_and_of_several(tmp_path):
    heard = turn("user", "Jill: (FROM OTHER BOT)hi")
    files = {"e/t/Andy_0_0.json": {"turns": [turn("assistant", "hello"), heard]}}
    files["e/t/Jill_1_0.json"] = {"turns": [turn("assistant", "hi"), turn("system", f"{SCORE}1")]}
    files["e/u/Andy_0_0.json"] = {"turns": [turn("assistant", "alone")]}
    logs = evalkit.load(write_all(tmp_path, files), "mindcraft")
    assert set(logs.turns["agent"]) == set(logs.agents["agent_name"])
    assert logs.turns.set_index("text").loc[["hello", "alone"], "agent"].nunique() == 1


def test_conditions_select_turns_too(tmp_path):
    make.write(tmp_path / "results.json", make.tau2(*(make.simulation(f"t{n}", 0, 1.0) for n in range(3))))
    logs = evalkit.load(tmp_path, where="task_id=t1", rename={"gpt-4o": "renamed"})
    assert set(logs.turns["run_id"]) == set(logs.runs["run_id"])
    assert len(logs.runs) == 1


def test_a_file_of_many_runs_is_decoded_once_for_their_turns(tmp_path):
    make.write(tmp_path / "results.json", make.tau2(*(make.simulation(f"t{n}", 0, 1.0) for n in range(5))))
    logs = evalkit.load(tmp_path)
    opened_file.cache_clear()
    assert logs.turns["run_id"].nunique() == 5
    assert opened_file.cache_info().misses == 1


def test_a_run_whose_file_is_gone_has_no_turns_and_a_warning_names_it(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.json").write_text(json.dumps([{"step": {"function_name": name}, "success": True}]))
    logs = evalkit.load(tmp_path, "steps")
    (tmp_path / "a.json").unlink()
    (tmp_path / "b.json").write_text("{")
    with pytest.warns(UserWarning, match=r"no turns of 2 runs: .*a\.json.*; and 1 other run$"):
        turns = logs.turns
    assert set(turns["agent"]) == {"agent", "c"}
