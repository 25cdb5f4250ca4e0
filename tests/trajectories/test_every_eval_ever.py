"""Every Eval Ever: what is written reads back with equal numbers, and what the schema can't hold is named."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import example, given, settings
from hypothesis import strategies as st

import evalkit
from evalkit import compare, kinds, trajectories
from evalkit.cli import main
from evalkit.io import SourceError
from evalkit.kinds import Logs
from evalkit.kinds.every_eval_ever import write_every_eval_ever
from tests.trajectories import folders as make
from tests.trajectories.test_formats import rows_of
from tests.trajectories.test_lm_eval import evaluation
from tests.trajectories.test_lm_eval import results as lm_results
from tests.trajectories.test_lm_eval import sample as lm_sample

RATE = ["n", "n_tasks", "estimate", "low", "high"]
COLUMNS = ["task_type", "task_id", "model_name", "agent", "repetition", "status", "score", "is_successful", "tokens_in"]
COLUMNS += ["cost", "duration", "turns", "temperature", "started"]


def figures(logs: Logs) -> np.ndarray:
    table = kinds.rates(logs.runs, kind=logs.kind, missing="exclude").dropna(subset="estimate")
    return table.set_index("model_name").sort_index()[RATE].to_numpy("float64")


@pytest.mark.parametrize(
    "source",
    [
        "trajectories/harbor", "trajectories/inspect", "trajectories/tau2", "trajectories/table/runs.csv",
        "crafter", "mindcraft/runs",
    ],
)  # fmt: skip
def test_the_figures_of_samples_of_all_kinds_read_back_as_they_were(tmp_path, source):
    logs = evalkit.load(f"samples:{source}")
    done = write_every_eval_ever(logs, tmp_path / "a.eee", when=0)
    back = trajectories.load(tmp_path / "a.eee")
    np.testing.assert_allclose(figures(back), figures(logs), rtol=1e-12)
    assert len(back.runs) == done.runs
    for path in done.files[::2]:
        document = json.loads(Path(path).read_text())
        own = back.runs[back.runs["source"] == path.replace(".json", "_samples.jsonl")]
        (result,) = document["evaluation_results"]
        assert document["detailed_evaluation_results"]["total_rows"] == len(own)
        assert result["score_details"]["score"] == pytest.approx(kinds.rates(own)["estimate"].item())


def test_every_column_that_runs_share_reads_back(tmp_path):
    make.harbor_job(tmp_path / "job", make.trial(), make.trial("b", None, "AgentTimeoutError"))
    logs = trajectories.load(tmp_path / "job")
    write_every_eval_ever(logs, tmp_path / "a.eee")
    back = trajectories.load(tmp_path / "a.eee")
    assert rows_of(back.runs.sort_values("task_id"), *COLUMNS) == rows_of(logs.runs.sort_values("task_id"), *COLUMNS)


VALUES = ("", "0", "1", "0.25", "0.7")
OUTCOMES = ("", "yes", "no")


@example([*product(VALUES, OUTCOMES)])
@settings(max_examples=6)
@given(st.lists(st.tuples(st.sampled_from(VALUES), st.sampled_from(OUTCOMES)), min_size=1, max_size=6))
def test_a_score_and_an_outcome_read_back_apart(tmp_path_factory, cells):
    folder = tmp_path_factory.mktemp("table")
    rows = [f"t{n},oak,{score},{passed}" for n, (score, passed) in enumerate(cells)]
    make.write(folder / "runs.csv", "\n".join(["task,model,score,passed", *rows, "z,oak,1,yes"]))
    logs = trajectories.load(folder)
    write_every_eval_ever(logs, folder / "a.eee")
    back, known = trajectories.load(folder / "a.eee").runs, logs.runs[logs.runs["is_successful"].notna()]
    assert rows_of(back, "task_id", "score", "is_successful") == rows_of(known, "task_id", "score", "is_successful")


def test_what_the_schema_cannot_hold_is_named(tmp_path):
    trials = [make.tb_trial("a"), make.tb_trial("b", None, "parse_error")]
    make.write(tmp_path / "r" / "results.json", make.tb_summary(*trials))
    line = ["trajectories", str(tmp_path / "r"), "--output", str(tmp_path / "a.eee")]
    said = CliRunner().invoke(main, line).stdout
    assert "1 run of 1 evaluation written to" in said
    assert "1 run not measured: left out" in said
    again = CliRunner().invoke(main, line)
    assert again.exit_code
    assert "empty or not there yet" in again.stderr
    make.write(tmp_path / "b" / "results.json", make.tb_summary(trials[1]))
    with pytest.raises(SourceError, match="no run has a score"):
        write_every_eval_ever(trajectories.load(tmp_path / "b"), tmp_path / "b.eee")


def written(logs: Logs, folder: Path) -> list[dict]:
    """Write runs; return the lines of all runs."""
    paths = write_every_eval_ever(logs, folder).files[1::2]
    return [json.loads(line) for path in paths for line in Path(path).read_text().splitlines()]


@pytest.mark.parametrize(
    ("resolved", "mode", "error"),
    [
        (True, "unset", None),
        (False, "unset", None),
        (True, "agent_timeout", "agent_timeout"),
        (False, "context_length_exceeded", "context_length_exceeded"),
        (False, "fatal_llm_parse_error", "fatal_llm_parse_error"),
    ],
)
def test_only_runs_that_ended_irregularly_have_an_error(tmp_path, resolved, mode, error):
    make.write(tmp_path / "r" / "results.json", make.tb_summary(make.tb_trial("a", resolved, mode)))
    logs = trajectories.load(tmp_path / "r")
    assert [line.get("error") for line in written(logs, tmp_path / "a.eee")] == [error]
    back = trajectories.load(tmp_path / "a.eee")
    assert rows_of(back.runs, "status", "exit_reason", "error") == rows_of(logs.runs, "status", "exit_reason", "error")


@pytest.mark.parametrize("reason", ["user_stop", "agent_stop", "max_steps"])
def test_the_end_of_a_conversation_is_no_error(tmp_path, reason):
    make.write(tmp_path / "r" / "results.json", make.tau2(make.simulation("7", 0, 0.0, reason)))
    lines = written(trajectories.load(tmp_path / "r"), tmp_path / "a.eee")
    assert {line.get("error") for line in lines} == {None if reason.endswith("_stop") else reason}


def test_the_exception_of_a_run_follows_the_reason_why_it_ended(tmp_path):
    make.harbor_job(tmp_path / "job", make.trial("b", None, "AgentTimeoutError"))
    lines = written(trajectories.load(tmp_path / "job"), tmp_path / "a.eee")
    assert [line["error"] for line in lines] == ["AgentTimeoutError: it broke"]


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        ("No such file: '/home/jane.doe/keys'", "No such file: '~/keys'"),
        ("C:\\Users\\Jane\\a.py: denied", "~\\a.py: denied"),
        ("/Users/jane: full", "~: full"),
        ("out of memory", "out of memory"),
    ],
)
def test_home_folders_are_not_published(tmp_path, error, shown):
    raised = {"exception_type": "AgentTimeoutError", "exception_message": error}
    make.harbor_job(tmp_path / "job", make.trial(exception_info=raised))
    text = json.dumps(written(trajectories.load(tmp_path / "job"), tmp_path / "a.eee"))
    assert "jane" not in text.casefold()
    assert json.dumps(f"AgentTimeoutError: {shown}") in text


def lm_output(folder: Path, model: str, hashes: dict[int, str], shots: int = 3) -> Path:
    """Write samples of lm-eval with two metrics, and their results."""
    grades = {"metrics": ["acc", "f1"], "f1": 0.25}
    lines = [lm_sample(doc, float(doc % 2), doc_hash=digest, **grades) for doc, digest in hashes.items()]
    stated = lm_results(model, task="trivia", n=len(lines), **{"n-shot": {"trivia": shots}})
    return evaluation(folder / model.replace("/", "__"), *lines, task="trivia", stated=stated)


@pytest.mark.parametrize(
    ("other", "shots", "pairs"),
    [
        ({1: "one", 2: "two", 4: "four"}, 3, ["1", "2", "4"]),
        ({1: "one", 2: "new", 4: "four"}, 3, ["1", "4"]),
        ({1: "one", 2: "two", 4: "four"}, 0, []),
    ],
)
def test_documents_and_settings_that_differ_are_not_paired_when_read_back(tmp_path, other, shots, pairs):
    logs = [
        lm_output(tmp_path, "org/oak", {1: "one", 2: "two", 4: "four"}),
        lm_output(tmp_path, "org/elm", other, shots),
    ]
    for at, folder in enumerate(logs):
        assert all(line["sample_hash"] for line in written(trajectories.load(folder), tmp_path / f"{at}.eee"))
    together = write_every_eval_ever(trajectories.load(logs), tmp_path / "2.eee")
    assert together.evaluations == 2
    for source in (logs, [tmp_path / "0.eee", tmp_path / "1.eee"], tmp_path / "2.eee", [tmp_path / "0.eee", logs[1]]):
        runs = trajectories.load(source).runs
        assert compare.pairs(runs)["n_tasks"].tolist() == [len(pairs)]
        shared = runs.groupby(["task_id", runs["task_version"].fillna("")])["model_name"].nunique()
        assert shared[shared.eq(2)].index.get_level_values(0).tolist() == pairs


def test_all_scores_are_written_and_can_be_chosen(tmp_path):
    logs = trajectories.load(lm_output(tmp_path, "org/oak", {1: "one", 2: "two", 4: "four"}))
    lines = written(logs, tmp_path / "a.eee")
    keys = ["trivia:acc,none"] * 3 + ["trivia:f1,none"] * 3
    assert [line["evaluation_result_id"] for line in lines] == keys
    (path,) = Path(tmp_path / "a.eee").rglob("*[!s].json")
    document = json.loads(path.read_text())
    assert [one["score_details"]["score"] for one in document["evaluation_results"]] == [pytest.approx(1 / 3), 0.25]
    assert document["eval_library"] == {"name": "lm-eval", "version": "0.4.9"}
    for score in ("", "acc,none", "f1,none"):
        back = trajectories.load(tmp_path / "a.eee", score=score).runs
        known = trajectories.load(tmp_path / "org__oak", score=score).runs
        columns = ("task_id", "score_key", "score", "is_successful", "task_checksum", "document_hash")
        assert rows_of(back, *columns) == rows_of(known, *columns)


def row(task: str, score: float, correct: bool, metric: str = "acc", **changes: object) -> dict:
    """Return a line as others write it."""
    return {
        "schema_version": "0.2.2",
        "evaluation_id": "e",
        "model_id": "org/m",
        "evaluation_name": "sums",
        "evaluation_result_id": f"sums:{metric}",
        "sample_id": task,
        "interaction_type": "single_turn",
        "input": {"raw": "2 + 2?", "reference": ["4"]},
        "output": {"raw": ["4"]},
        "messages": None,
        "answer_attribution": [],
        "evaluation": {"score": score, "is_correct": correct},
        "token_usage": {"input_tokens": 5, "output_tokens": 1, "total_tokens": 6},
        **changes,
    }


@pytest.mark.parametrize(
    ("rows", "told_by_them"),
    [
        ([row("1", 1.0, True), row("2", 0.0, False)], [["1", 0, 1.0, True], ["2", 0, 0.0, False]]),
        ([row("1", 1.0, True), row("1", 0.0, False)], [["1", 0, 1.0, True], ["1", 1, 0.0, False]]),  # repetitions
        ([row("1", 1.0, True), row("1", 0.5, False, "f1")], [["1", 0, 1.0, True]]),  # metrics of one run
        ([row("1", 0.5, True), row("2", 1.0, True)], [["1", 0, 0.5, None], ["2", 0, 1.0, None]]),  # says how much
        ([row("1", 0.0, True), row("2", 1.0, False)], [["1", 0, 0.0, True], ["2", 0, 1.0, False]]),  # lower is better
        (
            [row("1", 1.0, True, sample_hash="aa"), row("1", 0.0, False, sample_hash="bb")],
            [["1 aa", 0, 1.0, True], ["1 bb", 1, 0.0, False]],
        ),  # documents
        ([row("1", 0.0, False, error="RateLimitError")], [["1", 0, None, None]]),
    ],
)
def test_lines_that_others_wrote_are_runs_of_which_metrics_are_scores(tmp_path, rows, told_by_them):
    make.write(tmp_path / "x_samples.jsonl", "\n".join(map(json.dumps, rows)))
    logs = trajectories.load(tmp_path)
    assert rows_of(logs.runs, "task_id", "repetition", "score", "is_successful") == told_by_them
    assert rows_of(logs.runs[:1], "model_name", "task_type", "tokens_in") == [["org/m", "sums", 5]]
    assert logs.messages["text"].tolist()[:2] == ["2 + 2?", "4"]


def test_figures_without_runs_are_no_runs_and_unknown_versions_are_named(tmp_path):
    figures_only = {"schema_version": "0.9", "evaluation_id": "e", "evaluation_results": [], "model_info": {}}
    make.write(tmp_path / "a.json", figures_only)
    with pytest.raises(SourceError, match="figures of an evaluation, without its runs"):
        trajectories.load(tmp_path)
    lines = [json.dumps(row("1", 1.0, True, schema_version="2.0")), "5", '{"a', "{}"]
    make.write(tmp_path / "b.jsonl", "\n".join(lines))
    reasons = " ".join(trajectories.load(tmp_path).ledger["reason"])
    for lost in ("1 broken line left out", "1 line without an object left out", "1 line without a sample"):
        assert lost in reasons
    assert "schema_version 2.0 is unknown (1 record)" in reasons
    assert "schema_version 0.9 is unknown (1 record)" in reasons


def test_filters_of_a_document_that_was_converted_from_lm_eval_are_scores_of_one_run(tmp_path):
    strict, flexible = (
        row("0", score, score == 1, f"em:{name}", evaluation_name=f"sums/{name}", evaluation_result_id=f"em:{name}")
        for name, score in (("strict", 0.0), ("flexible", 1.0))
    )
    without = row("1", 0.0, False, evaluation_result_id=None, metadata={"lm_eval_metrics": '{"perplexity": [-1.5, 8]}'})
    make.lines(tmp_path / "a_samples.jsonl", strict, flexible, without)
    logs = trajectories.load(tmp_path)
    assert rows_of(logs.runs, "task_type", "task_id", "score", "is_successful") == [
        ["sums", "0", 0.0, False],
        ["sums", "1", None, None],
    ]
    assert set(logs.scores["key"]) == {"em:strict", "em:flexible"}
