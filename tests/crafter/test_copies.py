"""Copies of a trace, and earlier saves of its session, count once in every function."""

import pytest

from evalkit.crafter import analysis, benchmark, evaluate_all_traces, load, print_evaluation_summary
from tests.crafter.traces import config, environment, hook, results, runtime, trace, write

NAMES = ["collect_drink", "eat_plant", "collect_sapling", "wake_up", "place_stone", "collect_stone"]
EVENTS = [
    event
    for turn, name in enumerate(NAMES)
    for event in (runtime(turn, actions=[5, 5]), environment(turn, [hook("easy_achievement", [name])]))
]
LATER = [environment(0), *EVENTS]
CONFIG = config(model_name="rowan", seed=4)


def save(n=12, *, events=EVENTS, settings=CONFIG, ended=(), **more):
    return trace(*events[:n], metadata=[settings, *ended], **{"session_id": "s", **more})


@pytest.mark.parametrize(
    ("saves", "counted"),
    [
        ([save(), save()], [0]),
        ([save(2), save(7), save()], [2]),
        ([save(), save(5), save(5)], [0]),
        ([save(1, events=LATER), save(3, events=LATER), save(events=LATER)], [2]),  # at first without a hook
        ([save(), save(ended=[results(*NAMES)])], [0]),  # saved again with its results
        ([save(4), save(events=EVENTS[4:])], [0, 1]),  # parts, of which none begins the other
        ([save(4), save(events=EVENTS[:3] + EVENTS[5:])], [0, 1]),
        ([save(4), save(session_id="t")], [0, 1]),
        ([save(4, session_id=None), save(session_id=None)], [0, 1]),
        ([save(4), save(settings=config(model_name="rowan", seed=5))], [0, 1]),
        ([save(4), save(settings=config(model_name="aspen", seed=4))], [0, 1]),
        ([save(4), save(created_at="2025-01-02T00:00:00")], [0, 1]),
        ([save(0), save()], [1]),  # aborted, so without a score; its flag remains
    ],
)
def test_a_session_counts_once_however_often_it_was_saved(tmp_path, capsys, saves, counted):
    for place, content in enumerate(saves):
        write(tmp_path, content, f"{place}.json")
    logs = load(tmp_path)
    scored = analysis.counted(logs.episodes).dropna(subset="score")
    assert sorted(scored["source"].str[-6]) == [str(place) for place in counted]
    achievements = logs.achievements[logs.achievements["source"].isin(scored["source"])]
    official = analysis.official_scores(achievements).set_index("model_name")
    for model, score in benchmark.crafter_scores(tmp_path).items():
        assert (score.n_episodes, score.estimate) == tuple(official.loc[model, ["n", "estimate"]])
    listed = evaluate_all_traces(tmp_path)
    assert len(listed) == len(saves)  # with a flag for copies
    print_evaluation_summary(listed)
    [mean] = analysis.mean_scores(logs.episodes, []).to_dict("records")
    assert f"mean score {analysis.interval_text(mean)} (n = {len(counted)}" in capsys.readouterr().out
    skipped = [entry for entry in benchmark.load_runs(tmp_path).ledger.entries if entry.status == "skipped"]
    assert len(skipped) == len(saves) - len(counted)


def test_an_empty_save_is_an_aborted_trace_and_no_copy(tmp_path):
    write(tmp_path, save(0), "a.json")
    write(tmp_path, save(), "b.json")
    assert [result["flags"] for result in evaluate_all_traces(tmp_path)][1] == ["aborted", "duplicate_session"]
