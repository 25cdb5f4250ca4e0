import pandas as pd
import pytest

from evalkit.crafter import ACHIEVEMENTS, achievements_df, episodes_df, events_df, load
from evalkit.crafter.table import ACHIEVEMENT_ROWS, EPISODES, EVENTS
from evalkit.io import SourceError
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
    write(
        tmp_path,
        trace(*events, metadata=[config(model_name="alder", difficulty="easy", task_instance_id="t1")]),
        "a.json",
    )
    write(tmp_path, trace(session_id="other", metadata=[config(model_name="birch", difficulty="hard")]), "b.json")
    (tmp_path / "below").mkdir()
    write(tmp_path / "below", trace({"hooks_triggered": ["hard_achievement"]}, session_id="third"), "c.json")
    (tmp_path / "d.json").write_text("")
    return tmp_path


def test_an_episode_is_one_row(folder):
    row = episodes_df(folder).set_index("model_name").loc["alder"]
    expected = {
        "score": 4.45,
        "band": "Excellent",
        "easy_achievements": 2,
        "medium_achievements": 1,
        "hard_achievements": 0,
        "invalid_actions": 1,
        "suspect_invalid_actions": 1,
        "trajectory": "-++",
        "events": 6,
        "turns": 2,
        "actions": 3,
        "unlocked": 3,
        "progression": 3 / 22,
        "prompt_tokens": 30,
        "completion_tokens": 2,
        "total_tokens": 33,
        "cost": 0.75,
        "task_id": "t1",
        "difficulty": "easy",
    }
    assert row[list(expected)].to_dict() == expected


def test_an_aborted_episode_has_no_values_and_a_flag(folder):
    row = episodes_df(folder).set_index("model_name").loc["birch"]
    missing = [
        "score",
        "band",
        "easy_achievements",
        "invalid_actions",
        "trajectory",
        "turns",
        "unlocked",
        "progression",
    ]
    assert row[missing].isna().all()
    assert (row["events"], row["flag_aborted"]) == (0, True)
    assert achievements_df(folder).query("model_name == 'birch'")["unlocked"].isna().all()


def test_an_achievement_without_a_name_scores_and_leaves_open_what_is_unlocked(folder):
    row = episodes_df(folder).set_index("model_name").loc["unknown"]
    assert (row["score"], row["flag_unnamed_achievements"]) == (5.0, True)
    assert pd.isna(row["unlocked"])
    assert pd.isna(row["progression"])


def test_events_keep_their_order_and_say_why(folder):
    events = events_df(folder).query("model_name == 'alder'")
    assert events["kind"].tolist() == ["language_model", "runtime", "environment"] * 2
    assert events["event"].tolist() == [0, 1, 2, 3, 4, 5]
    assert events["turn"].tolist() == [0, 0, 0, 1, 1, 1]
    assert events["symbol"].dropna().tolist() == ["-", "+", "+"]
    assert events["score"].dropna().tolist() == [-0.05, 2.0, 2.5]
    assert events["reason"].dropna().tolist() == ["why"]
    assert events["achievements"].dropna().tolist() == ["collect_wood place_table", "eat_cow"]
    assert events["total_tokens"].dropna().tolist() == [12, 21]


def test_achievements_say_when_they_were_unlocked_first(folder):
    rows = achievements_df(folder).query("model_name == 'alder'").set_index("achievement")
    assert list(rows.index) == list(ACHIEVEMENTS)
    assert rows["turn"].dropna().to_dict() == {"collect_wood": 0, "eat_cow": 1, "place_table": 0}
    assert rows["unlocked"].sum() == 3
    assert rows.loc["eat_cow", "tier"] == "medium"


def test_columns_are_those_written_down_also_without_rows(folder):
    full, aborted = load(folder), load(folder, pattern="b*")
    assert (len(aborted.episodes), len(aborted.events)) == (1, 0)
    for name, columns in (("episodes", EPISODES), ("events", EVENTS), ("achievements", ACHIEVEMENT_ROWS)):
        assert list(getattr(full, name)) == [column.name for column in columns]
        assert getattr(full, name).dtypes.to_dict() == getattr(aborted, name).dtypes.to_dict()
    assert all(column.meaning for column in (*EPISODES, *EVENTS, *ACHIEVEMENT_ROWS))


def test_every_file_is_in_the_ledger_also_those_not_asked_for(folder):
    ledger = load(folder, models=["alder"]).ledger
    status = dict(zip(ledger["source"].str[-6:], ledger["status"], strict=True))
    assert status == {"a.json": "used", "b.json": "skipped", "c.json": "skipped", "d.json": "failed"}
    assert ledger.set_index("status").loc["skipped", "reason"].tolist() == [
        "not asked for: birch, hard",
        "not asked for: unknown, unknown",
    ]


def test_models_and_difficulty_choose(folder):
    assert episodes_df(folder, difficulty="easy")["model_name"].tolist() == ["alder"]
    assert episodes_df(folder, models=["alder", "birch"], difficulty="hard")["model_name"].tolist() == ["birch"]
    assert episodes_df(folder, pattern="c*")["model_name"].tolist() == ["unknown"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"models": ["elm"]}, "no trace has the model 'elm'; there are alder, birch, unknown"),
        ({"difficulty": "medium"}, "no trace has the difficulty 'medium'; there are easy, hard, unknown"),
    ],
)
def test_a_choice_that_fits_no_trace_is_refused(folder, options, message):
    with pytest.raises(SourceError, match=message):
        load(folder, **options)


def test_weights_and_counting_reach_the_tables(folder):
    rows = episodes_df(folder, weights={"invalid_action": -1}, counting="hook").set_index("model_name")
    assert rows.loc["alder", "score"] == 2.5
    assert events_df(folder, weights={"invalid_action": -1})["score"].min() == -1.0


def test_one_session_in_two_files_is_flagged_in_both(folder):
    write(folder, trace(environment(), session_id="third"), "e.json")
    flags = episodes_df(folder).set_index("session_id")["flag_duplicate_session"]
    assert flags.loc["third"].tolist() == [True, True]
    assert flags.sum() == 2
