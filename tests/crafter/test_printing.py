"""The functions of trace_eval that print, and the command; golden texts hold the wording of whole summaries."""

import json
import runpy
from pathlib import Path

import pytest
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.crafter import evaluate_all_traces, evaluate_trace, print_evaluation_summary, print_trace_evaluation
from tests.crafter.traces import config, environment, hook, runtime, trace, write

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "score_crafter.py"
INVALID = hook("invalid_action", action="noop")
EASY = hook("easy_achievement", ["collect_wood"])
HARD = hook("hard_achievement", ["defeat_zombie"])


@pytest.fixture
def folder(tmp_path):
    alder, birch = [config(model_name=name, difficulty="hard") for name in ("alder", "birch")]
    good = [*[runtime(i, [INVALID]) for i in range(5)], environment(5, [EASY]), environment(6, [EASY])]
    good += [runtime(7 + i, [INVALID]) for i in range(4)]
    write(tmp_path, trace(*good, metadata=[alder]), "session_b.json")
    write(tmp_path, trace(environment(0, [HARD]), metadata=[birch]), "session_a.json")
    write(tmp_path, trace(metadata=[birch]), "session_c.json")
    write(tmp_path, {"other": 1}, "config.json")
    (tmp_path / "session_d.json").write_text('{"session_id": ')
    (tmp_path / "below").mkdir()
    write(tmp_path / "below", trace(environment(0, [HARD])), "session_e.json")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(main, ["crafter", *map(str, arguments)])


def printed(result, capsys):
    print_trace_evaluation(result)
    return capsys.readouterr().out


def test_a_trace_is_printed_in_the_agreed_form_by_function_and_command(folder, capsys):
    text = (
        "📊 Trace: session_b.json\n"
        "   Score: 1.55\n"
        "   Events: 11\n"
        "   Breakdown:\n"
        "     Easy achievements: 2 × 1.0 = 2.00\n"
        "     Invalid actions: 9 × -0.05 = -0.45\n"
        "   Trajectory: -----++----\n"
    )
    assert printed(evaluate_trace(folder / "session_b.json"), capsys) == text
    result = run(folder / "session_b.json", "--output", folder / "out.json")
    assert result.output.startswith(text)
    content = json.loads((folder / "out.json").read_text())
    assert content["results"][0]["counts"] == {"easy_achievement": 2, "invalid_action": 9}
    assert content["ledger"][0]["status"] == "used"


def test_weights_doubts_and_errors_are_printed_as_they_are(folder, capsys):
    own = evaluate_trace(folder / "session_a.json", {"hard_achievement": 7.5})
    assert "     Hard achievements: 1 × 7.5 = 7.50\n" in printed(own, capsys)
    error = {"metadata_type": "error", "data": {}}
    doubtful = trace(runtime(0, [INVALID], actions=[1, 2]), environment(), metadata=[error])
    assert printed(evaluate_trace(write(folder, doubtful)), capsys).splitlines()[-3:] == [
        "   Trajectory: -",
        "   Suspect: 1 of 1 invalid actions, judged over turns of several actions",
        "   Flags: error entry",
    ]
    five = {"total_score": 1.0, "counts": {"easy_achievement": 1}, "trajectory": "+", "num_events": 3}
    assert "     Easy achievements: 1 × 1.0 = 1.00\n" in printed(five | {"trace_file": "x"}, capsys)
    broken = "📊 Trace: session_d.json\n   Error: JSONDecodeError: Input data was truncated\n"
    assert printed(evaluate_trace(folder / "session_d.json"), capsys) == broken


def test_a_folder_is_printed_as_answer_top_three_ranking_and_ledger(folder, capsys):
    print_evaluation_summary(evaluate_all_traces(folder))
    out = capsys.readouterr().out
    lines = out.splitlines()
    for line in (
        "All traces: mean score 3.85 [-1.10, 8.80] (n = 3); fewer than 5 independent values: a rough interval",
        "Aborted: 1 of 4, left out; mean score with 1 at 0: 2.89 [-1.12, 6.90]",
        "Flags: aborted 1, duplicate session 4",
        "4 traces; 6 files: 4 used, 1 skipped, 1 failed",
    ):
        assert line in lines
    ranking = [line.split() for line in lines[[line.split()[:2] for line in lines].index(["rank", "score"]) + 2 :][:4]]
    assert ranking == [
        ["1", "5.00", "+", "session_e.json"],
        ["2", "5.00", "+", "session_a.json"],
        ["3", "1.55", "-----++----", "session_b.json"],
        ["–", "–", "(aborted:", "no", "events)", "session_c.json"],
    ]
    assert "config.json: not a session trace: neither session_id nor event_history is there\n" in out
    assert "session_d.json: JSONDecodeError" in out
    assert run(folder, "--verbose").output.count("   Breakdown:\n") == 4
    print_evaluation_summary([evaluate_trace(folder / name) for name in ("session_d.json", "session_a.json")])
    assert "   not read: session_d.json: JSONDecodeError" in capsys.readouterr().out
    print_evaluation_summary([])
    assert capsys.readouterr().out == "no traces\n"


def test_the_example_scores_a_trace_a_folder_and_with_own_weights(tmp_path, capsys):
    hard = environment(0, [HARD])
    write(tmp_path, trace(hard, runtime(0, [hook("invalid_action")])), "a.json")
    write(tmp_path, trace(hard), "b.json")
    runpy.run_path(str(EXAMPLE))["main"](str(tmp_path))
    out = capsys.readouterr().out
    assert out.startswith("📊 Trace: a.json\n   Score: 4.95\n")
    assert "   1   5.00  +           b.json\n   2   4.95  +-          a.json\n" in out
    assert out.endswith("    10.00, was   4.95  a.json\n    10.00, was   5.00  b.json\n")
