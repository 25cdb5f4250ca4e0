"""Audits: every planted defect is found, boards without one raise no alarm, and users add checks of their own."""

from functools import cached_property
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

import pandas as pd
import pytest
from click.testing import CliRunner

import evalkit
from benchmarks.audit import DEFECTS, audited, board, results
from evalkit import compare, trajectories
from evalkit.cli import main
from evalkit.compare.audit import moved
from evalkit.compare.check_registry import CHECKS, Audited, NotComputed
from evalkit.compare.checks import opens_own_file
from evalkit.display.words import finding_text
from evalkit.kinds.runs import kind_of, outcomes
from tests import messy
from tests.compare.runs import runs_of
from tests.trajectories import folders as make
from tests.trajectories import test_lm_eval as lm_eval


class Unranked(Audited):
    """Runs to audit without a ranking, which takes most of the time of an audit and which few checks need."""

    @cached_property
    def board(self):
        return compare.Comparison.of(outcomes(self.all_runs, self.value))


OF_RANKS = ("settings", "undecided ranks")  # checks that need the ranking


class Result(NamedTuple):
    """The result of a check, as in a row of an audit's table, and the estimates of its alternative ranking."""

    verdict: str
    count: int | None = None
    n: int | None = None
    notes: Any = ""
    order: pd.Series | None = None


def result_of(check, logs):
    """Run one check on logs."""
    examined = Audited(logs, logs.runs) if check in OF_RANKS else Unranked(logs, logs.runs)
    try:
        found = CHECKS[check].function(examined)
    except NotComputed as error:
        return Result("not computed", notes=error.notes)
    if not found.count:
        return Result("fine", found.count, found.n, found.notes)
    order = found.order if found.alternative is None else examined.estimates_of(found.alternative)
    return Result(found.verdict, found.count, found.n, found.notes, order)


@pytest.fixture
def checks():
    with mock.patch.dict(CHECKS):
        yield CHECKS


def write_board(folder, logs):
    """Write a board as `benchmarks.audit.audited` does, with the rates of its runs."""
    for name, one in logs.items():
        shift = one.pop("published", 0.0)
        make.write(folder / name, one | {"results": results(one, shift)})


@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_defect_is_found_by_its_check(name, tmp_path):
    check, plant = DEFECTS[name]
    rng = Random(0)
    logs = board(rng)
    plant(logs, rng)
    write_board(tmp_path, logs)
    found = result_of(check, evalkit.load(str(tmp_path), "trajectories"))
    assert found.verdict in ("look", "wrong")
    assert 0 < found.count <= found.n
    assert found.order is None or found.order.between(0, 1).all()


def test_a_board_without_a_defect_raises_no_alarm():
    table = audited(board(Random(0)))
    assert set(table["verdict"]) == {"fine", "not computed"}
    assert table["verdict"].eq("not computed").sum() == 3
    assert table.loc[table["verdict"].eq("fine"), "count"].eq(0).all()
    assert table.loc[table["verdict"].eq("not computed"), "notes"].map(str).ne("").all()


def test_every_defect_has_its_own_check_and_every_check_a_defect():
    assert {check for check, _ in DEFECTS.values()} == set(CHECKS)


@pytest.fixture
def runs(tmp_path):
    """Runs of two models, of which the second is first if time-outs do not count as successes."""
    rows = []
    for task in range(20):
        status = "timeout" if task < 8 else "ok"
        rows.append({"task_id": task, "model": "fast", "success": int(task < 12), "status": status})
        rows.append({"task_id": task, "model": "slow", "success": int(task < 9), "status": "ok"})
    pd.DataFrame(rows).to_csv(tmp_path / "runs.csv", index=False)
    return str(tmp_path)


def test_checks_name_models_and_agents_so_that_they_differ(tmp_path):
    names = [f"hub.example/laboratory/checkpoint-{letter}-instruct-2026-long" for letter in "abc"]
    rows = [
        {"model": name, "agent": f"agent{task % 2}", "task": task, "success": "" if task < 2 else task % 3 > 0}
        for name in names
        for task in range(9)
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "runs.csv", index=False)
    found = compare.audit(evalkit.load(str(tmp_path)), checks=["agents", "no outcome"])
    agents, unmeasured = (finding_text(finding) for finding in found.findings[:0:-1])
    assert [name for name in names if f"{name}: 2" not in agents] == []
    assert f"agent0 · {names[0]}: " in unmeasured


@pytest.mark.parametrize(
    ("successes", "said"),
    [
        ({"oak": [1, 0, 1]}, "Only oak was measured, so there is no ranking to check."),
        ({"oak": [1, 0], "elm": ["", ""]}, "Only oak was measured, so there is no ranking to check."),
        ({"oak": ["", ""], "elm": [""]}, "No named model was measured, so there is no ranking to check."),
        ({"": [1, 0, 1]}, "No named model was measured, so there is no ranking to check."),  # runs without a name
        ({"oak": [1, 0], "elm": [0, 0]}, "changes the ranking"),
    ],
)
def test_a_ranking_is_mentioned_only_if_there_are_two_models(tmp_path, successes, said):
    rows = [
        {"model": name, "task": task, "success": value}
        for name, values in successes.items()
        for task, value in enumerate(values)
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "runs.csv", index=False)
    answer = finding_text(compare.audit(evalkit.load(str(tmp_path)), checks=["names"]).findings[0])
    assert said in answer
    assert ("changes the ranking" in answer) is ("changes" in said)


def test_the_answer_says_who_would_be_first_otherwise(runs):
    found = compare.audit(evalkit.load(runs))
    row = found.table.set_index("check").loc["time-outs that succeeded"]
    assert (row["verdict"], row["count"], row["n"], row["first"], row["moved"]) == ("look", 8, 8, "slow", 2)
    assert row["run_id"] in set(evalkit.load(runs).runs["run_id"])
    text = finding_text(found.findings[0])
    assert text.startswith("1 of ")
    assert " changes the ranking: fast is first, otherwise slow. " in text


def test_a_check_of_ones_own_has_a_row_and_one_that_fails_does_not_stop_the_others(runs, checks):
    @compare.check("easy", "Are tasks easy?", noun="task")
    def easy(audited):
        rows = audited.runs[audited.runs["task_id"].eq("0")]
        return compare.Found(1, 20, rows, audited.without(rows), verdict="wrong")

    @compare.check("broken", "Is this broken?")
    def broken(audited):
        return 1 / 0

    @compare.check("lacking", "Is this lacking?")
    def lacking(audited):
        audited.needs("cost")

    table = compare.audit(evalkit.load(runs), checks=["easy", "broken", "lacking"]).table.set_index("check")
    assert table["verdict"].to_dict() == {"easy": "wrong", "broken": "not computed", "lacking": "not computed"}
    assert table.loc["easy", "moved"] == 0
    assert "ZeroDivisionError" in str(table.loc["broken", "notes"])
    assert str(table.loc["lacking", "notes"]) == "the logs state no cost"
    with pytest.raises(ValueError, match="no check 'esy'"):
        compare.audit(evalkit.load(runs), checks=["esy"])


RETURNED = {  # what a check of a user may return by mistake, and the cause that is said; the last one is right
    "a share": (lambda runs: compare.Found(0.75, 4), "TypeError: 'float' object cannot be interpreted as an integer"),
    "a text": (lambda runs: compare.Found(1, "4"), "TypeError: 'str' object cannot be interpreted as an integer"),
    "not a number": (
        lambda runs: compare.Found(float("nan"), 4),
        "TypeError: 'float' object cannot be interpreted as an integer",
    ),
    "missing": (lambda runs: compare.Found(pd.NA, 4), "TypeError: boolean value of NA is ambiguous"),
    "an unknown verdict": (lambda runs: compare.Found(1, 4, verdict="awful"), "ValueError: "),
    "runs without ids": (lambda runs: compare.Found(1, 4, runs[["model_name"]]), "KeyError: 'run_id'"),
    "a list": (lambda runs: [1, 4], "AttributeError: "),
    "a number of NumPy": (lambda runs: compare.Found(runs["task_id"].eq("0").sum(), 2, runs), ""),
}


def test_a_wrong_result_of_a_check_does_not_stop_the_others(runs, checks):
    for name, (made, _) in RETURNED.items():
        compare.check(name, "Is this wrong?")(lambda audited, made=made: made(audited.runs))
    table = compare.audit(evalkit.load(runs), checks=[*RETURNED, "names"]).table.set_index("check")
    assert table.loc["names", "verdict"] == "fine"
    for name, (_, cause) in RETURNED.items():
        assert table.loc[name, "verdict"] == ("not computed" if cause else "look")
        assert str(table.loc[name, "notes"]).startswith(f"the check failed: {cause}" if cause else "")


@pytest.mark.parametrize(("gone", "said"), [(["a"], "b first, 1 model moves"), ([], "unchanged")])
def test_the_table_for_pages_counts_the_models_that_move(tmp_path, checks, gone, said):
    rows = [{"model": name, "task": task, "success": task % 2} for name in "ab" for task in range(6)]
    pd.DataFrame(rows).to_csv(tmp_path / "runs.csv", index=False)

    @compare.check("own", "Is this wrong?")
    def own(audited):
        order = audited.estimates.copy()
        order[gone] = 0.25
        return compare.Found(1, 2, order=order.sort_values(ascending=False))

    shown = compare.audit(evalkit.load(str(tmp_path)), checks=["own"]).shown
    assert shown["alternative ranking"].tolist() == [said]


@pytest.mark.parametrize("kind", messy.KINDS)
def test_every_kind_can_be_audited_and_no_check_fails(kind):
    logs = evalkit.load(str(messy.folder(kind) / "logs"), kind)
    found = compare.audit(logs)
    assert set(found.table["check"]) == set(CHECKS)
    assert not any("failed_check" in notes for notes in found.table["notes"])
    assert all(map(finding_text, found.findings))


@pytest.mark.parametrize("rows", [[("a", 1)], [("", 1)], [("a", 1), ("b", 1)], [("a", None), ("b", None)]])
def test_few_runs_or_none_with_an_outcome_can_be_audited(tmp_path, rows):
    pd.DataFrame(rows, columns=["model", "success"]).assign(task_id=1).to_csv(tmp_path / "runs.csv", index=False)
    found = compare.audit(evalkit.load(str(tmp_path), "trajectories"))
    assert not any("failed_check" in notes for notes in found.table["notes"])


@pytest.mark.parametrize(
    ("before", "after", "count"),
    [
        ({"a": 2, "b": 1}, {"a": 3, "b": 1}, 0),
        ({"a": 2, "b": 1}, {"a": 1, "b": 2}, 2),
        ({"a": 2, "b": 1}, {"a": 1, "b": 1}, 1),
        ({"a": 3, "b": 2, "c": 1}, {"a": 3, "c": 1}, 1),
        ({"a": 3, "b": 2}, {"a": 3, "b": 2, "c": 9}, 0),
    ],
)
def test_models_move_if_their_rank_differs_or_is_gone(before, after, count):
    assert moved(pd.Series(before), pd.Series(after)) == count


def test_the_command_prints_the_answer_first_and_strict_fails_only_for_an_error(runs, tmp_path, checks):
    result = CliRunner().invoke(main, ["audit", runs, "--strict", "--output", str(tmp_path / "out.csv")])
    assert result.exit_code == 0, result.output
    assert "changes the ranking: fast is first, otherwise slow." in result.stdout.split("\n")[0]
    assert "slow first, 2 models move" in result.stdout
    assert set(pd.read_csv(tmp_path / "out.csv")["check"]) == set(checks)

    @compare.check("wrong", "Is this wrong?")
    def wrong(audited):
        return compare.Found(1, 1, verdict="wrong")

    assert CliRunner().invoke(main, ["audit", runs, "--strict"]).exit_code == 1
    assert CliRunner().invoke(main, ["audit", runs, "--check", "wrong"]).exit_code == 0
    assert CliRunner().invoke(main, ["audit", runs, "--check", "nothing"]).exit_code == 2


@pytest.mark.parametrize(
    ("command", "is_opened"),
    [
        ("bash cat /tests/test_outputs.py", True),
        ('editor {"command": "view", "path": "/tests/run-tests.sh"}', True),
        ("sed -n 1,20p /oracle/solution.sh", True),
        ("grep -r FAIL_TO_PASS .", True),
        ("head -5 /tests/cases/input_3.txt", True),
        ('open_file {"path": "/tests/reference.json"}', True),
        ("less data/answer_key.csv", True),
        ("cp gold.patch /tmp", True),
        ("cat /app/tests/cases.py", False),
        ("cat ./tests/cases.py; python src/tests/run.py", False),
        ("grep ground_truth train.py", False),
        ("bash /tests/run-tests.sh", False),
        ("cat > test_outputs.py", False),
        ("python -m pytest tests/test_utils.py", False),
        ("cat solution.sh", False),
        ("xxd /tests/fixtures/9.bin", True),
        ("find /tests -type f -exec wc {} +", True),
        ("awk -F, '{print $2}' eval/ground_truth.csv | head", True),
        ("jq '.[] | .key' /eval/answer_key.json", True),
        ("cat /solution/solve.sh", True),
        ('shell {"command": "cd /app && tac /solution/run.sh\\nls"}', True),
        ('fetch_document {"uri": "/tests/cases/7.yaml"}', True),
        ('bash {"cmd": "python3 -c \\"print(open(\'/tests/a.py\').read())\\""}', True),
        ("echo $(base64 /tests/a.bin)", True),
        ("grep pytest /tests/a.py", True),
        ("ls -la /tests/", False),
        ("mkdir -p /solution/bin; tee /solution/bin/a < b", False),
        ('bash {"command": "/tests/check.sh"}', False),
        ("uv run --with pytest pytest --tb short /tests/test_outputs.py -rA", False),
        ("cat > NOTES.md <<'END'\nThe tests are in /tests/ here.\nEND\nls", False),
        ('write_file {"path": "/app/a.md", "content": "see /tests/a.py"}', False),
        ('think {"thought": "The harness runs /tests/test_outputs.py"}', False),
        ("curl https://example.org/tests/a.json", False),
        ("python /solution/main.py --fast", False),
    ],
)
def test_only_commands_that_open_files_of_a_benchmark_count_as_leaks(command, is_opened):
    assert opens_own_file(command) == is_opened


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ({"max_turns": [30, 60]}, (1, 1, "max turns (30; 60)")),
        ({"maxOutputTokens": ["", 900], "top_p": [1, 1]}, (1, 2, "maxOutputTokens (not recorded; 900)")),
        (
            {"request_limit": [5, 6], "prompt_version": ["2", "3"], "timeout_s": [9, 9]},
            (2, 3, "prompt version (2; 3)"),
        ),
        ({"timeout": [60, 60]}, (0, 1, "")),
        ({"model_version": [1, 2], "max_score": [7, 8], "rate_limited": [0, 1]}, None),  # no settings
    ],
)
def test_columns_of_tables_with_settings_are_compared_by_name(columns, found, tmp_path):
    rows = [
        {
            "model": model,
            "task": f"t{task}",
            "passed": (task + side) % 2,
            **{name: own[side] for name, own in columns.items()},
        }
        for side, model in enumerate(["kea", "owl"])
        for task in range(8)
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "runs.csv", index=False)
    result = result_of("settings", evalkit.load(str(tmp_path / "runs.csv")))
    if found is None:
        assert result.verdict == "not computed"
        return
    assert (result.count, result.n) == found[:2]
    assert found[2] in str(result.notes)


def test_a_run_with_a_score_was_measured():
    table = compare.audit(evalkit.load("samples:crafter"), checks=["infrastructure", "no outcome"]).table
    assert table["verdict"].eq("fine").all()


@pytest.mark.parametrize(
    ("cells", "found", "said"),
    [
        ({"error": ["", "HTTP 503", "", "quota exceeded"]}, 2, "2 failures with an error such as HTTP 503"),
        ({"error": ["quota exceeded", "", "", ""], "status": list("wxyz")}, 0, ""),  # of a success
        (
            {"exception": ["", "", "", "disk full"], "status": ["ok", "ok", "ok", "crashed"]},
            1,
            "1 failure with an error",
        ),
        ({"notes": ["", "HTTP 503", "", "quota exceeded"], "status": list("wxyz")}, 0, ""),
    ],
)
def test_failures_of_tables_that_state_an_error_may_not_be_the_agent_s(cells, found, said, tmp_path):
    table = pd.DataFrame({"model": ["m", "m", "n", "n"], "task": ["p", "q", "p", "q"], "solved": [1, 0, 1, 0], **cells})
    table.to_csv(tmp_path / "runs.csv", index=False)
    logs = trajectories.load(tmp_path)
    assert result_of("infrastructure", logs).count == found
    notes = compare.leaderboard(logs.runs).notes.only("errors")
    assert bool(notes) == bool(found)
    assert str(notes).startswith(said)


@pytest.mark.parametrize(
    ("cells", "broken", "late"),
    [
        ({"exit_reason": ["done", "VM sandbox crashed", "done", "done"]}, 1, "0 of 0"),
        ({"status": ["ok", "HTTP 429: rate limit exceeded", "ok", "ok"]}, 1, "0 of 0"),
        ({"termination_reason": ["finished", "finished", "end_turn", None], "solved": [1, None, 1, None]}, 0, "0 of 0"),
        ({"exit_status": ["done", "evicted", "done", "done"], "solved": [1, None, 1, 0]}, 1, "0 of 0"),
        ({"error": ["TimeoutError: exceeded 60 s", "TimeoutError: exceeded 60 s", "", ""]}, 0, "1 of 2"),
        ({"error": ["", "APITimeoutError: Request timed out.", "", "docker: no space left"]}, 2, "0 of 0"),
        ({"exit_reason": ["max_turns", "max_turns", "done", "done"]}, 0, "1 of 2"),
    ],
)
def test_endings_of_tables_are_classified_by_their_words(tmp_path, cells, broken, late):
    rows = pd.DataFrame({"model": ["m", "m", "n", "n"], "task": ["p", "q", "p", "q"], "solved": [1, 0, 1, 0], **cells})
    make.lines(tmp_path / "runs.jsonl", *rows.astype("object").where(rows.notna(), None).to_dict("records"))
    logs = evalkit.load(str(tmp_path))
    assert result_of("infrastructure", logs).count == broken
    of_late = result_of("time-outs that succeeded", logs)
    assert f"{of_late.count} of {of_late.n}" == late


def inspect_answers(folder, answers):
    samples = []
    for at, answer in enumerate(answers):
        scores = {"exact": {"value": "C", "answer": answer}} if answer is not None else {"exact": {"value": "C"}}
        samples.append(make.sample(f"s{at}", scores=scores))
    make.write(folder / "log.json", make.inspect_log(*samples))


def swe_answers(folder, answers):
    for at, answer in enumerate(answers):
        make.write(folder / f"t{at}.traj.json", {**make.mini(submission=answer), "instance_id": f"t{at}"})
    make.write(folder / "m.run.json", make_report([f"t{at}" for at in range(len(answers))]))


def make_report(resolved, unresolved=(), **figures):
    return {"resolved_ids": [*resolved], "unresolved_ids": [*unresolved], "submitted_ids": [], **figures}


def lm_answers(folder, answers):
    samples = [lm_eval.sample(at, 1.0, resps=[[answer]]) for at, answer in enumerate(answers)]
    lm_eval.evaluation(folder / "a", *samples, stated=lm_eval.results(n=len(answers)))


@pytest.mark.parametrize("write", [inspect_answers, swe_answers, lm_answers])
@pytest.mark.parametrize(
    ("answers", "count"), [(["diff", "", "  ", "x"], 2), (["diff", "a", "b", "x"], 0), (["", "", "", ""], 0)]
)
def test_a_success_with_an_empty_answer_in_a_log_is_an_error(tmp_path, write, answers, count):
    write(tmp_path, answers)
    logs = evalkit.load(str(tmp_path))
    assert logs.runs["answer_length"].tolist() == [len(answer.strip()) for answer in answers]
    assert (result_of("success without an answer", logs).count or 0) == count


def inspect_figure(folder, value):
    metrics = {"mean": {"name": "mean", "value": value}, "stderr": {"name": "stderr", "value": 0.1}}
    scores = [{"name": "exact", "scorer": "exact", "metrics": metrics}]
    scores.append({"name": "exact", "scorer": "exact", "reducer": "at_least_2", "metrics": metrics})
    for name, solved in (("first", "CCIC"), ("second", "IICI")):
        samples = [make.sample(f"s{at}", scores={"exact": {"value": one}}) for at, one in enumerate(solved)]
        log = make.inspect_log(*samples, eval_id=name)
        if name == "first":
            log["results"] = {"total_samples": 4, "scores": scores}
        make.write(folder / f"{name}.json", log)


def harbor_figure(folder, value):
    rewards = [1.0, 1.0, 0.0, 1.0]
    job = make.harbor_job(folder / "job", *(make.trial(f"t{at}", reward) for at, reward in enumerate(rewards)))
    own = {"n_trials": 4, "metrics": [{"mean": value}], "pass_at_k": {}}
    stats = {"evals": {"terminus-2__gpt-4o__terminal-bench": own}}
    make.write(job / "result.json", {"n_total_trials": 4, "stats": stats})


def swe_figure(folder, value):
    for at in range(4):
        make.write(folder / f"t{at}.traj.json", {**make.mini(), "instance_id": f"t{at}"})
    report = make_report(["t0", "t1", "t3"], ["t2"], resolved_instances=value * 4, submitted_instances=4)
    make.write(folder / "gpt-4o.run.json", report)


@pytest.mark.parametrize("write", [inspect_figure, harbor_figure, swe_figure])
@pytest.mark.parametrize(("value", "verdict"), [(0.75, "fine"), (1.0, "wrong")])
def test_figures_in_logs_are_compared_with_the_runs(tmp_path, write, value, verdict):
    write(tmp_path, value)
    found = result_of("published figures", evalkit.load(str(tmp_path)))
    assert (found.verdict, found.n) == (verdict, 1)


@pytest.mark.parametrize(
    ("columns", "count"),
    [({"id": "r{}"}, 4), ({"UUID": "{}-7"}, 4), ({"id": "t{}"}, None), ({"item": "t{}"}, None)],
)
def test_rows_that_lie_twice_in_a_folder_are_copies_by_their_id(tmp_path, columns, count):
    rows = [{"model": "m", "task": f"t{at}", "success": at % 2} for at in range(4)]
    [(name, form)] = columns.items()
    for at, row in enumerate(rows):
        row[name] = form.format(at)
        if count is None:
            row.pop("task")
    for file in ("runs", "backup"):
        make.lines(tmp_path / f"{file}.jsonl", *rows)
    columns = "" if name != "item" else "task_id=item"
    found = result_of("copies", evalkit.load(str(tmp_path), columns=columns))
    assert found.verdict == ("not computed" if count is None else "look")
    assert count is None or (found.count, found.n) == (count, 8)


def test_reasons_are_in_words():
    assert "no score logged: 8" in str(result_of("infrastructure", evalkit.load("samples:mindcraft")).notes)


@pytest.mark.parametrize(
    ("names", "count"),
    [
        (["gpt-4o", "openai/gpt-4o-2024-08-06"], 2),
        (["gpt-4", "GPT-4-2024-01-01", "openai/gpt-4"], 3),
        (["gpt-4-2024-01-01", "OpenAI/gpt-4-2024-01-01"], 2),
        (["gpt-4-2024-01-01", "gpt-4-2023-01-01"], 0),
        (["gpt-4", "gpt-4-2024-01-01", "gpt-4-2023-01-01"], 0),
        (["gpt-4", "GPT-4 "], 2),
        (["gpt-4", "gpt-4o"], 0),
        (["claude-4-sonnet", "o/claude-sonnet-4", "claude-sonnet-4-0", "claude-sonnet-4-20250514"], 4),
        (["gemini-2.0", "gemini-2", "gpt-5-mini_high", "gpt-5_high-mini"], 2),
        (["grok-4-latest", "grok-4", "grok-4-2025-07-09", "grok-4-2025-09-01"], 2),
        (["m-20250510", "m-20250501", "M-20250510"], 2),
        (["nova-2025-03-01", "nova@20250301", "nova (2025-03-01)", "x/nova_2025.03.01"], 4),
        (["anthropic.claude-3-5-haiku-20241022-v1:0", "claude-3.5-haiku", "eu.anthropic.claude-3-5-haiku-v1:0"], 3),
        (["Meta-Llama-3.3-70B-Instruct", "llama-3-3-70b-instruct", "hub/Llama 3.3 70B instruct:free"], 3),
        (["gpt-4.5-mini", "gpt-5.4-mini", "gpt-4-5-mini"], 2),
        (["phi-3-14b", "phi-3.14b", "phi-314b", "yi-v2", "yi-v1", "yi"], 0),
        (["m (dtype=float16)", "m (dtype=bfloat16)", "m"], 0),
    ],
)
def test_names_that_differ_in_case_provider_and_one_date_may_be_one_model(names, count):
    runs = runs_of([(name, "t", True) for name in names])
    logs = SimpleNamespace(runs=runs, kind=kind_of(runs))
    found = CHECKS["names"].function(Audited(logs, logs.runs))
    assert (found.count, found.n) == (count, len(names))


LONG = "I looked at task {} and changed what it asks for, then ran all of its tests once more."


@pytest.mark.parametrize(
    ("texts", "flipped", "repeats", "verdict"),
    [
        ([LONG, LONG], 0, 1, "wrong"),
        ([LONG, LONG], 1, 1, "wrong"),  # a copy in spite of one other outcome
        ([LONG, LONG], 4, 1, "not computed"),
        ([LONG, LONG], 3, 3, "wrong"),
        ([LONG, LONG + "!"], 0, 1, "not computed"),
        (["{}", "{}"], 0, 1, "not computed"),  # answers of a word may be equal
        ([LONG, LONG + "!"], 0, 3, "wrong"),  # outcomes of repetitions in the same order
        ([LONG, LONG + "!"], 1, 3, "not computed"),
    ],
)
def test_a_submission_with_all_results_and_texts_of_another_is_a_copy(tmp_path, texts, flipped, repeats, verdict):
    rows = []
    for model, text in enumerate(texts):
        for at in range(12 * repeats):
            is_solved = (at % 5 < 2) != (model == 1 and at < flipped)
            said = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": text.format(at)}]
            rows.append({"model": f"m{model}", "task_id": at % 12, "score": int(is_solved), "messages": said})
    make.lines(tmp_path / "chats.jsonl", *rows)
    found = result_of("equal runs", trajectories.load(tmp_path))
    assert found.verdict == verdict
    if verdict == "wrong":
        assert found.count == 12 * repeats
        assert "m1 repeats the runs of m0" in str(found.notes)


@pytest.mark.parametrize(
    ("amounts", "zeros", "silent"),
    [
        ([(9, 3)] * 8, "0 of 8", "0 of 4"),
        ([(0, 0)] * 8, "8 of 8", None),  # nothing was counted
        ([(None, None)] * 4 + [(0, 0)] * 4, "4 of 4", None),
        ([(9, 0)] * 2 + [(9, 3)] * 6, "2 of 8", "2 of 4"),  # read, and wrote nothing
        ([(0, 0)] * 2 + [(9, 3)] * 6, "2 of 8", "0 of 2"),
        ([(None, None)] * 8, None, None),
    ],
)
def test_zeros_that_readers_take_as_missing_are_found(tmp_path, amounts, zeros, silent):
    trials = [
        make.tb_trial(f"t{at}", at < 4, total_input_tokens=read, total_output_tokens=wrote)
        for at, (read, wrote) in enumerate(amounts)
    ]
    make.write(tmp_path / "results.json", make.tb_summary(*trials))
    logs = trajectories.load(tmp_path, model="m")
    for check, said in (("zero tokens or cost", zeros), ("success without an answer", silent)):
        found = result_of(check, logs)
        assert said == (None if found.verdict == "not computed" else f"{found.count} of {found.n}")
    assert (logs.runs[["tokens_in", "tokens_out"]] == 0).sum().sum() == 0


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        ([[0, 0, 1]] * 20 + [[1, 0, 1]] * 10, "fine"),  # a third pass under other conditions
        ([[0, 0, 1]] * 20 + [[1]] * 10, "wrong"),
        ([[1, 1, 0]] * 20 + [[0]] * 10, "fine"),
        ([[0, 1, 0], [1, 0, 0], [0, 0, 1]] * 9 + [[1]], "fine"),
    ],
)
def test_only_runs_that_were_added_until_a_success_are_an_error(tmp_path, outcomes, verdict):
    rows = [
        {"task_id": task, "model": "a", "trial": trial, "success": value}
        for task, values in enumerate(outcomes)
        for trial, value in enumerate(values)
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "runs.csv", index=False)
    assert result_of("retried until solved", evalkit.load(str(tmp_path))).verdict == verdict


def tb_runs(folder, form, **changes):
    """Write two runs of ten tasks, with the figures of each; those of the second differ by `changes`."""
    for run, solved in (("r1", 3), ("r2", 6)):
        trials = [make.tb_trial(f"t{at}", at < solved, id=f"{run} {at}") for at in range(10)]
        own = changes if run == "r2" else {}
        summary = {**make.tb_summary(*trials), "accuracy": solved / 10}
        metadata = {**make.tb_metadata(*(f"t{at}" for at in range(10)), run_id=run), "accuracy": solved / 10}
        make.write(folder / form.format(run, "results"), {**summary, **own.get("results", {})})
        make.write(folder / form.format(run, "run_metadata"), {**metadata, **own.get("run_metadata", {})})


FORMS = ("{}/{}.json", "{}_{}.json", "{}__{}.json")  # of names of files of several runs in a folder


@pytest.mark.parametrize(
    ("form", "changes", "verdict", "count"),
    [
        *[(form, {}, "fine", 0) for form in FORMS],
        *[(form, {"results": {"accuracy": 0.7}}, "wrong", 1) for form in FORMS],
        (FORMS[0], {"results": {"n_resolved": 9}}, "wrong", 1),
        *[(form, {"run_metadata": {"accuracy": 0.5}}, "wrong", 1) for form in FORMS],
        # of more runs than there are
        (FORMS[1], {"run_metadata": {"accuracy": 0.5, "n_attempts": 3}}, "not computed", None),
    ],
)
def test_figures_of_several_runs_in_a_folder_are_compared_with_their_own(tmp_path, form, changes, verdict, count):
    tb_runs(tmp_path, form, **changes)
    found = result_of("published figures", evalkit.load(str(tmp_path)))
    assert (found.verdict, found.count) == (verdict, count)
    if verdict == "not computed":
        assert str(found.notes) == "not compared: 1 figure of other or unknown runs; 5 figures agree"
    else:
        assert found.n == 6


@pytest.mark.parametrize(
    ("published", "verdict"),
    [
        ({"2": 0.8333, "3": 1.0}, "fine"),  # (1 - C(1, 2) / C(3, 2) + 1 - C(2, 2) / C(3, 2)) / 2
        ({"2": 0.6667, "3": 1.0}, "wrong"),
        ({"2": None, "99999": 0.1}, "fine"),
        ({"5": 0.9}, "not computed"),  # of more trials than there are
        ([0.1], "fine"),
    ],
)
def test_published_pass_at_k_is_compared_with_that_of_all_trials(tmp_path, published, verdict):
    outcomes = {"fix": (True, True, False), "sort": (True, None, False)}
    trials = [
        make.tb_trial(task, ended, attempt=f"{at + 1}-of-3")
        for task, own in outcomes.items()
        for at, ended in enumerate(own)
    ]
    make.write(tmp_path / "results.json", make.tb_summary(*trials) | {"pass_at_k": published})
    found = compare.audit(trajectories.load(tmp_path, model="m"), checks=["published figures"])
    assert found.table["verdict"].tolist() == [verdict]
    assert not found.table["moved"].fillna(0).any()  # models do not rank by pass@k


@pytest.mark.parametrize(("published", "verdict"), [(0.5, "fine"), (0.75, "wrong")])
def test_figures_of_lm_eval_are_compared_with_the_runs_of_their_stamp(tmp_path, published, verdict):
    for stamp, values in ((lm_eval.STAMP, [1.0, 0.0]), (lm_eval.LATER, [0.0, 0.0])):
        figures = {"sums_mc": {"acc,none": published if sum(values) else 0.0}}
        samples = [lm_eval.sample(at, value) for at, value in enumerate(values)]
        lm_eval.evaluation(tmp_path / "a", *samples, stamp=stamp, stated=lm_eval.results(results=figures))
    found = result_of("published figures", evalkit.load(str(tmp_path)))
    assert (found.verdict, found.n) == (verdict, 2)


@pytest.mark.parametrize(
    ("target", "prompt", "verdict"),
    [
        ("2718", "The key is 2718.", "look"),
        ("-31.5", "Is it -31.5?", "look"),
        ("2718", "In 12718 cases of 2718.5 and 2,718", "fine"),
        ("B", "Is it A or B?", "not computed"),
        ("42", "Not 42.", "not computed"),
        ("a whole sentence", "Say A WHOLE SENTENCE.", "look"),
        ("", "Hi.", "fine"),
    ],
)
def test_expected_answers_are_searched_unless_they_are_short(tmp_path, target, prompt, verdict):
    chat = [{"role": "user", "content": prompt}, {"role": "assistant", "content": "Yes."}]
    rows = [{"task_id": at, "model": "m", "success": 1, "target": target, "messages": chat} for at in range(3)]
    make.lines(tmp_path / "runs.jsonl", *rows)
    assert result_of("leaks", evalkit.load(str(tmp_path))).verdict == verdict


@pytest.mark.parametrize(
    ("column", "values", "count"),
    [
        ("retries", [0, 2, 0, 1], 2),
        ("num_retries", ["", 3, "", ""], 1),
        ("retry count", [0, 0, 0, 0], 0),
        ("attempts_left", [1, 1, 1, 1], None),
    ],
)
def test_retries_in_a_column_of_a_table_are_found(tmp_path, column, values, count):
    table = pd.DataFrame({"model": list("mmnn"), "task": list("pqpq"), "solved": [1, 0, 1, 0], column: values})
    table.to_csv(tmp_path / "runs.csv", index=False)
    found = result_of("retries", evalkit.load(str(tmp_path)))
    assert found.verdict == ("not computed" if count is None else "look" if count else "fine")
    assert found.count == count


@pytest.mark.parametrize(("retried", "found"), [(3, (3, 4)), (0, (0, 4)), (None, None), (9, (4, 4))])
def test_retries_of_a_job_are_found_though_it_names_no_runs(tmp_path, retried, found):
    job = make.harbor_job(tmp_path / "job", *(make.trial(f"t{at}") for at in range(4)))
    make.write(job / "result.json", {"n_total_trials": 5, "stats": {"n_retries": retried}})
    logs = evalkit.load(str(tmp_path))
    of_retries = result_of("retries", logs)
    assert found == (None if of_retries.verdict == "not computed" else (of_retries.count, of_retries.n))
    assert str(result_of("missing trials", logs).notes) == "openai/gpt-4o: 1"


@pytest.mark.parametrize("column", ["agent", "scaffold", "Harness"])
def test_agents_in_a_column_of_a_table_are_compared(tmp_path, column):
    rows = [{"model": "m", column: f"h{at % 2}", "task": at // 2, "solved": at % 3 > 0} for at in range(12)]
    pd.DataFrame(rows).to_csv(tmp_path / "runs.csv", index=False)
    assert set(evalkit.load(str(tmp_path)).runs["model_name"]) == {"h0 · m", "h1 · m"}


@pytest.mark.parametrize(("planned", "count"), [(6, 2), (4, 0), (0, None)])
def test_documents_of_lm_eval_without_a_sample_are_missing(tmp_path, planned, count):
    for stamp, size in ((lm_eval.STAMP, 4), (lm_eval.LATER, 3)):  # one folder contains two evaluations
        samples = [lm_eval.sample(at, float(at % 2)) for at in range(size)]
        stated = lm_eval.results(n=planned if size == 4 else 3)
        lm_eval.evaluation(tmp_path / "a", *samples, stamp=stamp, stated=stated)
    found = result_of("missing trials", evalkit.load(str(tmp_path)))
    assert (found.count, found.n) == ((count, planned + 3) if count is not None else (0, 3))


@pytest.mark.parametrize(
    ("tasks_of", "counts", "first"),
    [
        ({"fig": range(30), "elm": range(21), "ash": range(30)}, {"elm": 9 * 2}, "fig"),
        ({"fig": range(30), "elm": range(30), "ash": range(30)}, {}, ""),
        ({"fig": range(30), "elm": range(21), "ash": range(21)}, {}, ""),  # most models did not run the others
        ({"fig": range(20), "elm": range(10, 30)}, {"fig": 10 * 2, "elm": 10 * 2}, None),
        ({"fig": range(30), "elm": range(100, 130), "ash": range(30)}, {}, ""),  # another data set
    ],
)
def test_tasks_that_one_model_never_ran_count_as_absent_runs(tmp_path, tasks_of, counts, first):
    solved = {"fig": 19, "elm": 16, "ash": 4}
    rows = [
        {"model": name, "dataset": f"set {task // 100}", "task": f"t{task}", "trial": trial, "won": task < solved[name]}
        for name, tasks in tasks_of.items()
        for task in tasks
        for trial in range(2)
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "runs.csv", index=False)
    row = compare.audit(evalkit.load(str(tmp_path), columns="success=won"), checks=["unequal runs"]).table.iloc[0]
    assert row["count"] == sum(counts.values())
    assert first is None or row["first"] == first
    assert all(f"{name} has no run of {count // 2} tasks" in str(row["notes"]) for name, count in counts.items())


@pytest.mark.parametrize(
    ("shown", "opened", "verdict", "count", "first"),
    [
        ({"finch": 0.5}, 0, "look", 90, "heron"),  # more leaks than the sample contains, which hide the better model
        ({"finch": 0.98, "heron": 0.97}, 0, "not computed", None, ""),  # choices
        ({"finch": 0.98, "heron": 0.97}, 3, "look", 3, "finch"),
        ({}, 0, "fine", 0, ""),
    ],
)
def test_all_runs_of_models_with_a_leak_are_read(tmp_path, shown, opened, verdict, count, first):
    rows = []
    for model, skill in (("finch", 0.45), ("heron", 0.6)):
        for at in range(180):
            target = f"marsh-{at * 37}-reed"
            is_shown = at < 180 * shown.get(model, 0)
            command = "xxd /tests/key.bin" if model == "finch" and at < opened else "ls"
            said = [{"role": "user", "content": f"Find it. {target if is_shown else ''}"}]
            said.append({"role": "assistant", "content": "", "tool_calls": [{"name": "sh", "arguments": command}]})
            is_solved = is_shown or at % 20 < 20 * skill
            rows.append({"model": model, "task_id": at, "success": is_solved, "target": target, "messages": said})
    make.lines(tmp_path / "runs.jsonl", *rows)
    row = compare.audit(evalkit.load(str(tmp_path)), checks=["leaks"]).table.iloc[0]
    assert (row["verdict"], row["first"]) == (verdict, first)
    assert count is None or row["count"] == count
    if verdict == "not computed":
        assert str(row["notes"]).startswith("nearly every prompt contains the answer")


@pytest.mark.parametrize(
    ("name", "answered", "verdict"),
    [
        ("assistant", 9, "wrong"),
        ("assistant", 12, "fine"),
        ("model", 9, "not computed"),
        ("assistant", 0, "not computed"),
    ],
)
def test_a_success_in_a_chat_without_an_answer_is_an_error(tmp_path, name, answered, verdict):
    asked = {"role": "user", "content": "Hi."}
    rows = [
        {"task_id": at, "model": "m", "success": 1, "messages": [asked, {"role": name, "content": "x"}]}
        for at in range(answered)
    ]
    rows += [{"task_id": at, "model": "m", "success": 1, "messages": [asked]} for at in range(answered, 12)]
    make.lines(tmp_path / "runs.jsonl", *rows)
    assert result_of("success without an answer", evalkit.load(str(tmp_path))).verdict == verdict


@pytest.mark.parametrize(
    ("column", "answers", "verdict", "count"),
    [
        ("answer", ["x", "", "y", None, "z"], "wrong", 2),
        ("final_answer", ["x", "  ", "y", "z", "null"], "wrong", 1),
        ("prediction", ["x", "y", 0, False, "z"], "fine", 0),
        ("response", [""] * 5, "not computed", None),  # nobody filled in the column
        ("comment", ["x", "", "y", "z", "z"], "not computed", None),
    ],
)
def test_a_success_with_an_empty_answer_in_a_table_is_an_error(tmp_path, column, answers, verdict, count):
    rows = [{"task_id": at, "model": "m", "success": 1, column: one} for at, one in enumerate(answers)]
    make.lines(tmp_path / "runs.jsonl", *rows)
    found = result_of("success without an answer", evalkit.load(str(tmp_path)))
    assert (found.verdict, found.count) == (verdict, count)


@pytest.mark.parametrize(
    ("second", "count"),
    [
        ([[True], [False], [None]], 1),  # one model ran each task once: only pass^1 can be compared
        ([[True, True], [False, None], [False, None]], 1),
        ([[True, True], [False, False], [True, True]], 0),
    ],
)
def test_each_pass_hat_k_is_compared_over_both_denominators(tmp_path, second, count):
    first = [[True, False]] * 3
    rows = [
        {"model": name, "task_id": task, "trial": trial, "success": value, "status": "crash" if value is None else "ok"}
        for name, tasks in (("a", first), ("b", second))
        for task, values in enumerate(tasks)
        for trial, value in enumerate(values)
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "runs.csv", index=False)
    found = result_of("pass^k", evalkit.load(str(tmp_path)))
    assert (found.count, found.n) == (count, 2)
