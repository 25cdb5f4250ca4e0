"""`load`, and errors where nothing could be used, detect kinds of logs from the first bytes of files."""

import json
import pickle
from importlib.metadata import EntryPoint

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evalkit
from evalkit.io import SourceError, decode_start
from evalkit.kinds import load, names
from evalkit.kinds.detection import HEAD, describe_source, kind_of_source, recognise
from tests.io.test_decode import json_values
from tests.kinds.toy import TOY
from tests.mindcraft.builders import write_all

MESSAGE = {"role": "assistant", "content": "hello"}
MESSAGES = [{"role": "system", "content": "Task ended with score : 1"}, MESSAGE]
TRACE = {"session_id": "a", "session_metadata": [], "event_history": []}


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ({"session_id": "a", "session_metadata": [], "event_history": [{"messages": [MESSAGE]}]}, "crafter"),
        ({"execution_history": [{"step_index": 0, "messages": [MESSAGE]}]}, "steps"),
        ({"anything": 1}, ""),
        ({"memory": "", "turns": MESSAGES, "self_prompt": None}, "mindcraft"),
        (MESSAGES, "mindcraft"),
        ({"memory": "", "turns": []}, "mindcraft"),
        ({"name": "Andy", "turns": [{"role": "user", "content": "x" * 100_000}]}, "mindcraft"),
        ({"id": 1, "messages": MESSAGES}, "trajectories"),  # a chat
        ([{"messages": MESSAGES}], "trajectories"),
        ({"rollout": {"turns": 12, "chat": MESSAGES}}, ""),
        ({"turns": 12, "messages": MESSAGES}, "trajectories"),
        ({"turns": [{"speaker": "Andy", "text": "hello"}]}, ""),
        ([{**MESSAGE, "tool_calls": [{"function": {"name": "f"}}]}], ""),
        (TRACE, "crafter"),
        ({"note": '"event_history" and "turns": [', "x": "x" * 100_000, **TRACE}, ""),
        ({"session_metadata": {}, "messages": MESSAGES}, "trajectories"),
        ([{"timestamp": 1, "function_name": "f", "success": True}], "steps"),
        ([{"tool": {"function_name": "f"}}], ""),
        ([{"question_id": "q1", "llm": "a", "success": False, "error": "time-out"}], "trajectories"),
        ([{"task": "q1", "model": "a", "result": "fail", "step": 3}], "trajectories"),
        ([{"task_id": "q1", "model": "a", "function_name": "sum", "success": True}], "trajectories"),
        ({"step": {"function_name": "f"}, "success": True, "model": "a"}, "steps"),
        ({"function_name": "f", "parameters": {}, "result_summary": "3 rows"}, "steps"),
        ([{"step": "load", "success": True}], "steps"),
        ([{"step": "load", "success": True, "task": "q1", "model": "a"}], "trajectories"),
    ],
)
def test_a_kind_is_recognised_by_the_structure_that_it_needs(content, kind):
    look = recognise(json.dumps(content).encode()[:HEAD])
    assert (look.kind if look else "") == kind


@given(json_values, st.integers(0))
def test_the_beginning_of_a_file_is_decoded_wherever_it_is_cut(value, at):
    data = json.dumps(value).encode()
    whole, start = decode_start(data), decode_start(data[: at % (len(data) + 1)])
    assert whole == (value if isinstance(value, (list, dict)) else None)
    assert start is None or type(start) is type(value)


LOG = {"memory": "", "turns": [{"role": "user", "content": ""}]}


def test_counts_of_some_files_are_not_stated_as_counts_of_all_and_no_folder_or_ending_is_left_out(tmp_path):
    write_all(tmp_path, {**{f"{number:03}.json": LOG for number in range(260)}, "z/trace.json": TRACE})
    (tmp_path / "003z.csv").write_text("model,task,score\na,t,1\n")  # none of the 200 by its place
    match = "read the others: --kind crafter or --kind trajectories; 200 of the files were looked at"
    with pytest.warns(UserWarning, match=match):
        assert kind_of_source(tmp_path).name == "mindcraft"


@pytest.mark.parametrize(
    ("files", "pattern", "message"),
    [
        ({}, "", "no toy game in it: there is no file"),
        ({"a.txt": "x"}, "*.json", "no file matches *.json (1 other file)"),
        (
            {"a.txt": LOG, "b.txt": LOG, "c.txt": TRACE, "d.txt": ""},
            "*.json",
            "no file matches *.json (4 other files; 2 look like Mindcraft agent logs, 1 looks like a Crafter session "
            "trace); `evalkit mindcraft` and `evalkit crafter` read those",
        ),
        (
            {"a.json": TRACE},
            "",
            "no toy game could be read in it (1 file; 1 looks like a Crafter session trace); `evalkit crafter` reads "
            "those: not a game",
        ),
        (
            {"a.json": {"episode_return": 1.0, "progression": 0.1}},
            "",
            "(1 file; 1 looks like a Crafter benchmark file); `evalkit.crafter.benchmark.crafter_scores` reads those",
        ),
        ({"a.json": "{"}, "", "(1 file, broken or of no kind that evalkit knows): JSONDecodeError"),
    ],
)
def test_the_error_for_unusable_sources_names_what_is_there_and_what_reads_it(tmp_path, files, pattern, message):
    with pytest.raises(SourceError) as raised:
        load(write_all(tmp_path, files), TOY, pattern=pattern)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("name", "content", "cause"),
    [
        (
            "results.json",
            {"info": {"agent_info": {}, "num_trials": 1}, "tasks": []},
            "simulations are in separate files",
        ),
        ("runs.csv", "model,task,score\n", "a table without rows"),
    ],
)
def test_logs_without_a_run_are_not_called_broken(tmp_path, name, content, cause):
    with pytest.raises(SourceError, match=f"could be read in it \\(1 file\\): {cause}$"):
        evalkit.load(write_all(tmp_path, {name: content}))


def test_options_are_those_of_the_kind(tmp_path):
    assert evalkit.load("samples:craft*", counting="hook").episodes["score"].sum() < 268
    with pytest.raises(SourceError, match="mindcraft logs have no option 'counting'; there are 'tasks'"):
        evalkit.load("samples:mindcraft/runs", counting="hook")
    with pytest.raises(SourceError, match="trajectories logs have no option 'scores'; did you mean 'score'"):
        evalkit.trajectories.load("samples:trajectories", scores="reward")
    with pytest.raises(SourceError, match="it contains no file"):
        evalkit.load(tmp_path)
    with pytest.raises(SourceError, match=r"^the source is empty: "):  # an unset variable of a shell
        evalkit.load("")


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("tests.kinds.gone:KIND", "ModuleNotFoundError"),
        ("tests.kinds.toy:GAMES", "'tuple' object has no attribute 'name'"),
        ("tests.kinds.toy:TOY", "it calls itself 'toy'"),
    ],
)
def test_a_kind_of_another_package_that_is_none_is_named_and_left_out(monkeypatch, place, words):
    monkeypatch.setattr(names, "_entry_points", lambda *_: {"own": EntryPoint("own", place, names.GROUP)})
    with pytest.raises(SourceError, match=f"kind own: {place}: .*{words}"):
        evalkit.load("samples:crafter", "own")
    with pytest.warns(UserWarning, match=words):
        assert evalkit.load("samples:crafter").kind.name == "crafter"


@pytest.mark.parametrize("kind", ["mindcraft/runs", "crafter", "steps"])
def test_logs_can_be_sent_to_another_process(kind):
    logs = evalkit.load(f"samples:{kind}")
    assert logs.kind.name == kind.partition("/")[0]
    copy = pickle.loads(pickle.dumps(logs))
    assert copy.kind is logs.kind
    assert repr(copy) == repr(logs)
    assert sorted(dir(copy)) == sorted(dir(logs))
    for name in [logs.kind.runs, *logs.kind.lazy_tables]:
        pd.testing.assert_frame_equal(getattr(copy, name), getattr(logs, name))


def test_formats_stand_behind_the_noun():
    words = "  70 look like agent trajectories (Harbor trial result): evalkit traj"
    assert words in describe_source("samples:trajectories")


def test_json_lines_of_other_columns_say_what_is_missing_and_hide_no_logs(tmp_path):
    write_all(tmp_path, {"other.jsonl": '{"name": "x", "size": 1}\n{"name": "y", "size": 2}\n'})
    with pytest.raises(SourceError, match="no column for the task_id; there are name, size; choose one"):
        evalkit.load(tmp_path)
    assert evalkit.load(write_all(tmp_path, {"log.json": LOG})).kind.name == "mindcraft"
