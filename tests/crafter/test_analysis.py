import math

import pytest

from evalkit.crafter import analysis, benchmark, figures, load
from evalkit.display import show_figure, text_of
from tests.crafter.traces import config, environment, hook, runtime, trace, write
from tests.display.test_plots import points

INVALID = hook("invalid_action", action="noop")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("traces")
    for seed, names_by_turn in enumerate([[["collect_wood"], ["place_table"]], [["collect_wood"], []], [[], []]]):
        for model, extra in (("alder $x$", 0), ("birch", 1)):
            events = []
            for turn, names in enumerate(names_by_turn):
                events.append(runtime(turn, [INVALID] * extra, actions=[1, 2]))
                events.append(environment(turn, [hook("easy_achievement", names)] if names else []))
            metadata = [
                config(model_name=model, difficulty=["easy", "hard", "easy"][seed], task_instance_id=f"t{seed}")
            ]
            write(folder, trace(*events, metadata=metadata, session_id=f"{model}{seed}"), f"{model[0]}{seed}.json")
    write(folder, trace(metadata=[config(model_name="birch")], session_id="aborted"), "z.json")
    return folder


@pytest.fixture(scope="module")
def traces(folder):
    return load(folder)


@pytest.fixture(scope="module")
def empty(traces):
    return tuple(frame.iloc[:0] for frame in traces)


def test_mean_scores_leave_out_aborted_traces_and_say_so(traces):
    table = analysis.mean_scores(traces.episodes).set_index("model_name")
    assert table["estimate"].to_dict() == pytest.approx({"alder $x$": 1.0, "birch": 0.9})
    assert table["n"].tolist() == [3, 3]
    assert table["aborted"].tolist() == [0, 1]
    assert str(table.loc["birch", "warning"]).endswith("left out: 1 aborted")


def test_difficulties_stand_in_their_order(traces):
    table = analysis.mean_scores(traces.episodes, ["difficulty", "model_name"])
    assert table["difficulty"].tolist() == ["easy", "easy", "hard", "hard", "unknown"]


def test_the_breakdown_counts_every_hook(traces):
    table = analysis.breakdown(traces.episodes).set_index(["model_name", "hook"])
    assert table.loc[("birch", "invalid action"), ["estimate", "total", "n"]].tolist() == [2.0, 6, 3]
    assert table.loc[("birch", "easy"), "estimate"] == 1.0
    assert table.loc[("alder $x$", "hard"), "estimate"] == 0.0


def test_the_score_without_suspect_verdicts_is_shown_beside_the_score(traces):
    table = analysis.suspect_share(traces.episodes).set_index("model_name")
    assert table.loc["birch", ["suspect", "share"]].tolist() == [6, 1.0]
    assert table.loc["birch", "mean_score_without_suspects"] == pytest.approx(1.0)
    assert math.isnan(table.loc["alder $x$", "share"])


def test_achievement_rates_are_shares_of_episodes_that_can_tell(traces):
    table = analysis.achievement_rates(traces.achievements).set_index(["model_name", "achievement"])
    assert len(table) == 44
    assert table.loc[("birch", "collect_wood"), ["estimate", "n"]].tolist() == [pytest.approx(2 / 3), 3]
    assert table.loc[("birch", "place_table"), "estimate"] == pytest.approx(1 / 3)


def test_the_unlock_curve_counts_achievements_until_each_turn(traces):
    curve = analysis.unlock_curve(traces.achievements, traces.episodes).set_index(["model_name", "turn"])["estimate"]
    assert curve["birch"].to_dict() == pytest.approx({0: 2 / 3, 1: 1.0})
    turns = analysis.unlock_turns(traces.achievements).set_index(["model_name", "achievement"])
    assert turns.loc[("birch", "place_table"), ["unlocked", "first", "median", "last"]].tolist() == [1, 1, 1, 1]


def test_the_official_formula_on_frames_equals_that_on_files(traces, folder):
    table = analysis.official_scores(traces.achievements).set_index("model_name")
    from_files = benchmark.crafter_scores(folder)
    for model, score in from_files.items():
        assert table.loc[model, "estimate"] == pytest.approx(score.estimate)
        assert table.loc[model, "n"] == score.n_episodes == 3


def test_progression_is_the_mean_share_of_22(traces):
    table = analysis.in_percent(analysis.progressions(traces.episodes)).set_index("model_name")
    assert table.loc["birch", "estimate"] == pytest.approx(100 / 22)


def test_best_and_worst_name_no_episode_twice(traces):
    table = analysis.best_and_worst(traces.episodes, 4)
    assert len(table) == 6
    assert table["score"].is_monotonic_decreasing
    assert not table["source"].duplicated().any()
    assert "/" not in "".join(table["source"])


def test_bands_and_flags_are_counted(traces):
    bands = analysis.band_counts(traces.episodes).set_index("model_name")
    assert bands.loc["birch"].to_dict() == {"Excellent": 0, "Good": 1, "Limited": 1, "Poor": 1, "no score": 1}
    flags = analysis.flag_counts(traces.episodes).set_index("flag")["episodes"].to_dict()
    assert flags == {"aborted": 1, "suspect invalid actions": 3}


def draw(traces):
    episodes, _, achievements, _ = traces
    scores = analysis.mean_scores(episodes)
    progress = analysis.in_percent(analysis.progressions(episodes))
    yield figures.scores(episodes, scores), figures.describe_estimates(scores, "model_name")
    breakdown = analysis.breakdown(episodes)
    yield figures.breakdown(breakdown), figures.describe_estimates(breakdown, "model_name", "hook")
    rates = analysis.achievement_rates(achievements)
    yield figures.achievements(rates), figures.describe_achievements(rates)
    curve = analysis.unlock_curve(achievements, episodes)
    yield figures.unlocks(curve), figures.describe_estimates(curve, "model_name", "turn")
    yield figures.trajectories(episodes), figures.describe_trajectories(episodes)
    yield figures.against_references(progress, benchmark.reference_scores("progression"), xlabel="progression"), "words"
    by = analysis.mean_scores(episodes, ["difficulty", "model_name"])
    yield (
        figures.estimates(by, "difficulty", "model_name", xlabel="score"),
        figures.describe_estimates(by, "model_name"),
    )


@pytest.mark.parametrize("which", ["traces", "empty"])
def test_figures_draw_on_axes_and_come_with_words(which, request):
    for ax, words in draw(request.getfixturevalue(which)):
        show_figure(ax, alt=words)


def test_a_dollar_sign_in_a_model_name_is_drawn_as_it_is(traces):
    ax = figures.scores(traces.episodes, analysis.mean_scores(traces.episodes))
    assert [text.get_text() for text in ax.get_yticklabels()] == ["alder $x$", "birch"]
    assert "birch: 0.90 [" in figures.describe_estimates(analysis.mean_scores(traces.episodes), "model_name")


def test_trajectories_show_a_cell_per_symbol(traces):
    ax = figures.trajectories(traces.episodes)
    strips = traces.episodes["trajectory"].dropna().str.replace("(no scored events)", "", regex=False)
    assert len(points(ax)) == sum(map(len, strips))
    assert len(ax.get_yticks()) == 6


def test_many_trajectories_are_thinned_evenly_per_model(traces):
    chosen = figures.choose_episodes(traces.episodes, 4)
    assert chosen.groupby("model_name").size().tolist() == [2, 2]
    assert chosen.groupby("model_name")["score"].max().tolist() == [2.0, 1.9]
    assert chosen.groupby("model_name")["score"].min().tolist() == pytest.approx([0.0, -0.1])


def test_findings_say_where_the_points_come_from_and_what_is_doubtful(folder):
    logs = load(folder)
    points, data = analysis.findings(logs.episodes, logs.ledger)
    assert text_of(points).startswith("Of 6 episodes with a score, 4 scored above zero, 1 below and 1 exactly zero.")
    assert text_of(points).endswith("Achievements earned 6.00 points in all, invalid actions cost 0.30.")
    assert text_of(data).endswith("; all 7 files were used.")
    assert "aborted (1)" in text_of(data)


def test_without_a_score_findings_speak_of_the_data_only(folder, tmp_path):
    (only,) = analysis.findings((logs := load(folder / "z.json")).episodes, logs.ledger)
    assert text_of(only).startswith("1 of 1 episode carries a flag: aborted (1)")
