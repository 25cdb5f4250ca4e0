"""Command, printing, results and following give one answer (for all kinds: tests/test_same_answer_everywhere.py)."""

import os
import runpy
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from evalkit import compare, crafter
from evalkit.cli import main
from evalkit.crafter import analysis, evaluate_all_traces, evaluate_trace, load
from evalkit.crafter import print_evaluation_summary as print_summary
from evalkit.crafter import print_trace_evaluation as print_trace
from evalkit.crafter.kind import KIND
from evalkit.display.follow import Following
from tests.crafter.traces import config, environment, hook, runtime, trace, write

INVALID = hook("invalid_action")
EASY, TWO = hook("easy_achievement", ["collect_wood"]), hook("easy_achievement", ["collect_wood", "place_table"])
HARD = hook("hard_achievement", ["defeat_zombie"])


def put(folder, name, *hooks, model="alder", difficulty="easy", aborted=False):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    events = [] if aborted else [environment(0, hooks), runtime(1)]
    return write(path.parent, trace(*events, metadata=[config(model_name=model, difficulty=difficulty)]), path.name)


@pytest.fixture
def folder(tmp_path):
    """Traces that tell no world, two of them of one base name, and all of one session; broken and other files."""
    good = [*[runtime(i, [INVALID]) for i in range(5)], environment(5, [TWO]), environment(6, [EASY])]
    good += [runtime(7 + i, [INVALID]) for i in range(4)]
    write(tmp_path, trace(*good, metadata=[config(model_name="alder")]), "session_b.json")
    put(tmp_path, "a/session.json", HARD, model="birch", difficulty="hard")
    put(tmp_path, "session_c.json", aborted=True)
    put(tmp_path, "e/session.json", HARD)
    write(tmp_path, {"other": 1}, "config.json")
    (tmp_path / "session_d.json").write_text('{"session_id": ')
    return tmp_path


def command(*arguments):
    result = CliRunner().invoke(main, ["crafter", *map(str, arguments)])
    assert result.exit_code == 0, result.stderr
    return result.stdout


def followed(source, recursive=True, **options):
    return Following(KIND, source, options, recursive=recursive).look().text


def test_the_command_the_function_and_following_take_the_same_options(folder, capsys):
    aborted = "1 of 2, left out; mean score with 1 at 0: 0.78 ["
    print_summary(evaluate_all_traces(folder, recursive=False, counting="hook"))
    for text in (command(folder, "--all", "--no-recursive", "--counting", "hook"), capsys.readouterr().out):
        assert "All traces: mean score 1.55 (n = 1)" in text
        assert f"Aborted: {aborted}" in text
    assert f"\naborted: {aborted}" in followed(folder, recursive=False, counting="hook")


@pytest.fixture
def budgets(tmp_path):
    """Two models in two worlds under new ids; one of them at two budgets, with more episodes of one world."""
    world = {seed: {"observation": {"world_material_map_base64": f"{seed}QIDBAME" * 60}} for seed in "AB"}
    reason = "Expected position change [1, 0], got [{}, 0]"
    rows = [("alder", 4, "A", 0), ("alder", 4, "B", 9), ("alder", 20, "A", 1), ("alder", 20, "A", 3)]
    rows += [("alder", 20, "B", 5), ("birch", 20, "A", 2), ("birch", 20, "B", 2)]
    for i, (model, turns, seed, n) in enumerate(rows):
        invalid = hook("invalid_action", action="do", reason=reason.format(i))
        events = [runtime(0, [invalid] * (n == 9), (5, 5), system_state_before=world[seed]), environment(0, [EASY] * n)]
        settings = config(model_name=model, task_instance_id=f"id-{i}", max_turns=turns)
        write(tmp_path, trace(*events, metadata=[settings], session_id=str(i)), f"{i}.json")
    return tmp_path


def test_if_budgets_differ_every_command_says_so_and_no_mean_of_a_model_spans_them(budgets):
    episodes = load(budgets).episodes
    assert episodes["task_id"].nunique() == 2
    split = analysis.mean_scores(analysis.per_budget(episodes)).set_index("model_name")
    expected = {"alder, 4 turns": (4.475, 2, 2), "alder, 20 turns": (3.5, 3, 2), "birch, 20 turns": (2.0, 2, 2)}
    assert {name: tuple(row) for name, row in split[["estimate", "n", "n_tasks"]].iterrows()} == expected
    assert list(split.index) == list(expected)  # by budget, the best at each first
    table, _ = analysis.answer_table(compare.answer_table(compare.leaderboard(episodes)), analysis.per_budget(episodes))
    assert table["model_name"].tolist() == list(expected)
    assert "Conditions differ (max turns: 4 and 20)" in command(budgets).splitlines()[1]
    for text in (command(budgets), followed(budgets)):
        assert ": 4 turns (2 episodes), 20 turns (5 episodes)" in text
        for name, row in split.iterrows():
            (line,) = [line for line in text.splitlines() if line.strip().startswith(name)]
            assert f" {row['estimate']:.2f} " in line
            assert "alder  " not in line


def test_invalid_actions_are_counted_by_action_and_reason(budgets):
    logs = load(budgets)
    (row,) = analysis.invalid_actions(logs.events).itertuples(index=False, name=None)
    reason = "Expected position change [#, #], got [#, #]"
    assert row == ("alder", "do", reason, 1, 1, 1)  # times, of these suspect, and episodes
    assert f"do                  1  {reason} (1 trace)\n" in command(budgets, "--all")
    without = analysis.mean_scores(logs.episodes)["without_suspects"]
    assert without[0] == pytest.approx((4 / 3 + 7) / 2)


def test_a_dataset_stands_for_its_folder_with_any_options(folder, tmp_path_factory):
    made = tmp_path_factory.mktemp("dataset") / "made"
    assert crafter.collect(folder, made).new == 6
    assert evaluate_all_traces(made) == evaluate_all_traces(folder)
    weights = {"weights": {"hard_achievement": 7}}
    for options in ({}, weights, {"counting": "hook"}, {"recursive": False}, {"pattern": "session.*"}):
        for frame, expected in zip(load(made, **options), load(folder, **options), strict=True):
            pd.testing.assert_frame_equal(frame, expected)


def printed(result, capsys):
    print_trace(result)
    return capsys.readouterr().out


def test_a_trace_is_printed_with_its_weights_doubts_and_errors_also_by_the_command(folder, capsys):
    whole = printed(evaluate_trace(folder / "session_b.json"), capsys)
    assert command(folder / "session_b.json").startswith(whole)
    own = evaluate_trace(folder / "a/session.json", {"hard_achievement": 7.5})
    assert "     Hard achievements: 1 × 7.5 = 7.50\n" in printed(own, capsys)
    doubtful = trace(runtime(0, [INVALID], [1, 2]), environment(), metadata=[{"metadata_type": "error", "data": {}}])
    assert printed(evaluate_trace(write(folder, doubtful)), capsys).splitlines()[-2:] == [
        "   Suspect: 1 of 1 invalid actions, judged over turns of several actions",
        "   Flags: error entry",
    ]
    broken = "📊 Trace: session_d.json\n   Error: JSONDecodeError: Input data was truncated\n"
    assert printed(evaluate_trace(folder / "session_d.json"), capsys) == broken


def test_a_folder_is_printed_with_its_flags_ranking_and_ledger(folder, capsys):
    print_summary(evaluate_all_traces(folder))
    lines = (out := capsys.readouterr().out).splitlines()
    assert {"Flags: aborted 1, duplicate session 4", "4 traces; 6 files: 4 used, 1 skipped, 1 failed"} <= set(lines)
    assert "Range: 2.55 to 5.00; median 5.00; standard deviation 1.41" in lines
    assert lines[(top := lines.index("rank  score  trajectory            file") + 2) : top + 4] == [
        "   1   5.00  +                     a/session.json",
        "   2   5.00  +                     e/session.json",
        "   3   2.55  -----++----           session_b.json",
        "   –      –  (aborted: no events)  session_c.json",
    ]
    assert "config.json: not a session trace: it has no event_history\n" in out
    print_summary([evaluate_trace(folder / name) for name in ("session_d.json", "a/session.json")])
    assert "   not read: session_d.json: JSONDecodeError" in capsys.readouterr().out
    print_summary(evaluate_all_traces(folder, "nothing*"))
    assert capsys.readouterr().out == "no traces\n\n0 traces; 0 files: 0 used, 0 skipped, 0 failed\n"


def test_the_example_scores_a_folder_also_with_own_weights(tmp_path, capsys):
    put(tmp_path, "a.json", HARD)
    runpy.run_path(str(Path(__file__).parents[2] / "examples/score_crafter.py"))["main"](str(tmp_path))
    assert capsys.readouterr().out.endswith("    10.00, was   5.00  a.json\n")


def test_following_an_experiment_shows_traces_from_its_first_to_its_last(tmp_path):
    now = 2_000_000_000.0
    following = Following(KIND, tmp_path, {"by_difficulty": True}, clock=lambda: now, expected=2)

    def look(name, model, size=None):
        path = put(tmp_path, name, EASY, model=model)
        path.write_text(path.read_text()[:size])
        os.utime(path, (now, now))
        return following.look()

    assert look("a.json", "alder", size=100).text.startswith("no Crafter session trace yet")
    view = look("a.json", "alder")
    assert view.text.splitlines()[2].split()[:6] == ["alder", "1", "of", "2", "1", "1.00"]
    assert "total: 1 of 2 traces, mean score 1.00" in view.text
    assert "\ndifficulty  n" in view.text
    assert not view.done
    look("b.json", "alder")
    assert not look("c.json", "birch", size=1).done  # while another trace is being written
    now += 10
    assert following.look().done  # and no more once it has stayed broken
    view = look("c.json", "birch")
    assert "total: 3 of 4 traces" in view.text
    assert not view.done
    assert max(map(len, following.look(width=50).text.splitlines())) <= 50


def test_a_written_table_has_each_trace_once(folder, tmp_path_factory):
    path = tmp_path_factory.mktemp("written") / "scores.csv"
    for arguments, column, n in [
        ([folder], "model_name", 3),
        ([folder, "--by-difficulty"], "difficulty", 3),
        ([folder / "session_b.json"], "model_name", 1),
    ]:
        command(*arguments, "--output", path)
        table = pd.read_csv(path)
        assert table[column].notna().all()
        assert table["n"].sum() == n
