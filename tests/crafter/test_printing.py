import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.crafter import evaluate_all_traces, evaluate_trace, print_evaluation_summary, print_trace_evaluation
from tests.crafter.traces import config, environment, hook, runtime, trace, write

INVALID = hook("invalid_action", action="noop")
EASY = hook("easy_achievement", ["collect_wood"])
HARD = hook("hard_achievement", ["defeat_zombie"])


@pytest.fixture
def folder(tmp_path):
    good = [*[runtime(i, [INVALID]) for i in range(5)], environment(5, [EASY]), environment(6, [EASY])]
    good += [runtime(7 + i, [INVALID]) for i in range(4)]
    write(tmp_path, trace(*good, metadata=[config(model_name="alder", difficulty="easy")]), "session_b.json")
    write(
        tmp_path,
        trace(environment(0, [HARD]), metadata=[config(model_name="birch", difficulty="hard")]),
        "session_a.json",
    )
    write(tmp_path, trace(metadata=[config(model_name="birch", difficulty="hard")]), "session_c.json")
    write(tmp_path, {"other": 1}, "config.json")
    (tmp_path / "session_d.json").write_text('{"session_id": ')
    (tmp_path / "notes.txt").write_text("not asked for")
    (tmp_path / "below").mkdir()
    write(tmp_path / "below", trace(environment(0, [HARD])), "session_e.json")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(main, ["crafter", *map(str, arguments)])


def test_a_trace_is_printed_in_the_agreed_form(folder, capsys):
    print_trace_evaluation(evaluate_trace(folder / "session_b.json"))
    assert capsys.readouterr().out == (
        "📊 Trace: session_b.json\n"
        "   Score: 1.55\n"
        "   Events: 11\n"
        "   Breakdown:\n"
        "     Easy achievements: 2 × 1.0 = 2.00\n"
        "     Invalid actions: 9 × -0.05 = -0.45\n"
        "   Trajectory: -----++----\n"
    )


def test_five_keys_are_enough_to_print(capsys):
    result = {
        "total_score": 1.0,
        "counts": {"easy_achievement": 1},
        "trajectory": "+",
        "num_events": 3,
        "trace_file": "x",
    }
    print_trace_evaluation(result)
    print_evaluation_summary([result], by=["model_name"])
    assert "     Easy achievements: 1 × 1.0 = 1.00\n" in capsys.readouterr().out


def test_own_weights_are_printed_as_they_were_used(folder, capsys):
    print_trace_evaluation(evaluate_trace(folder / "session_a.json", {"hard_achievement": 7.5}))
    assert "     Hard achievements: 1 × 7.5 = 7.50\n" in capsys.readouterr().out


def test_a_score_of_zero_has_no_sign(tmp_path, capsys):
    events = [environment(0, [EASY]), *[runtime(i, [INVALID]) for i in range(20)]]
    print_trace_evaluation(evaluate_trace(write(tmp_path, trace(*events))))
    assert "   Score: 0.00\n" in capsys.readouterr().out


def test_doubts_stand_below_the_trajectory(tmp_path, capsys):
    event = runtime(0, [INVALID], actions=[1, 2])
    error = {"metadata_type": "error", "data": {}}
    print_trace_evaluation(evaluate_trace(write(tmp_path, trace(event, environment(), metadata=[error]))))
    *_, trajectory, suspect, flags = capsys.readouterr().out.splitlines()
    assert trajectory == "   Trajectory: -"
    assert suspect == "   Suspect: 1 of 1 invalid actions, judged over turns of several actions"
    assert flags == "   Flags: error entry"


def test_a_broken_trace_is_printed_with_its_cause(folder, capsys):
    print_trace_evaluation(evaluate_trace(folder / "session_d.json"))
    assert capsys.readouterr().out == (
        "📊 Trace: session_d.json\n   Error: JSONDecodeError: Input data was truncated\n"
    )


def test_a_folder_is_printed_as_answer_top_three_ranking_and_ledger(folder, capsys):
    print_evaluation_summary(evaluate_all_traces(folder))
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[:2] == [
        "📈 4 traces of 3 models",
        "   Mean score: 3.85 [-1.10, 8.80] (95 % interval, n = 3)",
    ]
    for line in (
        "   Note: fewer than 5 independent values: a rough interval",
        "   Aborted: 1 of 4, left out; mean score with 1 at 0: 2.89 [-1.12, 6.90]",
        "   Range: 1.55 to 5.00",
        "   Median: 5.00",
        "   Standard deviation: 1.99",
        "   Positive: 3 of 3, 100 % [44, 100]",
        "   Zero: 0 of 3, 0 % [0, 56]",
        "   Negative: 0 of 3, 0 % [0, 56]",
        "   Easy achievements: 2 × 1.0 = 2.00",
        "   Medium achievements: 0 × 2.5 = 0.00",
        "   Hard achievements: 2 × 5.0 = 10.00",
        "   Invalid actions: 9 × -0.05 = -0.45",
        "   Total: 11.55 points",
        "     Excellent: 2 (multiple achievements)",
        "     Good: 1 (some achievements)",
        "     Limited: 0 (few achievements)",
        "   Flags: aborted 1, duplicate session 4",
        "   1    5.00 points  session_e.json: 1 hard",
        "   3    1.55 points  session_b.json: 2 easy, 9 invalid",
        "📁 6 files: 4 used, 1 skipped, 1 failed",
    ):
        assert f"{line}\n" in out
    ranking = [line.split() for line in lines[lines.index("🏆 Traces by score") + 2 :][:4]]
    assert ranking == [
        ["1", "5.00", "+", "session_e.json"],
        ["2", "5.00", "+", "session_a.json"],
        ["3", "1.55", "-----++----", "session_b.json"],
        ["–", "(aborted:", "no", "events)", "session_c.json"],
    ]
    assert "config.json: not a session trace: neither session_id nor event_history is there\n" in out
    assert "session_d.json: JSONDecodeError" in out


def test_results_without_a_ledger_name_what_was_not_read(folder, capsys):
    print_evaluation_summary([evaluate_trace(folder / name) for name in ("session_d.json", "session_a.json")])
    assert "   not read: session_d.json: JSONDecodeError" in capsys.readouterr().out
    print_evaluation_summary([])
    assert capsys.readouterr().out == "📈 no traces\n"


def test_many_files_left_out_for_one_reason_are_counted_and_few_are_named(folder, capsys):
    for i in range(6):
        write(folder, [1], f"list_{i}.json")
    print_evaluation_summary(evaluate_all_traces(folder))
    out = capsys.readouterr().out
    assert out.count("not a session trace: a JSON list") == 1
    assert f"   skipped: 6 files, such as {folder}/list_0.json: not a session trace: a JSON list\n" in out
    assert f"   failed: {folder}/session_d.json: JSONDecodeError" in out


def test_the_command_scores_a_folder_and_breaks_it_down(folder):
    result = run(folder, "--by-difficulty")
    assert result.exit_code == 0
    lines = [line.split() for line in result.output.splitlines()]
    assert ["alder", "1", "1.55", "–", "2.00", "0.00", "0.00", "9.00"] in [line[:8] for line in lines]
    assert ["hard", "1", "5.00", "–", "0.00", "0.00", "1.00", "0.00"] in [line[:8] for line in lines]
    assert "Breakdown" not in result.output
    assert run(folder, "--verbose").output.count("   Breakdown:\n") == 4


def test_groups_leave_aborted_traces_out_and_give_the_means_with_them(tmp_path):
    for i, events in enumerate([[environment(0, [HARD])], [environment(0, [HARD])], []]):
        write(tmp_path, trace(*events, metadata=[config(model_name="alder", difficulty="hard")]), f"{i}.json")
    write(tmp_path, trace(metadata=[config(model_name="birch", difficulty="easy")]), "3.json")
    write(tmp_path, trace(environment(0, [EASY]), metadata=[config(model_name="cedar", difficulty="easy")]), "4.json")
    lines = [line.split() for line in run(tmp_path, "--by-difficulty").output.splitlines()]
    starts = [line[:8] for line in lines]
    for name in ("alder", "hard"):
        at = starts.index([name, "2", "5.00", "–", "0.00", "0.00", "1.00", "0.00"])
        assert " ".join(lines[at][8:]) == "all values are equal: their spread can't be estimated; left out: 1 aborted"
        assert lines[at + 1] == ["with", "1", "aborted", "at", "0", "3", "3.33", "[-3.84,", "10.50]"]
    at = starts.index(["birch", "0", "–", "–", "–", "–", "–", "–"])
    assert " ".join(lines[at][8:]) == "no trace has a score; left out: 1 aborted"
    assert lines[at + 1] == ["with", "1", "aborted", "at", "0", "1", "0.00", "–"]
    at = starts.index(["cedar", "1", "1.00", "–", "1.00", "0.00", "0.00", "0.00"])
    assert lines[at + 1] == []


def test_the_command_scores_one_file_and_writes_results(folder, tmp_path):
    result = run(folder / "session_b.json", "--output", tmp_path / "out.json")
    assert result.output.startswith("📊 Trace: session_b.json\n   Score: 1.55\n")
    content = json.loads((tmp_path / "out.json").read_text())
    assert content["results"][0]["counts"] == {"easy_achievement": 2, "invalid_action": 9}
    assert content["ledger"][0]["status"] == "used"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{folder}/no"], "no such file or folder"),
        (["{folder}", "--pattern", "x*"], "no file matches x* (7 other files; 4 look like Crafter session traces)"),
        (["{folder}", "--pattern", "config*"], "of no kind that evalkit knows): not a session trace: neither session"),
        (
            ["{folder}/session_d.json"],
            "session_d.json: no Crafter session trace could be read in it (1 file, broken or",
        ),
        (["{folder}/session_d.json"], ": JSONDecodeError: Input data was truncated"),
        (
            ["{folder}/below", "--no-recursive", "--pattern", "x*"],
            "no file matches x* (1 other file; 1 looks like a Crafter",
        ),
        (["{folder}", "--output", "{folder}/no/out.json"], "out.json: no folder"),
    ],
)
def test_a_source_that_cannot_be_used_is_one_line_and_exit_2(folder, arguments, message):
    result = run(*[argument.format(folder=folder) for argument in arguments])
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output + result.stderr


def test_text_of_traces_can_not_steer_a_terminal(tmp_path):
    write(tmp_path, trace(environment(0, [EASY]), metadata=[config(model_name="\x1b[31mred\u202e")]), "a\x1b]0;x.json")
    write(tmp_path, trace(environment(0, [EASY]), metadata=[config(model_name="plain")]), "b.json")
    output = run(tmp_path, "--verbose").output
    assert "\x1b" not in output
    assert "\u202e" not in output


def test_python_m_is_the_same_command_also_where_the_terminal_knows_ascii_only(folder):
    command = [sys.executable, "-m", "evalkit", "crafter", str(folder / "session_b.json")]
    out = subprocess.run(command, capture_output=True, check=True, env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": "."})
    assert out.stdout.startswith(b"? Trace: session_b.json")
