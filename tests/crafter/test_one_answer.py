"""Terminal, `load` with analysis, results, page and following give one answer to one question."""

import math
import re
import statistics
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from evalkit import crafter
from evalkit.cli import main
from evalkit.crafter import analysis, evaluate_all_traces, figures, load
from evalkit.crafter import print_evaluation_summary as print_summary
from evalkit.crafter.kind import KIND
from evalkit.display import alt_of
from evalkit.io import SourceError
from evalkit.kinds.follow import Following
from evalkit.reports import plan
from evalkit.reports import run as run_reports
from tests.crafter.traces import config, environment, hook, runtime, trace, write

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "crafter_scores.ipynb"
INVALID = hook("invalid_action")
EASY, TWO = hook("easy_achievement", ["collect_wood"]), hook("easy_achievement", ["collect_wood", "place_table"])
HARD = hook("hard_achievement", ["defeat_zombie"])
UNNAMED = hook("easy_achievement")


def put(folder, name, *hooks, model="alder", difficulty="easy", task=None, aborted=False):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    events = [] if aborted else [environment(0, hooks), runtime(1)]
    metadata = [config(model_name=model, difficulty=difficulty, task_instance_id=task)]
    return write(path.parent, trace(*events, metadata=metadata, session_id=name), path.name)


@pytest.fixture
def mixed(tmp_path):
    """A good, an aborted and a nested trace."""
    put(tmp_path, "good.json", HARD, TWO)
    put(tmp_path, "aborted.json", aborted=True)
    put(tmp_path, "below/nested.json", INVALID, model="birch", difficulty="hard")
    return tmp_path


def command(*arguments):
    result = CliRunner().invoke(main, ["crafter", *map(str, arguments)])
    assert result.exit_code == 0, result.stderr
    return result.stdout


def followed(source, recursive=True, **options):
    """What following a source shows."""
    return Following(KIND, source, options, recursive=recursive).look().text


def report(source, output, **parameters):
    """Make one report: its page and its tables."""
    made = plan([str(NOTEBOOK)], values={"traces": str(source), **parameters})
    summary = run_reports(made, output=output, jobs=1, say=lambda line: None)
    assert summary.failed == []
    tables = {path.stem: pd.read_csv(path) for path in output.rglob("*.csv")}
    return next(output.rglob("crafter_scores/*.html")).read_text(), tables


def test_every_door_counts_aborted_traces_folders_below_and_hooks_alike(mixed, tmp_path_factory, capsys):
    for options, flags, n, total in (
        ({}, [], 3, 7 - 0.05),
        ({"recursive": False, "counting": "hook"}, ["--no-recursive", "--counting", "hook"], 2, 6.0),
    ):
        logs = load(mixed, **options)
        (row,) = analysis.mean_scores(logs.episodes, []).to_dict("records")
        (zero,) = analysis.with_aborted_at_zero(logs.episodes, []).to_dict("records")
        assert (len(logs.ledger), zero["aborted"], zero["n"], zero["estimate"]) == (n, 1, n, pytest.approx(total / n))
        aborted = f"1 of {n}, left out; mean score with 1 at 0: {analysis.interval_text(zero)}"
        printed, results = command(mixed, "--all", *flags), evaluate_all_traces(mixed, **options)
        print_summary(results)
        for text in (printed, capsys.readouterr().out):
            assert f"All traces: mean score {analysis.interval_text(row)} (n = {n - 1})" in text
            assert f"Aborted: {aborted}\n" in text
        live = followed(mixed, options.get("recursive", True), counting=options.get("counting", "achievement"))
        assert f"\naborted: {aborted}\n" in live
    page, tables = report(mixed, tmp_path_factory.mktemp("report"), **options)
    assert f"1 of them aborted and left out of all means ({aborted.partition('; ')[2]})" in page
    pd.testing.assert_series_equal(tables["episodes"]["score"], logs.episodes["score"], check_dtype=False)


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
        told = config(model_name=model, task_instance_id=f"id-{i}", max_turns=turns)
        write(tmp_path, trace(*events, metadata=[told], session_id=str(i)), f"{i}.json")
    return tmp_path


def test_where_budgets_differ_every_door_says_so_and_no_mean_of_a_model_spans_them(budgets, capsys):
    episodes = load(budgets).episodes
    assert episodes["task_id"].nunique() == 2
    split = analysis.mean_scores(analysis.per_budget(episodes)).set_index("model_name")
    expected = {"alder, 4 turns": (4.475, 2, 2), "alder, 20 turns": (3.5, 3, 2), "birch, 20 turns": (2.0, 2, 2)}
    assert {name: tuple(row) for name, row in split[["estimate", "n", "n_clusters"]].iterrows()} == expected
    print_summary(evaluate_all_traces(budgets), by=["model_name"])
    for text in (command(budgets), followed(budgets), capsys.readouterr().out):
        assert "udgets differ: 4 turns (2 episodes), 20 turns (5 episodes)" in text
        for name, row in split.iterrows():
            (line,) = [line for line in text.splitlines() if line.strip().startswith(name)]
            assert f" {row['estimate']:.2f} " in line
            assert "alder  " not in line


def test_invalid_actions_are_counted_by_action_and_reason(budgets):
    logs = load(budgets)
    (row,) = analysis.invalid_actions(logs.actions).to_dict("records")
    reason = "Expected position change [#, #], got [#, #]"
    assert (row["action"], row["reason"], row["invalid"], row["suspect"]) == ("do", reason, 1, 1)
    assert (row["model_name"], row["episodes"], row["taken"]) == ("alder", 1, 10)
    assert ["do", "1", "of", "14", *reason.split(), "(1", "trace)"] in [
        line.split() for line in command(budgets, "--all").splitlines()
    ]
    without = analysis.suspect_share(logs.episodes)["mean_score_without_suspects"]
    assert without[0] == pytest.approx((4 / 3 + 7) / 2)


WEIGHTS = {"weights": {"hard_achievement": 7}}


@pytest.mark.parametrize(
    "options", [{}, WEIGHTS, {"counting": "hook"}, {"recursive": False}, {"pattern": "n*"}], ids=str
)
def test_a_dataset_stands_for_its_folder_with_any_options(options, mixed, tmp_path_factory):
    made = tmp_path_factory.mktemp("dataset") / "made"
    assert crafter.collect(mixed, made).new == 3
    ours, theirs = evaluate_all_traces(made, **options), evaluate_all_traces(mixed, **options)
    assert (ours, ours.ledger.entries) == (theirs, theirs.ledger.entries)
    for frame, expected in zip(load(made, **options), load(mixed, **options), strict=True):
        pd.testing.assert_frame_equal(frame, expected)


def test_files_of_one_base_name_are_named_by_the_shortest_path_that_tells_them_apart(tmp_path, capsys):
    for i, folder in enumerate(("a/run", "b/run", "b/other")):
        put(tmp_path, f"{folder}/trace.json", *[EASY] * (3 - i))
    put(tmp_path, "b/own.json", INVALID)
    names = ["a/run/trace.json", "b/run/trace.json", "other/trace.json", "own.json"]
    out = command(tmp_path)
    ranking = out[out.index("rank  score") :].splitlines()[2:6]
    assert [line.split()[-1] for line in ranking] == names
    assert analysis.best_and_worst(load(tmp_path).episodes)["source"].tolist() == names
    results = evaluate_all_traces(tmp_path)
    print_summary([{key: value for key, value in result.items() if key != "source"} for result in results])
    assert "n = 4)" in capsys.readouterr().out  # three base names of one, and still four traces


def test_shares_count_traces_and_weigh_tasks(tmp_path):
    for i in range(5):
        put(tmp_path, f"{i}.json", *[EASY] * (i < 3), task="same" if i < 3 else None)
    shares = analysis.sign_shares(load(tmp_path).episodes, []).set_index("sign")
    assert shares["episodes"].to_dict() == {"positive": 3, "zero": 2, "negative": 0}
    assert shares.loc["positive", "estimate"] == pytest.approx(1 / 3)
    (line,) = re.findall("Positive: (.*)", command(tmp_path, "--all"))
    assert re.fullmatch(r"3 of 5, 33 % \[\d+, \d+\] with equal weight for each task", line)


def test_where_the_ways_of_counting_differ_every_summary_says_so(capsys):
    both = ("268.95 points; 255.95 counting every hook once", "(8 of 15 traces differ)")
    other = "255.95 points; 268.95 counting every achievement that a hook names"
    episodes = load("samples:crafter").episodes
    assert analysis.describe_counting(episodes) == " ".join(both)
    by_model = analysis.counting_totals(episodes).set_index("model_name")
    assert by_model["differ"].to_dict() == {"random": 0, "scripted-forager": 4, "scripted-miner": 4}
    assert f"Points: {' '.join(both)}\n" in command("samples:crafter")
    assert f"Points: {other} {both[1]}\n" in command("samples:crafter", "--counting", "hook")
    for counting, line in (("achievement", "   Per hook: 40.10 ("), ("hook", "   Per achievement: 43.60 (")):
        (result,) = evaluate_all_traces("samples:crafter", "*1_scripted-miner.json", counting=counting)
        crafter.print_trace_evaluation(result)
        assert line in capsys.readouterr().out


def test_a_model_without_a_score_is_missing_with_its_reason(tmp_path):
    put(tmp_path, "a.json", aborted=True)
    put(tmp_path, "b.json", HARD, model=None)
    episodes, _, achievements, _ = load(tmp_path)
    tables = {
        "scores": analysis.mean_scores(episodes),
        "breakdown": analysis.breakdown(episodes),
        "signs": analysis.sign_shares(episodes),
        "progression": analysis.progressions(episodes),
        "rates": analysis.achievement_rates(achievements),
        "curve": analysis.unlock_curve(achievements, episodes),
        "official": analysis.official_scores(achievements),
    }
    for name, table in tables.items():
        own = table[table["model_name"] == "alder"]
        assert len(own), name
        assert own["estimate"].isna().all(), name
        assert (own["n"] == 0).all(), name
        assert own["warning"].map(str).str.match("no trace (has a score|can tell what was unlocked)").all(), name
    assert tables["breakdown"].query("model_name == 'alder'")["total"].isna().all()
    suspects = analysis.suspect_share(episodes).set_index("model_name").loc["alder"]
    assert suspects[["invalid_actions", "suspect", "share", "mean_score"]].isna().all()
    assert str(suspects["warning"]) == "no trace has a score"
    assert "alder: no trace has a score" in alt_of(figures.scores(episodes, tables["scores"]).figure)
    assert "alder: no trace can tell" in alt_of(figures.achievements(tables["rates"]).figure)


def test_a_hook_without_names_leaves_rates_open_and_counts_in_none(tmp_path):
    put(tmp_path, "a.json", EASY, UNNAMED)
    for n, estimate, warning in (
        (0, math.nan, "no trace can tell what was unlocked"),
        (1, 0.0, "left out: 1 that can't"),
    ):
        episodes, _, achievements, _ = load(tmp_path)
        (official,) = analysis.official_scores(achievements).to_dict("records")
        rates = analysis.achievement_rates(achievements).set_index("achievement")
        curve = analysis.unlock_curve(achievements, episodes)
        assert (official["n"], rates["n"].unique().tolist(), curve["n"].unique().tolist()) == (n, [n], [n])
        found = [official["estimate"], rates.loc["collect_wood", "estimate"]]
        assert found == pytest.approx([estimate] * 2, nan_ok=True)
        assert warning in str(official["warning"])
        put(tmp_path, "b.json", INVALID)


def test_difficulties_stand_in_their_natural_order(tmp_path):
    for name in ("unknown", "hard", "zen", "medium", "easy", "brutal"):
        put(tmp_path, f"{name}.json", EASY, difficulty=name)
    order = ["easy", "medium", "hard", "brutal", "zen", "unknown"]
    assert analysis.mean_scores(load(tmp_path).episodes, "difficulty")["difficulty"].tolist() == order
    out = command(tmp_path, "--by-difficulty")
    assert [line.split()[0] for line in out[out.index("difficulty  ") :].splitlines()[2:8]] == order
    with pytest.raises(SourceError, match="there are easy, medium, hard, brutal, zen, unknown"):
        load(tmp_path, difficulty="no")


def test_the_summary_says_what_a_plain_count_says_also_with_own_weights(tmp_path, capsys):
    points = [7.5, 7.5, 2.5, 0.0, -0.05, -0.1]
    medium = hook("medium_achievement", ["eat_cow"])
    hooks = [[HARD, medium], [HARD, medium], [medium], [EASY, *[INVALID] * 20], [INVALID], [INVALID, INVALID]]
    for i, own in enumerate(hooks):
        put(tmp_path, f"{i}.json", *own)
    out = command(tmp_path, "--all")
    middle, spread = statistics.median(points), statistics.stdev(points)
    for line in (
        f"All traces: mean score {statistics.mean(points):.2f} [",
        f"Range: -0.10 to 7.50; median {middle:.2f}; standard deviation {spread:.2f}",
        "Positive: 3 of 6, 50 % [",
        "Zero: 1 of 6, 17 % [",
        "Easy achievements: 1 × 1.0 = 1.00",
        "Hard achievements: 2 × 5.0 = 10.00",
        "Invalid actions: 23 × -0.05 = -1.15",
        f"Points: {sum(points):.2f} points",
    ):
        assert f"\n{line}" in out
    print_summary(evaluate_all_traces(tmp_path, **WEIGHTS))
    assert "\nHard achievements: 2 × 7 = 14.00\n" in capsys.readouterr().out
    print_summary([*evaluate_all_traces(tmp_path), *evaluate_all_traces(tmp_path, **WEIGHTS)])
    assert "\nHard achievements: 4\n" in capsys.readouterr().out  # of two weights, no points


def test_a_source_without_any_trace_is_an_error_of_load_and_command(tmp_path):
    (tmp_path / "a.json").write_text('{"memory": "", "turns": [{"role": "user"}]}')
    message = "looks like a Mindcraft agent log); `evalkit mindcraft` reads those"
    with pytest.raises(SourceError, match=re.escape(message)):
        load(tmp_path)
    assert evaluate_all_traces(tmp_path) == []
    result = CliRunner().invoke(main, ["crafter", str(tmp_path), "--output", str(tmp_path / "x.csv")])
    assert (result.exit_code, result.stdout, message in result.stderr) == (2, "", True)
    assert not (tmp_path / "x.csv").exists()
