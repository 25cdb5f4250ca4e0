"""Terminal-Bench and tau-bench: what their files say of each other, and which of several copies is a run."""

from itertools import product
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from evalkit import trajectories
from evalkit.cli import main
from evalkit.io import SourceError
from evalkit.kinds import has_flag, rates_by_denominator
from evalkit.trajectories import analysis
from evalkit.trajectories.formats import swe_agent
from tests.trajectories import folders as make
from tests.trajectories.test_formats import SHARED, real, rows_of

DATASET = "terminal-bench-core@0.1.1"
SUBMISSION = "20250902_goose_claude-4"
FROM_FILES = ["openai/gpt-4o", "terminus", DATASET]
FROM_FOLDERS = ["claude-4", "goose", DATASET]
ONE, TWO = make.tb_trial("a"), make.tb_trial("b", resolved=False)
META = make.tb_metadata("a", "b")


def written(folder: Path, files: dict) -> Path:
    for name, value in files.items():
        make.write(folder / name, value)
    return folder


def own_files(folder: str, *trials: dict) -> dict:
    return {f"{folder}/{one['task_id']}/{one['trial_name']}/results.json": one for one in trials}


SUB = f"{DATASET}/{SUBMISSION}"
SUMMARY = make.tb_summary(ONE, TWO)
IN_SUMMARY = ["a-1-of-1", "b-1-of-1"]
LAYOUTS = {  # what the names of the run's files begin with, other files, and the parts of runs
    "files and summary": (f"{SUB}/r/", own_files(f"{SUB}/r", ONE, TWO), [""]),
    "a summary only": (f"{SUB}/r/", {}, IN_SUMMARY),
    "one file is missing": (f"{SUB}/r/", own_files(f"{SUB}/r", ONE), ["", "b-1-of-1"]),
    "flat": (f"{SUB}/r_", {}, IN_SUMMARY),
    "flat, two underscores": (f"{SUB}/r__", {}, IN_SUMMARY),
    "no folder of runs": (f"{SUB}/", own_files(SUB, ONE, TWO), [""]),
}
DESCRIBING = {
    "metadata": ({"run_metadata.json": META}, FROM_FILES),
    "lock": ({"tb.lock": make.tb_lock("a", "b")}, FROM_FILES),
    "both": ({"run_metadata.json": META, "tb.lock": make.tb_lock("a", "b")}, FROM_FILES),
    "no model": ({"run_metadata.json": {**META, "model_name": None, "agent_name": None}}, FROM_FOLDERS),
    "none": ({}, FROM_FOLDERS),
}


@pytest.mark.parametrize(
    ("layout", "describing"),
    [
        *product(LAYOUTS, ["both", "none"]),
        *product(["files and summary", "flat, two underscores"], ["metadata", "lock", "no model"]),
    ],
)
def test_a_trial_is_one_run_in_every_layout_and_the_nearest_files_name_its_model(tmp_path, layout, describing):
    start, files, parts = LAYOUTS[layout]
    described, own = DESCRIBING[describing]
    files = files | {f"{start}{name}": value for name, value in {"results.json": SUMMARY, **described}.items()}
    logs = trajectories.load(written(tmp_path, files))
    assert rows_of(logs.runs, "model_name", "agent", "task_type") == [own, own]
    assert set(logs.runs["model_source"]) == {"log" if own is FROM_FILES else "folder"}
    assert sorted(rows_of(logs.runs, "task_id", "is_successful")) == [["a", True], ["b", False]]
    assert set(logs.runs["part"].fillna("")) == set(parts)
    assert set(logs.runs["experiment"]) == {SUBMISSION}
    assert rows_of(logs.published, "metric", "value", "n") == [
        ["accuracy", SUMMARY["accuracy"], 2],
        ["resolved", 0.5, 2],
    ]
    assert logs.plans["planned"].sum() == (2 if described else 0)
    assert analysis.trials(logs.runs, logs.plans)["missing"].sum() == 0
    assert set(logs.ledger["status"]) == {"used"}
    assert all("secret-person" not in frame.to_csv() for frame in (logs.runs, logs.plans, logs.scores, logs.ledger))


AGAIN = [make.tb_trial("a", id="x"), make.tb_trial("b", id="y")]
BESIDE = {**own_files("r1", ONE, TWO), **own_files("r2", *AGAIN), **own_files("r2/r1", ONE, TWO)}
NESTED = {  # files, folders of runs, and the number of trials
    "of an earlier run beside it": (BESIDE, ["r1", "r2", "r2/r1"], 4),
    "of a part of itself": ({**own_files("r2/r1", ONE), "r2/results.json": SUMMARY}, ["r2", "r2/r1"], 2),
}


@pytest.mark.parametrize("case", NESTED)
def test_the_copy_in_a_resumed_run_is_neither_a_run_nor_a_plan_of_its_own(tmp_path, case):
    files, runs, n = NESTED[case]
    described = {f"{run}/run_metadata.json": {**META, "accuracy": 0.5} for run in runs}
    written(tmp_path / SUB, {**files, **described})
    logs = trajectories.load(tmp_path)
    table = analysis.trials(logs.runs, logs.plans)
    assert (table["planned"].sum(), table["present"].sum(), table["missing"].sum()) == (n, n, 0)
    of_metadata = logs.published["source"].str.endswith("run_metadata.json")
    assert of_metadata.sum() == n / 2
    assert sorted(logs.runs["repetition"]) == [0, 0, 1, 1][:n]


@pytest.mark.parametrize(
    ("files", "n", "duplicates"),
    [
        ({**own_files(f"{SUB}/r", ONE), **own_files(f"{DATASET}/20250903_goose_claude-4/r", ONE)}, 2, 1),
        ({**own_files("runs/r", ONE), "copy/r/results.json": make.tb_summary(ONE)}, 1, 0),
    ],
)
def test_copies_in_other_submissions_are_rows_that_count_in_no_rate(tmp_path, files, n, duplicates):
    runs = trajectories.load(written(tmp_path, files)).runs
    assert (len(runs), has_flag(runs, "duplicate").sum()) == (n, duplicates)


def test_trials_without_an_id_are_joined_by_their_names_and_runs(tmp_path):
    one, two = ({name: value for name, value in trial.items() if name != "id"} for trial in (ONE, TWO))
    later = {**one, "trial_started_at": "2025-08-29T03:16:00+00:00"}
    files = {**own_files(f"{SUB}/r1", one, two), f"{SUB}/r1/results.json": make.tb_summary(one, two)}
    files |= {**own_files(f"{SUB}/r2", later), f"{SUB}/r2/results.json": make.tb_summary(later, later)}
    runs = trajectories.load(written(tmp_path, files)).runs
    assert rows_of(runs.sort_values(["task_id", "repetition"]), "task_id", "repetition") == [
        ["a", 0],
        ["a", 1],
        ["b", 0],
    ]


@pytest.mark.parametrize(
    ("mode", "resolved", "status", "outcome"),
    [
        ("unset", True, "completed", True),
        ("none", False, "completed", False),
        ("unset", None, "untested", None),
        ("agent_timeout", True, "agent_timeout", True),  # tests run after it
        ("agent_timeout", False, "agent_timeout", False),
        ("agent_timeout", None, "untested", None),
        ("context_length_exceeded", False, "context_length_exceeded", False),
        ("test_timeout", None, "test_timeout", None),
        ("parse_error", None, "parse_error", None),
        ("agent_installation_failed", None, "agent_installation_failed", None),
        ("agent_installation_failed", False, "completed", False),  # tested all the same
        ("unknown_agent_error", None, "unknown_agent_error", None),
        ("unknown_agent_error", True, "completed", True),
        ("a_new_mode", False, "completed", False),
        ("a_new_mode", None, "a_new_mode", None),
    ],
)
def test_the_tests_decide_the_outcome_whatever_ended_the_agent(tmp_path, mode, resolved, status, outcome):
    logs = trajectories.load(make.write(tmp_path / "results.json", make.tb_trial("a", resolved, mode)))
    assert rows_of(logs.runs, "status", "exit_reason", "is_successful") == [[status, mode, outcome]]
    measured = "not measured" if resolved is None else "measured"
    said = f"failure_mode a_new_mode is unknown: 1 trial {measured}" if mode == "a_new_mode" else ""
    assert logs.ledger["reason"].tolist() == [said]


def test_every_trial_of_an_unknown_mode_is_counted_in_the_ledger(tmp_path):
    outcomes = [True, False, None, True]
    trials = [make.tb_trial(f"t{at}", resolved, "quota_spent") for at, resolved in enumerate(outcomes)]
    make.write(tmp_path / "results.json", make.tb_summary(make.tb_trial("a"), *trials))
    said = [f"failure_mode quota_spent is unknown: {n}" for n in ("3 trials measured", "1 trial not measured")]
    assert trajectories.load(tmp_path).ledger["reason"].tolist() == ["; ".join(said)]


def test_both_denominators_are_shown_where_outcomes_are_null(tmp_path):
    trials = [make.tb_trial("a"), make.tb_trial("b", False), make.tb_trial("c", None, "parse_error")]
    make.write(tmp_path / "results.json", make.tb_summary(*trials))
    runs = trajectories.load(tmp_path, model="m").runs
    table = rates_by_denominator(runs, ["model_name"]).iloc[0]
    assert 0.5 in table.to_list()
    said = CliRunner().invoke(main, ["trajectories", str(tmp_path)]).stdout
    assert "1 of 3" in said
    assert "33 %" in said


@pytest.mark.parametrize(("stated", "kept"), [(0, None), (None, None), (7, 7), (-1, None)])
def test_a_count_of_no_tokens_is_missing(tmp_path, stated, kept):
    trial = make.tb_trial("a", total_input_tokens=stated, total_output_tokens=stated)
    runs = trajectories.load(make.write(tmp_path / "results.json", trial)).runs
    assert rows_of(runs, "tokens_in", "tokens_out", "duration") == [[kept, kept, 90.0]]


def test_attempts_and_runs_are_repetitions(tmp_path):
    attempts = [make.tb_trial("a", attempt=f"{k}-of-2", id=f"{run}{k}") for run in "xy" for k in (1, 2)]
    one = trajectories.load(written(tmp_path / "one", own_files(f"{SUB}/r", *attempts[:2]))).runs
    assert rows_of(one, "repetition") == [[0], [1]]
    files = {**own_files(f"{SUB}/r", *attempts[:2]), **own_files(f"{SUB}/s", *attempts[2:])}
    assert sorted(trajectories.load(written(tmp_path / "two", files)).runs["repetition"]) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("folder", "told_by_it"),
    [
        (SUB, FROM_FOLDERS),
        (f"terminal-bench-core:0.1.1/{SUBMISSION}", FROM_FOLDERS),
        (f"{DATASET}/ob1-09-10-25", [None, None, DATASET]),
        (f"runs/{SUBMISSION}", ["claude-4", "goose", None]),
        ("user@host/2025-09-02__10-00-00", [None, None, None]),
    ],
)
def test_folders_of_the_leaderboard_name_what_no_file_does(tmp_path, folder, told_by_it):
    runs = trajectories.load(written(tmp_path, own_files(f"{folder}/r", ONE))).runs
    (cells,) = rows_of(runs, "model_name", "agent", "task_type")
    assert [None if cell == "unknown" else cell for cell in cells] == told_by_it


@pytest.mark.parametrize("source", ["r", "r/a", "r/a/a.1-of-1/results.json", "r/*/*/results.json"])
def test_the_metadata_above_a_source_names_the_model_but_plans_no_other_trials(tmp_path, source):
    folder = written(tmp_path, {**own_files("r", ONE), "r/run_metadata.json": META})
    logs = trajectories.load(str(folder / source))
    assert logs.runs["model_name"].tolist() == ["openai/gpt-4o"]
    assert analysis.trials(logs.runs, logs.plans)["missing"].sum() == (1 if source == "r" else 0)


def test_the_transcript_has_the_task_the_commands_the_terminal_and_the_tests(tmp_path):
    files = own_files("r", make.tb_trial("a", False, "agent_timeout"))
    trial = "r/a/a.1-of-1"
    files |= {
        f"{trial}/commands.txt": "ls\n\ncat x",
        f"{trial}/sessions/agent.log": "\x1b[?2004h$ \x1b[1mls\x1b[0m\r\nx\r\n",
    }
    logs = trajectories.load(written(tmp_path, files))
    texts = ["Do a.", "", "$ ls\nx\n", "agent_timeout", "test_it: failed"]
    assert logs.messages["text"].tolist() == texts
    assert logs.tool_calls["arguments"].tolist() == ["ls", "cat x"]
    make.write(tmp_path / "r" / "results.json", make.tb_summary(make.tb_trial("a", False, "agent_timeout")))
    (tmp_path / trial / "results.json").unlink()
    assert trajectories.load(tmp_path).messages["text"].tolist() == texts


def test_a_summary_opens_no_file_outside_its_folder(tmp_path):
    make.write(tmp_path / "x" / "commands.txt", "secret")
    make.write(tmp_path / "r" / "results.json", make.tb_summary(make.tb_trial("..", trial_name="x")))
    assert "secret" not in trajectories.load(tmp_path / "r").tool_calls.to_csv()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (make.tb_summary(ONE, {"task_id": "b"}), "1 of 2 results are no trials"),
        (make.tb_lock("a", lockfile_version="9.0"), "lockfile_version 9.0 is unknown"),
        ({**make.atif("a", "b"), "schema_version": "ATIF-v9"}, "schema_version ATIF-v9 is unknown (1)"),
    ],
)
def test_what_is_unknown_is_named(tmp_path, value, said):
    make.write(tmp_path / "r" / "results.json", make.tb_summary(ONE))
    make.write(tmp_path / "r" / ("tb.lock" if "invocation" in value else "b_results.json"), value)
    assert said in set(trajectories.load(tmp_path).ledger["reason"])


def test_a_summary_is_no_report_of_swe_bench_and_the_error_for_other_files_is_one_sentence(tmp_path):
    make.write(tmp_path / "a" / "results.json", make.tb_summary(ONE))
    assert swe_agent.recognises(make.tb_summary(ONE)) == ""
    assert "1 looks like an agent trajectory (Terminal-Bench results)" in str(
        CliRunner().invoke(main, ["detect", str(tmp_path / "a")]).stdout
    )
    unknown = {"x.json": {"a": 1}, "y.json": {"resolved_ids": [], "submitted_ids": []}, "z.txt": "text"}
    with pytest.raises(SourceError) as raised:
        trajectories.load(written(tmp_path / "b", unknown))
    assert str(raised.value).partition(": ")[2] == (
        "no agent trajectory could be read in it "
        "(3 files; 1 looks like a SWE-bench report, which only describes runs): "
        "not a known format of trajectories (1 file) and not named like a log (1 file)"
    )


@real
def test_the_real_leaderboards_trials_resolved_are_those_of_their_summaries():
    logs = trajectories.load(SHARED / "leaderboards" / "terminal-bench")
    resolved = logs.runs[logs.runs["is_successful"].eq(True)].groupby("experiment").size().to_dict()
    assert resolved == {
        "20250711_openhands_claude-4-sonnet": 2,
        "20250829_goose_claude-4-opus": 1,
        "20250902_orchestrator_qwen-3-coder-480B": 2,
    }
    assert (len(logs.runs), logs.runs["is_successful"].isna().sum()) == (13, 3)


TAU = "tool-calling-gpt-4o-0.0_range_0--1_user-gpt-4o-llm_0801120000.json"


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        (TAU, ["gpt-4o", "tool-calling", 0.0]),
        (
            "act-claude-3-5-sonnet-20240620-0.7_range_0-10_user-o/p-react_0801120000.json",
            ["claude-3-5-sonnet-20240620", "act", 0.7],
        ),
        ("gpt-4o-airline.json", ["gpt-4o", None, None]),
        ("runs.json", ["unknown", None, None]),
    ],
)
def test_the_name_of_a_file_of_tau_bench_has_its_model_strategy_and_temperature(tmp_path, name, facts):
    make.write(tmp_path / name, [make.tau_run(1, 0), make.tau_run(1, 1, 1 - 1e-9), make.tau_run(2, 0, 0.5)])
    logs = trajectories.load(tmp_path)
    assert rows_of(logs.runs[:1], "model_name", "agent", "temperature") == [facts]
    columns = ["task_type", "task_id", "repetition", "is_successful", "turns"]
    assert rows_of(logs.runs.sort_values(["task_id", "repetition"]), *columns) == [
        ["tau-bench airline", "1", 0, True, 1],
        ["tau-bench airline", "1", 1, True, 1],
        ["tau-bench airline", "2", 0, False, 1],
    ]
    assert logs.tool_calls["result"].tolist() == ["found"] * 3


def test_what_raised_in_tau_bench_is_not_measured_and_missing_trials_fail_by_its_own_convention(tmp_path):
    runs = [make.tau_run(1, 0), make.tau_run(1, 1), make.tau_run(2, 0, error="RateLimitError")]
    logs = trajectories.load(make.write(tmp_path / TAU, runs))
    assert rows_of(logs.runs.sort_values(["task_id", "repetition"]), "status", "is_successful", "error") == [
        ["completed", True, None],
        ["completed", True, None],
        ["error", None, "RateLimitError"],
    ]
    assert logs.plans["planned"].tolist() == [2, 2]
    table = analysis.reliability(logs.runs, logs.plans)
    planned = table[table["trials"].eq("planned") & table["measure"].str.startswith("pass^")]
    assert planned.set_index("k")["estimate"].tolist() == [0.5, 0.5]
    assert "secret-person" not in logs.runs.to_csv() + logs.messages.to_csv()


def test_tasks_of_two_domains_are_others_and_a_copy_of_a_file_counts_once(tmp_path):
    make.write(tmp_path / "gpt-4o-airline.json", [make.tau_run(3, 0)])
    make.write(tmp_path / "gpt-4o-retail.json", [make.tau_run(3, 0, domain="Retail")])
    make.write(tmp_path / "copy" / "gpt-4o-airline.json", [make.tau_run(3, 0), "broken"])
    logs = trajectories.load(tmp_path)
    assert set(logs.runs["task_type"]) == {"tau-bench airline", "tau-bench retail"}
    assert has_flag(logs.runs, "duplicate").sum() == 1
    assert "1 of 2 entries are no runs of tau-bench" in set(logs.ledger["reason"])


@real
def test_real_runs_of_tau_bench_have_the_rewards_of_their_file():
    logs = trajectories.load(SHARED / "leaderboards" / "tau-bench")
    assert rows_of(logs.runs, "task_id", "repetition", "is_successful") == [
        ["1", 0, False],
        ["21", 0, False],
        ["1", 1, True],
        ["21", 1, True],
    ]


@pytest.mark.parametrize("part", ["", "r"])
def test_a_bucket_gives_what_the_folder_gives(tmp_path, part):
    memory = pytest.importorskip("fsspec").filesystem("memory")
    written(tmp_path, {**own_files(f"{SUB}/r", ONE), f"{SUB}/r/run_metadata.json": META})
    make.write(tmp_path / SUB / "r" / "a" / "a.1-of-1" / "commands.txt", "ls")
    memory.put(str(tmp_path), "/benchmarks", recursive=True)
    try:
        root = next(iter(memory.glob("/benchmarks/**/" + DATASET))).removesuffix(f"/{DATASET}")
        there, here = trajectories.load(f"memory:/{root}/{SUB}/{part}"), trajectories.load(tmp_path / SUB / part)
        columns = ["model_name", "agent", "task_type", "experiment", "task_id", "is_successful", "tokens_in"]
        pd.testing.assert_frame_equal(there.runs[columns], here.runs[columns])
        assert there.tool_calls["arguments"].tolist() == ["ls"]
    finally:
        memory.rm("/benchmarks", recursive=True)
