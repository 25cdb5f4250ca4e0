"""What is made of runs: plans, repetitions, endings, tools, findings, tables of one's own, and pages."""

import json
import zipfile
from math import comb
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import evalkit
from evalkit import compare, kinds, trajectories
from evalkit.cli import main
from evalkit.display.terminal import summary
from evalkit.display.words import finding_text
from evalkit.evidence import write_view
from evalkit.io import SourceError
from evalkit.kinds import pipeline
from evalkit.kinds.runs import outcomes
from evalkit.trajectories import analysis, transcript
from tests.trajectories import folders as make

REWARDS = {"a": (1, 1, 0, 1), "b": (0, 0, 1), "c": (1, 1, 1, 1)}  # of four planned trials, one of b is missing


@pytest.fixture
def simulated(tmp_path) -> Path:
    """Results of tau2-bench: a trial of b is missing, and one of c was ended by something else."""
    runs = [
        make.simulation(task, trial, reward, "infrastructure_error" if (task, trial) == ("c", 3) else "user_stop")
        for task, rewards in REWARDS.items()
        for trial, reward in enumerate(rewards)
    ]
    return make.write(tmp_path / "results.json", make.tau2(*runs, trials=4))


def test_both_conventions_of_pass_hat_k_are_those_of_a_plain_computation(simulated):
    logs = trajectories.load(simulated)
    table = analysis.reliability(logs.runs, logs.plans).set_index(["trials", "measure"])["estimate"]
    solved = {task: sum(rewards) for task, rewards in REWARDS.items()} | {"c": 3}
    for k in (1, 2, 3):
        planned = np.mean([comb(c, k) / comb(4, k) for c in solved.values()])
        assert table["planned", f"pass^{k}"] == pytest.approx(planned)
        at_least = np.mean([1 - comb(4 - c, k) / comb(4, k) for c in solved.values()])
        assert table["planned", f"pass@{k}"] == pytest.approx(at_least)
    measured = np.mean([comb(c, 3) / comb(n, 3) for c, n in ((3, 4), (1, 3), (3, 3))])
    assert table["measured", "pass^3"] == pytest.approx(measured)


ROWS = [
    "model,task,success,run_id",
    *(f"{m},t{i % 4},{int(i < n)},{m}{i}" for m, n in (("a", 5), ("b", 2)) for i in range(8)),
]
WITHOUT_IDS = [row.rpartition(",")[0] for row in ROWS]
OF_ONE_ID = [f"{row},{'run_id' if row == WITHOUT_IDS[0] else 'monday'}" for row in WITHOUT_IDS]


@pytest.mark.parametrize(
    ("tables", "copies"),
    [
        ([ROWS], 0),
        ([ROWS, ROWS], 16),
        ([WITHOUT_IDS, WITHOUT_IDS], 0),  # without ids they may be runs of their own, as of an agent without randomness
        ([WITHOUT_IDS[:2]] * 3, 0),  # files of one row, of three repetitions
        ([WITHOUT_IDS], 0),  # rows that are equal are repetitions
        ([WITHOUT_IDS, WITHOUT_IDS[:9]], 0),
        ([OF_ONE_ID], 0),  # an id of the whole experiment names no run
        ([[*ROWS, *ROWS[1:4]]], 3),
        ([ROWS, ROWS[:6]], 5),
        ([ROWS, [*ROWS[:1], ROWS[1].replace("1,a0", "0,a0")]], 0),  # another value is another run
    ],
)
def test_exact_copies_of_rows_and_tables_are_rows_that_count_in_no_rate(tmp_path, tables, copies):
    for number, rows in enumerate(tables):
        (tmp_path / f"{number}.csv").write_text("\n".join(rows))
    logs = trajectories.load(tmp_path)
    assert len(logs.runs) == sum(len(rows) - 1 for rows in tables)
    assert kinds.has_flag(logs.runs, "duplicate").sum() == copies
    assert kinds.rates(logs.runs)["n"].sum() == len(logs.runs) - copies
    assert ("which rates exclude" in " ".join(logs.ledger["reason"])) == bool(copies)


def test_without_a_plan_nothing_is_said_to_be_planned(tmp_path):
    rows = [f"a,t{i % 4},{int(i < 5)}" for i in range(8)]
    (tmp_path / "runs.csv").write_text("\n".join(["model,task,success", *rows]))
    logs = trajectories.load(tmp_path)
    assert not analysis.has_plan(logs.plans)
    assert set(analysis.reliability(logs.runs, logs.plans)["trials"]) == {"measured", "all"}
    assert "planned" not in summary(logs, {"all": True})


def test_scores_that_say_how_much_have_neither_pass_at_k_nor_failures(tmp_path):
    runs = [make.simulation("a", trial, reward, "user_stop") for trial, reward in enumerate((0.2, 0.7))]
    logs = trajectories.load(make.write(tmp_path / "results.json", make.tau2(*runs, trials=3)))
    assert analysis.reliability(logs.runs, logs.plans).empty
    assert "endings" not in [found.code for found in analysis.findings([], logs.runs, logs.plans, logs.ledger)]


def test_planned_present_missing_running_repeated_and_retried_trials_are_counted(tmp_path):
    done = [make.trial(task=task) for task in ("a", "a", "b")]
    make.harbor_job(tmp_path / "job", *done, make.trial(task="c", reward=None, finished_at=None), planned=6)
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "result.json").write_bytes((tmp_path / "job" / "a__0" / "result.json").read_bytes())
    logs = trajectories.load(tmp_path)
    (row,) = analysis.trials(logs.runs, logs.plans).query("plan != 'no plan'").to_dict("records")
    # of two files with one run the first by its path counts
    assert (row["planned"], row["present"], row["running"], row["missing"], row["repeated"]) == (6, 2, 1, 2, 1)
    assert analysis.missing(logs.runs, logs.plans).empty  # whose they are is not known
    wanted = [*(("openai/gpt-4o", task) for task in "aabc"), ("other", "c"), ("other", "d")]
    wanted = [{"task": {"name": task}, "agent": {"model_name": model}} for model, task in wanted]
    make.write(tmp_path / "job" / "lock.json", {"n_concurrent_trials": 4, "trials": wanted})
    logs = trajectories.load(tmp_path)
    gone = analysis.missing(logs.runs, logs.plans)
    assert gone[["model_name", "task_id", "missing"]].to_numpy().tolist() == [["other", "c", 1], ["other", "d", 1]]
    found = [finding_text(one) for one in analysis.findings([], logs.runs, logs.plans, logs.ledger)]
    assert found[0].startswith("2 of 6 planned trials missing, 1 still running; ")


@pytest.mark.parametrize(
    ("solved", "text"),
    [
        (["1", "0", "", "0", ""], "2 of 3 runs did not succeed."),
        (["1", "", "1", "1", ""], "None of 3 runs failed."),
        (["1", "0", "1", "1", "1"], "1 of 5 runs did not succeed."),
    ],
)
def test_runs_of_unknown_outcome_are_no_failures(tmp_path, solved, text):
    rows = [f"m,task {n},{cell}" for n, cell in enumerate(solved)]
    (tmp_path / "runs.csv").write_text("\n".join(["model,task,solved", *rows, ""]))
    logs = trajectories.load(tmp_path)
    found = {one.code: finding_text(one) for one in analysis.findings([], logs.runs, logs.plans, logs.ledger)}
    assert found["endings"] == text


def test_endings_tell_failures_at_a_limit_from_others_and_from_what_was_not_measured(tmp_path):
    errors = ("", "AgentTimeoutError", "RateLimitError", "VerifierTimeoutError", "AgentSafetyRefusalError")
    trials = [make.trial(task=f"t{i}", error=error, reward=0.0 if i else 1.0) for i, error in enumerate(errors)]
    logs = trajectories.load(make.harbor_job(tmp_path, *trials, make.trial(task="u", reward=None)))
    (row,) = analysis.endings(logs.runs).to_dict("records")
    counts = {name: n for name, n in row.items() if n and name != "model_name"}
    assert counts == {"success": 1, "failure": 1, "failure, stopped": 1, "not measured": 2, "no outcome": 1}
    reasons = analysis.exits(logs.runs).set_index("reason")
    assert reasons.loc["RateLimitError", ["ending", "error"]].tolist() == ["not measured", "it broke"]


def test_tools_and_their_errors_are_counted_per_run(tmp_path):
    one, other = make.simulation("a", 0, 1.0), make.simulation("a", 1, 1.0)
    one["messages"][2]["error"] = True
    reboot = {"id": "u1", "name": "reboot", "arguments": {}, "requestor": "user"}  # a tool of the simulated user
    other["messages"] = [*other["messages"][:1], {"role": "user", "content": None, "tool_calls": [reboot]}]
    logs = trajectories.load(make.write(tmp_path / "results.json", make.tau2(one, other)))
    (row,) = analysis.tool_use(logs, logs.runs).to_dict("records")
    assert {name: row[name] for name in ("tool", "read", "runs", "calls", "per_run", "errors", "estimate")} == {
        "tool": "find_order", "read": 2, "runs": 1, "calls": 1, "per_run": 0.5, "errors": 1, "estimate": 1.0,
    }  # fmt: skip


def test_models_that_did_not_run_alike_are_said_before_the_rank(tmp_path):
    for number, (model, agent) in enumerate((("m1", "terminus"), ("m2", "openhands"))):
        info = {"name": agent, "version": "1", "model_info": {"name": model}}
        make.harbor_job(tmp_path / str(number), *(make.trial(task=task, agent_info=info) for task in "abcd"))
    by_model = trajectories.load(tmp_path, compare_by="model_name")
    first = compare.findings(compare.leaderboard(by_model.runs))[0]
    assert finding_text(first).startswith("Models ran with different settings: agent (openhands; terminus)")
    by_agent = trajectories.load(tmp_path)  # where agents differ, what is compared is the agent with its model
    assert sorted(by_agent.runs["model_name"].unique()) == ["openhands · m2", "terminus · m1"]


def test_a_frame_with_model_task_and_score_has_a_leaderboard():
    frame = pd.DataFrame({"LLM": list("aabb"), "Question ID": list("xyxy"), "Correct": [True, False, True, True]})
    table = compare.leaderboard(frame).table
    assert table.set_index("model_name")["estimate"].to_dict() == {"b": 1.0, "a": 0.5}
    scores = compare.leaderboard(frame.assign(Correct=[0.5, 0.25, 1, 0.5]).rename(columns={"Correct": "points"}))
    assert (scores.outcomes.title, scores.table["estimate"].tolist()) == ("mean score (points)", [0.75, 0.375])
    for values, name in (([1e-90, 0, 2e-90, 0], "mean score"), ([0.9999999, 1e-17, 1, 1], "success rate")):
        assert compare.leaderboard(frame.assign(points=values).drop(columns="Correct")).outcomes.name == name
    with pytest.raises(SourceError, match="no column for the score; there are LLM, Question ID"):
        compare.leaderboard(frame.drop(columns="Correct"))


@pytest.mark.parametrize(
    "rows",
    [
        [(m, f"q{n % 10}", (n % 10 + n // 10 * 3) % 4 > 1, n // 10, None) for m in "vw" for n in range(40)],
        [(m, f"q{n}", n > 5, None, f"tool{n % 2}") for m in "vw" for n in range(9)],
        [(m, 3.0, 0.5, None, None) for m in "vw"] + [("v", 7, 1, None, None)] * 2,
    ],
    ids=["checkpoints", "agents", "scores"],
)
def test_a_frame_gives_the_answer_of_a_file_with_its_rows(tmp_path, rows):
    frame = pd.DataFrame(rows, columns=["model", "task", "score", "session", "agent"])
    frame["trajectory_id"] = frame.index
    frame = pd.concat([frame, frame.tail(3)]).dropna(axis="columns", how="all")  # with copies
    frame.to_csv(tmp_path / "runs.csv", index=False)
    boards = compare.leaderboard(frame), compare.leaderboard(trajectories.load(tmp_path).runs)
    pd.testing.assert_frame_equal(boards[0].table, boards[1].table)
    pd.testing.assert_frame_equal(boards[0].pairs, boards[1].pairs)
    assert str(boards[0].notes) == str(boards[1].notes)


@pytest.mark.parametrize(
    ("scored", "said"),
    [
        ([("v", "story", 0.4), ("v", "story", 0.6), ("w", "story", 0.9)], "3 runs of story left out: their scores are"),
        ([("v", "story", 0.4), ("v", "plan", 7), ("v", "plan", 8)], "3 runs of plan and story left out: their scores"),
        ([("x", "story", 0.4), ("x", "story", 0.1)], "the runs of x have scores, which are neither"),
    ],
)
def test_runs_with_scores_beside_runs_with_outcomes_are_measured_and_left_out_of_rates(scored, said):
    rows = [(m, "code", n % 2) for m in "vw" for n in range(8)] + scored
    frame = pd.DataFrame(rows, columns=["model", "benchmark", "score"])
    runs = pipeline.runs_of(frame.assign(task="q" + frame.index.astype("str")))
    board = compare.leaderboard(runs)
    assert said in str(board.notes)
    assert "not measured" not in str(board.notes)
    rates = kinds.rates_by_denominator(runs).set_index("model_name")
    assert rates.loc[["v", "w"], ["n", "n_not_measured", "estimate"]].to_numpy().tolist() == [[8, 0, 0.5]] * 2
    assert kinds.rates(runs, "model_name", missing="failure")["n"].sum() == 16


@pytest.mark.parametrize("column", ["metric", "Metric Name", "scorer"])
def test_of_a_table_with_a_row_for_each_score_one_score_counts(tmp_path, column):
    values = {"pass": [1, 0, 1], "bleu": [0.2, 0.3, 0.9], "seconds": [40, 50, 60]}
    rows = [("v", f"q{n}", key, own[n]) for key, own in values.items() for n in range(3)]
    table = pd.DataFrame(rows, columns=["model", "question_id", column, "value"])
    table["run_id"] = "v-" + table["question_id"]
    table.to_csv(tmp_path / "runs.csv", index=False)
    with pytest.raises(SourceError, match="selects one of pass, bleu and seconds"):
        compare.leaderboard(table)
    with pytest.raises(SourceError, match="selects one of pass, bleu and seconds"):
        trajectories.load(tmp_path, score="rouge")
    for key, title in (("pass", "success rate (pass)"), ("seconds", "mean score (seconds)")):
        logs = trajectories.load(tmp_path, score=key)
        (row,) = kinds.rates(logs.runs).to_dict("records")
        assert (row["n"], row["estimate"]) == (3, pytest.approx(np.mean(values[key])))
        assert outcomes(logs.runs).title == title
        assert "shared by rows" not in str(logs.chosen)


def test_benchmarks_with_scores_of_their_own_are_no_rows_for_each_score_of_a_run():
    rows = [(m, bench, f"q{n}", f"{bench}-score", n % 2) for m in "vw" for bench in ("x", "y") for n in range(4)]
    board = compare.leaderboard(pd.DataFrame(rows, columns=["model", "benchmark", "task", "metric", "score"]))
    assert board.table["n"].tolist() == [8, 8]


ROWS = [{"model": "a", "task": "é", "score": 1}, {"model": "b", "task": "é", "score": 0}]
DOCUMENTS = [
    ROWS,
    {"about": 1, "results": [{"task_id": "é", "is_resolved": one["score"], "agent": one["model"]} for one in ROWS]},
    [{"model": row["model"], "task": "é", "status": ("failed", "Resolved")[row["score"]]} for row in ROWS],
    {"runs": ROWS},
    {name: [row[name] for row in ROWS] for name in ROWS[0]},
    pd.DataFrame(ROWS).to_dict(),
]


@pytest.mark.parametrize(
    "data",
    [
        "model;task;score\na;é;1\nb;é;0\n".encode("cp1252"),
        "\ufeffmodel,task,score\na,é,1\nb,é,0\n".encode(),
        "model\ttask\tscore\na\té\t1\nb\té\t0\n".encode("utf-16"),
        '"model","task","score"\n"a","é","1"\n"b","é","0"\n'.encode(),
        "LLM\tInstance ID\tCorrect\na\té\tYes\nb\té\tno\n".encode(),
        "model,task,exit_reason\na,é,passed\nb,é,failed\n".encode(),
        '{"model": "a", "task": "é", "status": "success"}\n{"model": "b", "task": "é", "status": "failed"}\n'.encode(),
        '{"model": "a", "test_id": "é", "passed": true}\n{"model": "b", "test_id": "é", "passed": 0}\n'.encode(),
        "sep=;\r\nmodel;task;score\r\na;é;1,0\r\nb;é;0,0\r\n".encode(),
        " Model |Task|Is correct?\na|é|y\nb|é|n\n".encode(),
        "LLM,problem,Acc (%)\na,é,100%\nb,é,0 %\n".encode(),
        "model,task,score\ra,é,4/4\rb,é,0/4\r".encode(),
        "model,task,score\na,é,1\nb,é,0\n".encode("utf-16-le"),
        "model,task,score\na,é,1\nb,é,0\n".encode("utf-32"),
        "My runs, by hand\n\nmodel,task,score,n\na,é,✅,2\nb,é,❌,2\n,,,\n".encode(),
        *(json.dumps(document, indent=indent).encode() for document in DOCUMENTS for indent in (None, 2)),
        '{"model": "a", "task": "é", "score": 1, "n": NaN, "s": "\u2028"}\n'.encode() + json.dumps(ROWS[1]).encode(),
    ],
    ids=lambda data: ascii(data[:24])[2:-1],
)
def test_tables_are_read_as_people_and_spreadsheets_write_them(tmp_path, data):
    path = tmp_path / ("runs.json" if data[:1] in b"[{" else "runs.csv")
    path.write_bytes(data)
    columns = ["model_name", "task_id", "score", "is_successful"]
    assert evalkit.load(path).runs[columns].to_numpy().tolist() == [["a", "é", 1.0, True], ["b", "é", 0.0, False]]


SPOKEN = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
LANGCHAIN = [{"type": "human", "content": "a"}, {"type": "ai", "content": "b"}]
ONLY_ASKED = [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]
PARTS = [{"type": "text", "content": "c"}]


@pytest.mark.parametrize(
    ("cells", "texts"),
    [
        ({"dialog": SPOKEN}, ["a", "b"]),
        ({"events_of_run": LANGCHAIN, "note": "n"}, ["a", "b"]),
        ({"prompt": ONLY_ASKED, "documents": PARTS, "dialog": SPOKEN}, ["a", "b"]),
        ({"messages": SPOKEN, "examples": LANGCHAIN + SPOKEN}, ["a", "b"]),
        ({"dialog": SPOKEN, "examples": SPOKEN}, []),  # either may be the run
        ({"prompt": ONLY_ASKED}, []),
        ({"": "12", "note": "[{"}, []),
    ],
)
@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_the_only_column_with_a_chat_is_the_transcript(tmp_path, cells, texts, suffix):
    row = {"model": "m", "task": "t", "score": 1, **cells}
    path = tmp_path / f"runs.{suffix}"
    if suffix == "jsonl":
        path.write_text(f"{json.dumps(row)}\n")
    else:
        texts_of = {name: json.dumps(cell) if isinstance(cell, list) else cell for name, cell in row.items()}
        pd.DataFrame([texts_of]).to_csv(path, index=False)
    logs = trajectories.load(path)
    assert logs.messages["text"].tolist() == texts
    other_cells = str(logs.runs["extra"].iloc[0])
    assert sum(name not in other_cells for name in cells) == bool(texts)


def test_a_file_may_hold_one_run_if_it_names_the_model(tmp_path):
    for at, row in enumerate([*ROWS, {"task": "é", "score": 1, "part": "of something else"}]):
        make.write(tmp_path / f"{at}.json", row)
    assert evalkit.load(tmp_path).runs["model_name"].tolist() == ["a", "b"]


def test_a_spreadsheet_is_named_as_such(tmp_path):
    with zipfile.ZipFile(tmp_path / "runs.xlsx", "w") as book:
        book.writestr("[Content_Types].xml", "<Types/>")
    with pytest.raises(SourceError, match=r"looks like a spreadsheet\); `pandas.read_excel` reads those, or save it"):
        evalkit.load(tmp_path / "runs.xlsx")


def test_a_line_that_is_still_being_written_is_left_out_and_said(tmp_path):
    line = json.dumps({"model": "a", "task": "t", "score": 1})
    logs = trajectories.load(make.write(tmp_path / "runs.jsonl", f"{line}\n{line}\n{line[:9]}"))
    assert len(logs.runs) == 2
    assert "1 broken line left out" in logs.ledger["reason"].item()


def test_a_table_with_unknown_columns_lists_them_until_the_user_states_their_meaning(tmp_path):
    path = make.write(tmp_path / "ours.csv", "Who did it,Riddle,How well,score\na,t,1,9\nb,t,0,9\n")
    result = CliRunner().invoke(main, ["compare", str(path)])
    assert result.exit_code == 2
    assert "no column for the task_id; there are Who did it, Riddle, How well, score" in result.stderr
    columns = ["model=Who did it", "task=Riddle", "score=How well"]
    output = CliRunner().invoke(main, ["compare", str(path), *(word for one in columns for word in ("--column", one))])
    assert output.exit_code == 0
    runs = trajectories.load(path, columns=columns).runs
    columns = ["model_name", "task_id", "score", "extra"]
    left = '{"score":"9"}'
    assert runs[columns].to_numpy().tolist() == [["a", "t", 1.0, left], ["b", "t", 0.0, left]]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"epoch": [1, 2, 2, 1]}, "1 row equal to others with this repetition: all count"),
        ({"epoch": [1, 2, 2, 1], "seconds": [4, 5, 6, 4]}, ""),
        (
            {"epoch": [1, 2, 2, 1], "run_id": ["p", "q", "q", "r"]},
            "1 row with the id and values of another row: copies",
        ),
        ({}, ""),
    ],
)
def test_rows_that_repeat_a_repetition_are_named(tmp_path, more, said):
    path = tmp_path / "runs.csv"
    table = pd.DataFrame({"model": "m", "task": ["t", "t", "t", "u"], "score": 1, **more})
    table.to_csv(path, index=False)
    logs = trajectories.load(path)
    assert said in str(logs.chosen)
    assert ("equal to others" in str(logs.chosen)) == ("equal to others" in said)
    assert len(logs.runs) == 4
    of_frames = [pipeline.runs_of(one) for one in (table, table.set_index(["model", "task"]))]
    counts = [kinds.rates(runs)["n"].tolist() for runs in (logs.runs, *of_frames)]
    assert counts == [counts[0]] * 3


@pytest.mark.parametrize(
    ("of_few", "of_others", "title", "code"),
    [
        ([0, 1, 0, 1], [1, 0, 0, 1], "success rate", ""),
        ([0, 1, 0, 1], [0.5, 0.25, 1, 0], "mean score", "amounts"),
        ([0, 1, 0, 1], [3, 12, 7, 0], "mean score", "amounts"),
        ([0.5, 1, 0, 1], [3, 12, 7, 0], "mean score", "amounts"),
        ([0.5, 1, 0, 1], [0.25, 1, 0, 0], "mean score", ""),
        ([3, 1, 0, 1], [0.25, 1, 0, 0], "mean score", ""),
    ],
)
def test_what_scores_are_is_decided_before_runs_are_selected(tmp_path, of_few, of_others, title, code):
    rows = [(m, f"t{n}", one) for m, own in (("few", of_few), ("others", of_others)) for n, one in enumerate(own)]
    path = tmp_path / "runs.csv"
    pd.DataFrame(rows, columns=["model", "task", "score"]).to_csv(path, index=False)
    runs = trajectories.load(path).runs
    chosen = trajectories.load(path, where="model_name=few")
    found = [one.set_index("model_name").loc["few"] for one in map(kinds.rates, (runs, chosen.runs, runs.head(4)))]
    bounds = [one[["estimate", "low", "high"]].tolist() for one in found]
    assert bounds == [bounds[0]] * 3
    assert outcomes(chosen.runs).title == title
    assert [one.code for one in chosen.chosen.only("amounts").notes] == ([code] if code else [])


UNNAMED = [{"model": m, "score": n % 2, "case": f"c{n}"} for m in "ab" for n in range(3)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ours.json", json.dumps(UNNAMED)),
        ("ours.json", json.dumps({"about": "x", "rows": UNNAMED}, indent=1)),
        ("ours.jsonl", "\n".join(map(json.dumps, UNNAMED))),
        ("ours.csv", pd.DataFrame(UNNAMED).to_csv(index=False)),
    ],
)
def test_rows_without_a_task_are_refused_in_every_form_until_a_column_is_named(tmp_path, name, text):
    path = make.write(tmp_path / name, text)
    with pytest.raises(SourceError, match="no column for the task_id; there are model, score, case; choose one"):
        evalkit.load(path)
    assert evalkit.load(path, columns="task_id=case").runs["task_id"].tolist() == ["c0", "c1", "c2"] * 2


def test_what_a_log_says_of_keys_and_environments_reaches_no_page(tmp_path):
    secret, name = "not-of-a-known-form-42", "HOME_OF_KEYS"
    env = {"env": {name: secret}}
    job = make.harbor_job(tmp_path / "logs" / "job", make.trial(config={"agent": {"kwargs": env, "name": "a"}}))
    make.write(job / "lock.json", {"n_concurrent_trials": 1, "trials": [{"task": {"name": "t"}, "agent": env}]})
    one = make.mini()
    one["info"]["config"]["environment"] = env
    make.write(tmp_path / "logs" / "a.traj.json", one)
    log = make.inspect_log(make.sample("q"))
    log["eval"]["model_args"] = log["eval"]["model_generate_config"] = {"key": secret, name: 1}
    (tmp_path / "logs" / "x.eval").write_bytes(make.inspect_archive(log))
    results = make.tau2(make.simulation("0", 0, 1.0))
    results["info"]["agent_info"]["llm_args"] = {"api_key": secret, "extra_headers": {name: secret}}
    make.write(tmp_path / "logs" / "results.json", results)
    logs = trajectories.load(tmp_path / "logs")
    assert len(logs.runs) == 4
    write_view(logs, logs.runs, tmp_path / "pages")
    shown = [path.read_text() for path in (tmp_path / "pages").rglob("*.html")]
    shown += [getattr(logs, frame).to_csv() for frame in ("runs", "scores", "plans", "messages", "tool_calls", "turns")]
    assert not [text for text in shown if secret in text or name in text]


def test_a_file_of_many_runs_is_opened_once_for_their_messages_and_once_for_their_pages(
    tmp_path, monkeypatch, simulated
):
    opened, paths = transcript.opened, []
    monkeypatch.setattr(
        transcript, "opened", lambda path, *data, **more: paths.append(path) or opened(path, *data, **more)
    )
    logs = trajectories.load(simulated)
    assert len(logs.messages) == 3 * len(logs.runs)
    write_view(logs, logs.runs, tmp_path / "pages")
    assert paths == [str(simulated)] * 2


def test_reasoning_is_folded_on_pages_and_errors_are_marked(tmp_path):
    row = {"model": "a", "task": "t", "score": 1}
    answer = {"role": "assistant", "content": "yes", "reasoning_content": "so and so"}
    row["messages"] = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "a/b.png"}}]}, answer]
    logs = trajectories.load(make.write(tmp_path / "runs.jsonl", json.dumps(row)))
    assert "messages" not in logs.runs["extra"].fillna("").item()
    write_view(logs, logs.runs, tmp_path / "pages")
    (page,) = (path.read_text() for path in (tmp_path / "pages" / "runs").glob("*.html"))
    assert "[image_url: a/b.png]" in page
    assert "<details" in page[page.index("reasoning") :]


def test_subagents_and_continuations_stand_in_their_place(tmp_path):
    trajectory = make.atif("do it", "asking", "done")
    trajectory["subagent_trajectories"] = [{**make.atif("sub task", "sub answer"), "trajectory_id": "sub"}]
    result = {"source_call_id": "c", "content": "answered", "subagent_trajectory_ref": [{"trajectory_id": "sub"}]}
    trajectory["steps"][1] |= {
        "reasoning_content": "hm",
        "tool_calls": [{"tool_call_id": "c", "function_name": "ask", "arguments": {"who": "sub"}}],
        "observation": {"results": [{"content": "seen"}, result, {"content": "heard"}]},
    }
    logs = trajectories.load(make.write(tmp_path / "trajectory.json", trajectory))
    texts = ["do it", "asking", "seen", "heard", "sub task", "sub answer", "done"]
    assert logs.messages["text"].tolist() == texts
    assert logs.messages.loc[1, ["role", "reasoning", "tokens_in", "cost"]].tolist() == ["assistant", "hm", 10, 0.25]
    calls = logs.tool_calls[["name", "arguments", "result"]].to_numpy().tolist()
    assert calls == [["ask", '{"who":"sub"}', "answered"]]


def test_commands_that_stand_in_texts_have_their_output_and_its_error(tmp_path):
    call = {"type": "function_call", "call_id": "c", "name": "bash", "arguments": "{}"}
    said = [
        {"role": "assistant", "content": "look", "extra": {"actions": [{"command": "ls x"}], "timestamp": 1.0}},
        {"role": "user", "content": "no such file", "extra": {"returncode": 2}},
        {"object": "response", "output": [call], "usage": {"input_tokens": 7, "output_tokens": 2}},
        {"type": "function_call_output", "call_id": "c", "output": "ok", "extra": {"returncode": 0}},
    ]
    log = make.mini()
    log["messages"] += said
    logs = trajectories.load(make.write(tmp_path / "a.traj.json", log))
    calls = logs.tool_calls[["name", "arguments", "result", "is_error"]].to_numpy().tolist()
    assert calls == [["shell", "ls x", "no such file", True], ["bash", "{}", "ok", False]]
    assert logs.messages.iloc[-1][["tokens_in", "tokens_out"]].tolist() == [7, 2]


def test_a_report_makes_no_failure_of_what_something_else_ended(tmp_path):
    for number, status in enumerate(("RateLimitError", "Submitted", "exit_error")):
        make.write(tmp_path / f"t{number}.traj.json", make.mini(exit_status=status))
    report = {"resolved_ids": ["t2"], "unresolved_ids": ["t1"], "empty_patch_ids": ["t0"], "submitted_ids": []}
    make.write(tmp_path / "gpt-4o.r.json", report)
    assert trajectories.load(tmp_path).runs["is_successful"].tolist() == [pd.NA, False, True]
