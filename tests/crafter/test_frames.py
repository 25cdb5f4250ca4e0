"""The frames of traces, and the estimates and figures that are made of them."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.crafter import (
    ACHIEVEMENTS,
    BANDS,
    analysis,
    benchmark,
    evaluate_trace,
    figures,
    load,
    print_trace_evaluation,
)
from tests.crafter.traces import config, environment, hook, language_model, runtime, trace, write

INVALID = hook("invalid_action", action="noop", reason="why")


@pytest.fixture
def folder(tmp_path):
    events = [
        language_model(0, prompt_tokens=10, completion_tokens=2, total_tokens=12) | {"cost": 0.25},
        runtime(0, [INVALID], actions=[1, 5]),
        environment(0, [hook("easy_achievement", ["collect_wood", "place_table"])]),
        language_model(1, prompt_tokens=20, total_tokens=21) | {"cost": 0.5},
        runtime(1, actions=[5]),
        environment(1, [hook("medium_achievement", ["eat_cow"])]),
    ]
    alder = config(model_name="alder", difficulty="easy", task_instance_id="t1")
    write(tmp_path, trace(*events, metadata=[alder]), "a.json")
    write(tmp_path, trace(session_id="other", metadata=[config(model_name="birch", difficulty="hard")]), "b.json")
    (tmp_path / "below").mkdir()
    write(tmp_path / "below", trace({"hooks_triggered": ["hard_achievement"]}, session_id="third"), "c.json")
    (tmp_path / "d.json").write_text("")
    return tmp_path


def test_the_frames_say_what_a_trace_says_and_leave_open_what_it_does_not(folder):
    episodes, events, achievements, _ = load(folder)
    rows = episodes.set_index("model_name")
    expected = {
        "score": 4.45, "band": "Excellent", "trajectory": "-++", "task_id": "t1", "difficulty": "easy",
        "easy_achievements": 2, "medium_achievements": 1, "hard_achievements": 0, "invalid_actions": 1,
        "suspect_invalid_actions": 1, "events": 6, "turns": 2, "actions": 3, "unlocked": 3, "progression": 3 / 22,
        "tokens_in": 30, "tokens_out": 2, "cost": 0.75,
    }  # fmt: skip
    assert rows.loc["alder", list(expected)].to_dict() == expected
    missing = ["score", "band", "easy_achievements", "invalid_actions", "trajectory", "turns", "unlocked"]
    assert rows.loc["birch", [*missing, "progression"]].isna().all()
    assert rows.loc["birch", ["events", "run_flags"]].tolist() == [0, ["aborted"]]
    unnamed = rows.loc["unknown"]  # a hook without a name scores, and leaves open what is unlocked
    assert (unnamed["score"], "unnamed_achievements" in unnamed["run_flags"]) == (5.0, True)
    assert unnamed[["unlocked", "progression"]].isna().all()

    own = events.query("model_name == 'alder'")
    expected = {"kind": ["language_model", "runtime", "environment"] * 2, "event": [0, 1, 2, 3, 4, 5]}
    expected |= {"turn": [1, 1, 1, 2, 2, 2], "step": [0, 0, 0, 1, 1, 1], "score": [-0.05, 2.0, 2.5]}
    assert {name: own[name].dropna().tolist() for name in expected} == expected
    assert [names for names in own["achievements"] if names] == [["collect_wood", "place_table"], ["eat_cow"]]
    assert own.loc[own["event"] == 1, ["invalid", "reasons"]].to_numpy().tolist() == [[["noop"], ["why"]]]

    own = achievements.query("model_name == 'alder'").set_index("achievement")
    assert list(own.index) == list(ACHIEVEMENTS)
    assert own["turn"].dropna().to_dict() == {"collect_wood": 1, "eat_cow": 2, "place_table": 1}
    assert (own["unlocked"].sum(), own.loc["eat_cow", "tier"]) == (3, "medium")
    assert achievements.query("model_name == 'birch'")["unlocked"].isna().all()


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """Two models in three worlds, one of them with invalid actions, and an aborted trace."""
    folder = tmp_path_factory.mktemp("traces")
    for seed, names_by_turn in enumerate([[["collect_wood"], ["place_table"]], [["collect_wood"], []], [[], []]]):
        for model, n_invalid in (("alder $x$", 0), ("birch", 1)):
            events = []
            for turn, names in enumerate(names_by_turn):
                events.append(runtime(turn, [INVALID] * n_invalid, actions=[1, 2]))
                events.append(environment(turn, [hook("easy_achievement", names)] if names else []))
            settings = config(model_name=model, difficulty=["easy", "hard", "easy"][seed], task_instance_id=f"t{seed}")
            write(folder, trace(*events, metadata=[settings], session_id=f"{model}{seed}"), f"{model[0]}{seed}.json")
    write(folder, trace(metadata=[config(model_name="birch")], session_id="aborted"), "z.json")
    return folder


@pytest.fixture(scope="module")
def logs(played):
    return load(played)


def test_mean_scores_leave_out_aborted_traces_and_say_so(logs):
    table = analysis.mean_scores(logs.episodes).set_index("model_name")
    assert table["estimate"].to_dict() == pytest.approx({"alder $x$": 1.0, "birch": 0.9})
    assert table["without_suspects"].tolist() == pytest.approx([1.0, 1.0])
    assert (table["n"].tolist(), table["aborted"].tolist()) == ([3, 3], [0, 1])
    assert str(table.loc["birch", "warning"]).endswith("left out: 1 aborted")
    by_difficulty = analysis.mean_scores(logs.episodes, ["difficulty", "model_name"])
    assert by_difficulty["difficulty"].tolist() == ["easy", "easy", "hard", "hard", "unknown"]


def test_counts_and_flags_are_those_of_the_traces(logs):
    table = analysis.breakdown(logs.episodes).set_index(["model_name", "hook"])
    assert table.loc[("birch", "invalid action"), ["estimate", "total", "n"]].tolist() == [2.0, 6, 3]
    assert table["estimate"].loc["birch", "easy"] == 1.0
    assert table["estimate"].loc["alder $x$", "hard"] == 0.0
    flags = analysis.flag_counts(logs.episodes).set_index("flag")["episodes"].to_dict()
    assert flags == {"aborted": 1, "suspect invalid actions": 3}
    table = analysis.best_and_worst(logs.episodes, 4)
    assert len(table) == table["source"].nunique() == 6
    assert table["score"].is_monotonic_decreasing


def test_achievements_are_rates_and_a_curve_of_the_episodes_that_can_tell(logs, played):
    rates = analysis.achievement_rates(logs.achievements).set_index(["model_name", "achievement"])
    assert len(rates) == 44
    assert rates.loc[("birch", "collect_wood"), ["estimate", "n"]].tolist() == [pytest.approx(2 / 3), 3]
    assert rates.loc[("birch", "place_table"), "estimate"] == pytest.approx(1 / 3)
    curve = analysis.unlock_curve(logs.achievements, logs.episodes).set_index(["model_name", "turn"])["estimate"]
    assert curve["birch"].to_dict() == pytest.approx({1: 2 / 3, 2: 1.0})
    turns = analysis.unlock_turns(logs.achievements).set_index(["model_name", "achievement"])
    assert turns.loc[("birch", "place_table"), ["unlocked", "first", "median", "last"]].tolist() == [1, 2, 2, 2]
    progress = analysis.progressions(logs.episodes).set_index("model_name")
    assert progress.loc["birch", "estimate"] == pytest.approx(100 / 22)
    official = analysis.official_scores(logs.achievements).set_index("model_name")
    for model, score in benchmark.crafter_scores(played).items():  # the same formula on files
        assert official.loc[model, "estimate"] == pytest.approx(score.estimate)
        assert official.loc[model, "n"] == score.n_episodes == 3


def test_findings_say_where_the_points_come_from_and_what_is_doubtful(logs, played):
    points, data = (finding.values for finding in analysis.findings(logs.episodes, logs.ledger))
    assert points.pop("bands") == {"Excellent": 0, "Good": 3, "Limited": 2, "Poor": 1}
    assert points == pytest.approx({"n": 6, "earned": 6.0, "lost": 0.3})
    assert (data["flags"]["aborted"], data["files"]) == (1, {"all": 7, "skipped": 0, "failed": 0})
    unscored = load(played / "z.json")
    (only,) = analysis.findings(unscored.episodes, unscored.ledger)
    assert (only.values["flagged"], only.values["flags"]) == (1, {"aborted": 1})


def test_many_trajectories_are_thinned_evenly_per_model(logs):
    assert len(figures.trajectories(logs.episodes).get_yticks()) == 6
    names = [tick.get_text().split()[-1] for tick in figures.trajectories(logs.episodes, 4).get_yticklabels()]
    assert names == ["2.00", "0.00", "1.90", "-0.10"]


def test_points_add_up_to_the_score_and_bands_count_every_episode_with_one(logs):
    parts = analysis.points(logs.episodes)
    means = analysis.mean_scores(logs.episodes).set_index("model_name")
    assert parts.groupby("model_name", observed=True)["estimate"].sum().to_dict() == pytest.approx(
        means["estimate"].to_dict()
    )
    assert (parts["low"].isna() | (parts["low"] <= parts["high"])).all()
    counts = analysis.bands(logs.episodes).set_index("model_name")
    assert counts["n"].to_dict() == means["n"].to_dict()
    assert counts[list(BANDS)].sum(axis=1).tolist() == counts["n"].tolist()
    together = analysis.bands(logs.episodes, []).iloc[0]
    assert together["Poor"] == (logs.episodes["score"] < 0).sum()


def test_a_trace_without_scored_events_has_no_empty_breakdown(tmp_path, capsys):
    print_trace_evaluation(evaluate_trace(write(tmp_path, trace(environment(0)))))
    assert "Breakdown" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("events", "score", "unlocked"),
    [
        ([environment(0, [hook("easy_achievement", ["Wake Up", "EatPlant"])])], 2.0, 2),
        ([environment(0, [hook("Medium Achievement", ["achievement_eat_cow"])])], 2.5, 1),
        ([environment(0, [hook("HardAchievements", ["DEFEAT-ZOMBIE"])])], 5.0, 1),
        ([environment(0, [hook("AchievementUnlocked", ["wake_up", "Eat Cow"])])], 3.5, 2),
        ([environment(0, [hook("milestones", ["wake_up"])])], 0.0, None),  # of an unknown kind
        ([environment(0, [hook("easy_achievement", ["wake_up", "fly"])])], 2.0, None),  # of another game
        ([environment(0, [hook("inventory_increase", [])])], 0.0, 0),
        ([environment(0, (), {"Wake Up": True, "EAT_COW": "False"}, {"Wake Up": "no"})], 1.0, 1),
        ([environment(0, (), {"eat_cow": "true"}, {"eat_cow": None})], 2.5, 1),
        ([environment(0, (), {"fly": True}, {"fly": False})], 0.0, None),
        ([environment(0, (), ["wake_up", "Eat Cow"], ["wake_up"])], 2.5, 1),  # names of what is unlocked
        ([environment(0, (), ["wake_up", 5], [])], 1.0, None),
        ([environment(0, (), 3, [])], 0.0, None),
        (
            [environment(0, [hook("new_achievement", ["wake_up", "eat_cow"]), hook("easy_achievement", ["wake_up"])])],
            3.5,
            2,
        ),
        (
            [environment(0, [hook("hard_achievements", ["collect_diamond"]), hook("achievement", ["CollectDiamond"])])],
            5.0,
            1,
        ),
        ([environment(0, [hook("achievement", ["place_table"]), hook("new_achievements", ["place_table"])])], 1.0, 1),
        ([environment(0, [hook("medium_achievement", ["eat_cow"]), hook("new_achievement")])], 2.5, 1),
        ([environment(0, [hook("medium_achievement", ["eat_cow"]), hook("new_achievement", ["fly"])])], 2.5, None),
        ([environment(0, [hook("easy_achievement"), hook("new_achievement", ["wake_up"])])], 1.0, None),
    ],
)
def test_names_in_another_spelling_count_and_unknown_ones_leave_unlocked_open(tmp_path, events, score, unlocked):
    write(tmp_path, trace(*[{**event, "event_metadata": event["event_metadata"] or None} for event in events]))
    [row] = load(tmp_path).episodes.to_dict("records")
    assert row["score"] == score
    assert ("unnamed_achievements" in row["run_flags"]) == (unlocked is None)
    assert pd.isna(row["unlocked"]) if unlocked is None else row["unlocked"] == unlocked


def test_traces_that_are_packed_or_share_a_file_are_in_the_ledger_and_on_the_first_screen(tmp_path):
    text = json.dumps(trace(runtime()))
    names = ["a.json", "b.json.xz", "c.jsonl", "d.ndjson", "e.json.bak", "f.txt", "g.json.GZ"]
    for name in names:
        (tmp_path / name).write_text(f"{text}\n{text}" if name[0] in "cd" else text)
    ledger = load(tmp_path).ledger
    reasons = dict(zip([Path(path).name for path in ledger["source"]], ledger["reason"], strict=True))
    assert "f.txt" not in reasons
    assert reasons["b.json.xz"] == reasons["g.json.GZ"] == "packed: unpack it first"
    assert all("2 traces in one file: give each its own" in reasons[name] for name in ("c.jsonl", "d.ndjson"))
    assert reasons["e.json.bak"] == "not named like a JSON file"
    text = CliRunner().invoke(main, ["crafter", str(tmp_path)]).output
    assert "6 files: 1 used, 1 skipped, 4 failed" in text
    assert "packed: unpack it first" in text


def test_points_of_what_did_not_occur_are_0_without_a_sign(folder):
    table = analysis.breakdown(load(folder).episodes)
    assert not np.signbit(table.loc[table["total"].eq(0), "points"]).any()
    assert table["total"].eq(0).any()
