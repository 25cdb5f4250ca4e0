"""Many histories of one file name: told apart, and the same answer from every door."""

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.io import SourceError
from evalkit.kinds import rates
from evalkit.stats import format_interval, mean_interval
from evalkit.steps import analysis, evaluates, figures, load, show, steps_df
from evalkit.steps.judge import EVALUATORS

RUNS = 28
GOOD = {"function_name": "f", "parameters": {}, "success": True, "result_summary": "done", "error": None}
BAD = {**GOOD, "success": False, "result_summary": None, "error": "no cells"}
SILENT = {**GOOD, "function_name": "process_cells", "result_summary": "{'status': 'no_cells_found'}"}
TALK = {**GOOD, "function_name": "conversational_response"}


def records(number: int) -> list[dict]:
    """Make the records of a run: the later the run, the more of them fail, in silence or aloud."""
    return [GOOD] * 8 + [BAD] * (number // 3) + [SILENT] * (number // 7) + [{**TALK, "result_summary": str(number)}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """28 histories in run_NN/execution_history.json."""
    root = tmp_path_factory.mktemp("runs")
    for number in range(1, RUNS + 1):
        (root / f"run_{number:02d}").mkdir()
        (root / f"run_{number:02d}" / "execution_history.json").write_text(json.dumps(records(number)))
    return root


@pytest.fixture(scope="module")
def expected():
    """What is true of the folder, counted from what was written: per rate the mean of the histories' shares."""
    confirmed = [[record["success"] and record is not SILENT for record in records(i)] for i in range(1, RUNS + 1)]
    reported = [[record["success"] for record in records(i)] for i in range(1, RUNS + 1)]
    means = {"reported": reported, "confirmed": confirmed}
    return {
        name: mean_interval([sum(of) / len(of) for of in runs], bounds=(0, 1))._replace(n=sum(map(len, runs)))
        for name, runs in means.items()
    }


def test_the_rates_of_28_histories_are_of_28_clusters(folder, expected):
    steps = load(folder).steps
    wanted = expected["confirmed"]
    assert (wanted.n_clusters, wanted.n) == (RUNS, len(steps))
    found = analysis.confirmed_success(steps)
    assert found[:3] == pytest.approx(wanted[:3])  # clusters are summed in the order of their ids, which hold the path
    assert found[3:] == wanted[3:]
    pooled = analysis.success_rates(steps, []).set_index("success")
    shown = CliRunner().invoke(main, ["steps", str(folder)]).output
    total = next(line for line in shown.splitlines() if line.startswith("all 28 histories"))
    for name, estimate in expected.items():
        assert pooled.loc[name, list(estimate._fields)].tolist() == pytest.approx(list(estimate))
        assert format_interval(*estimate[:3]) in total


def test_histories_weigh_in_the_terminal_and_in_tables_as_in_comparisons(folder, expected):
    (row,) = rates(load(folder).runs, [], "score").to_dict("records")
    wanted = expected["confirmed"]
    assert [row[name] for name in ("estimate", "low", "high")] == pytest.approx(wanted[:3])
    assert (row["n"], row["n_clusters"]) == (RUNS, wanted.n_clusters)
    shown = CliRunner().invoke(main, ["steps", str(folder)]).output
    assert "the mean of the shares of the 28 histories, which weigh\nequally" in shown


def test_the_terminal_shows_a_row_per_history_the_worst_first_and_a_total(folder):
    shown = CliRunner().invoke(main, ["steps", str(folder)]).output.splitlines()
    rows = [line for line in shown if line.startswith("run_")]
    assert len(rows) == RUNS
    rates = analysis.success_rates(load(folder).steps).query("success == 'confirmed'").set_index("history")["estimate"]
    in_order = [rates[row.split()[0]] for row in rows]
    assert in_order == sorted(in_order)
    assert rows[0].split()[0] == "run_28/execution_history.json"
    assert not any("process_cells" in line for line in shown)
    assert shown.index(rows[-1]) < next(i for i, line in enumerate(shown) if line.startswith("all 28"))


def test_each_history_is_a_row_in_every_table(folder):
    logs = load(folder)
    names = {f"run_{number:02d}/execution_history.json" for number in range(1, RUNS + 1)}
    one_failure = {f"run_{number:02d}/execution_history.json" for number in range(9, RUNS + 1)}
    assert set(logs.runs["history"]) == names
    assert set(analysis.truncation(logs.steps)["history"]) == names
    assert set(analysis.routing(logs.histories)["history"]) == names
    assert set(analysis.loops(logs.histories)["history"]) == one_failure  # three in a row and more
    overview = analysis.overview(logs.steps, logs.histories).set_index("history")
    assert set(overview.index) == names
    assert overview["loops"].to_dict() == {name: int(name in one_failure) for name in names}
    last = overview.loc["run_28/execution_history.json"]
    assert last[["records", "n", "failure", "silent failure", "loops"]].tolist() == [22, 22, 9, 4, 1]
    kinds = analysis.failure_kinds(logs.steps).set_index("verdict")
    assert kinds.loc["failure", ["steps", "histories"]].tolist() == [sum(n // 3 for n in range(1, RUNS + 1)), 26]


def test_each_history_is_a_line_of_the_figure(folder):
    steps = load(folder).steps
    rates, pooled = analysis.success_rates(steps), analysis.success_rates(steps, [])
    ax = figures.rates(rates, pooled=pooled)
    ticks = [tick.get_text() for tick in ax.get_yticklabels()]
    assert len(set(ticks)) == RUNS + 1
    assert (ticks[0], ticks[-1]) == ("run_28/execution_history.json", "all together")
    text = figures.describe_rates(rates, pooled=pooled)
    assert "all together: confirmed" in text
    assert "Between these lie 26 more." in text


def test_long_names_that_differ_in_the_middle_only_stay_apart(tmp_path):
    names = [f"{'a' * 60}_{number}_{'b' * 60}" for number in (1, 2)]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "h.json").write_text(json.dumps([GOOD]))
    ticks = figures.rates(analysis.success_rates(load(tmp_path).steps)).get_yticklabels()
    assert len({tick.get_text() for tick in ticks}) == 2
    shown = CliRunner().invoke(main, ["steps", str(tmp_path)]).output
    assert all(f"\n{name}/h.json " in shown for name in names)


def test_a_figure_of_very_many_draws_the_lowest_and_says_so():
    rows = [{"history": f"h{i:03d}", "success": s, "estimate": i / 200, "low": 0.0, "high": 1.0, "n": 9}
            for i in range(200) for s in ("reported", "confirmed")]  # fmt: skip
    ax = figures.rates(pd.DataFrame(rows))
    assert [tick.get_text() for tick in ax.get_yticklabels()] == [f"h{i:03d}" for i in range(60)]
    assert ax.get_title(loc="left") + ax.get_title() == "the 60 lowest of 200"


def test_a_history_without_records_is_not_lost(folder, tmp_path):
    (tmp_path / "empty.json").write_text("[]")
    (tmp_path / "good.json").write_text(json.dumps([GOOD]))
    logs = load(tmp_path)
    overview = analysis.overview(logs.steps, logs.histories)
    assert overview[["history", "records", "n"]].to_numpy().tolist() == [["good.json", 1, 1], ["empty.json", 0, 0]]
    assert overview["confirmed_estimate"].isna().tolist() == [False, True]
    shown = CliRunner().invoke(main, ["steps", str(tmp_path)]).output
    [row] = [line.split() for line in shown.splitlines() if line.startswith("empty.json")]
    assert row[1:5] == ["0", "0", "–", "–"]
    assert analysis.total(logs.steps, logs.histories)["history"].tolist() == ["all 2 histories"]


def test_frames_of_several_loads_are_not_pooled_by_their_labels(folder):
    one, two = (load(folder / name / "execution_history.json").steps for name in ("run_01", "run_28"))
    assert set(one["history"]) == set(two["history"])
    both = pd.concat([one, two])
    assert analysis.success_rates(both)["history"].nunique() == 2
    assert analysis.success_rates(both, [])["n_clusters"].tolist() == [2, 2]
    assert analysis.success_rates(both.drop(columns="history"))["history"].nunique() == 2
    assert set(analysis.overview(both)["history"]) == {f"run_{n}/execution_history.json" for n in ("01", "28")}


def test_threads_of_checkpoints_are_histories_of_their_own(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        with closing(sqlite3.connect(tmp_path / name / "c.sqlite")) as connection:
            connection.execute("CREATE TABLE checkpoints (thread_id, checkpoint_ns, checkpoint_id, type, checkpoint)")
            for thread, namespace in (("t", "u"), ("t/u", ""), ("v", "")):
                state = json.dumps({"channel_values": {"execution_history": [GOOD, BAD]}}).encode()
                row = (thread, namespace, "1", "json", state)
                connection.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?)", row)
            connection.commit()
    logs = load(tmp_path)
    names = [f"{folder}/c.sqlite · {thread}" for folder in "ab" for thread in ("t/u", "t/u #2", "v")]
    assert sorted(history.label for history in logs.histories) == names
    assert analysis.success_rates(logs.steps, [])["n_clusters"].tolist() == [6, 6]
    assert len(analysis.steps_of(logs.steps, logs.histories[:1])) == 2


def test_the_history_to_look_at_is_the_worst_or_the_one_that_is_named(folder):
    logs = load(folder)
    [worst] = analysis.focus(logs.steps, logs.histories)
    [named] = analysis.focus(logs.steps, logs.histories, "run_03/execution_history.json")
    assert (worst.label, named.label) == ("run_28/execution_history.json", "run_03/execution_history.json")
    assert named.label in show.describe_focus(logs.histories, [named], named.label)
    assert "lowest" not in show.describe_focus(logs.histories, [named], named.label)
    with pytest.raises(SourceError, match=r"no history is called 'run_3': there is run_01/execution_history\.json, "):
        analysis.focus(logs.steps, logs.histories, "run_3")


def test_two_histories_of_one_name_are_told_apart_where_they_are_compared(folder):
    one, two = (load(folder / name / "execution_history.json") for name in ("run_01", "run_28"))
    text = show.describe_changes(analysis.changes(one.steps, two.steps), one.histories, two.histories)
    assert text.startswith("a: run_01/execution_history.json; b: run_28/execution_history.json. ")


def test_with_nothing_to_compare_nothing_is_said_and_no_step_is_called_missing(folder):
    logs, none = load(folder), load([""])
    changes = analysis.changes(logs.steps, none.steps)
    assert changes.empty
    assert "change" in changes
    assert show.describe_changes(changes, logs.histories, none.histories) == ""  # the section is left out


@pytest.fixture
def calls():
    """Return a function that counts the calls of functions by name while another runs."""

    def calls(names, function, *arguments):
        counts = dict.fromkeys(names, 0)

        def count(frame, event, _):
            if event == "call" and frame.f_code.co_name in counts:
                counts[frame.f_code.co_name] += 1

        sys.setprofile(count)
        try:
            function(*arguments)
        finally:
            sys.setprofile(None)
        return counts

    return calls


@pytest.mark.parametrize("more", [[], ["--details"], ["--checks"], ["--output", "{folder}/steps.csv"]])
def test_each_record_is_normalised_once_and_judged_once(calls, tmp_path, monkeypatch, more):
    monkeypatch.setenv("EVALKIT_CACHE", "off")
    path = tmp_path / "h.json"
    path.write_text(json.dumps(records(28)))
    judged = []
    before = dict(EVALUATORS)
    evaluates("f")(lambda record, options: judged.append(record) or {})
    arguments = ["steps", str(path), *(word.format(folder=tmp_path) for word in more)]
    try:
        counts = calls(("normalise_record", "evaluate_record"), CliRunner().invoke, main, arguments)
    finally:
        EVALUATORS.clear()
        EVALUATORS.update(before)
    assert counts == {"normalise_record": 22, "evaluate_record": 22}
    assert len(judged) == 8  # the successful steps of the function


def test_a_step_is_counted_from_one_for_people_and_from_zero_in_data():
    steps = steps_df([GOOD, BAD, BAD])
    assert steps[["position", "step_index"]].to_numpy().tolist() == [[0, 0], [1, 1], [2, 1]]
    shown = show.numbered(steps)
    assert shown[["record", "step"]].to_numpy().tolist() == [[1, 1], [2, 2], [3, 2]]
    assert "position" not in shown
    assert "is record 2, f, a failure" in figures.describe_timeline(steps)
