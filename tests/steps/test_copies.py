"""Histories with the same executions count once, whatever their files and shapes; others are never taken for copies."""

import json
from copy import deepcopy
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.steps import analysis, load
from evalkit.steps.judge import as_history, find_copies
from tests.steps.cases import BAD, CELLS, COUNTS, ENRICHMENT, EXPRESSION, GOOD, SILENT, make
from tests.steps.test_checkpoints import database, state, thread
from tools.samples.steps import old_flat

FUNCTIONS = {
    "process_cells": CELLS,
    "compare_cell_counts": COUNTS,
    "perform_enrichment_analyses": ENRICHMENT,
    "dea_split_by_condition": EXPRESSION,
}


def typed(start=0):
    """Make records of shape B, whose times begin at a minute; without times if that is None."""
    records = [
        make(function, result, kind="structured", index=i, parameters={"n": 5})
        for i, (function, result) in enumerate(FUNCTIONS.items())
    ]
    records.append(make("load", None, False, error="no file", kind="text", index=4, parameters={"n": 5}))
    for i, record in enumerate(records if start is not None else ()):
        record["timestamp"] = (datetime(2026, 3, 2, 9) + timedelta(minutes=start + i)).isoformat()
    return records


def flat(records):
    """Return records as they were formerly written to disk, with numbers of parameters as text."""
    made = []
    for record in records:
        step = record["step"] | {"parameters": {"n": "5"}}
        time = record.get("timestamp", "")
        made.append(old_flat(step, record["result"], record["success"], record["error"], time))
    return made


def changed(records, at, **values):
    out = deepcopy(records)
    out[at] |= values
    return out


def written(records, form):
    """Return records with their times in another form."""
    return [record | {"timestamp": form.format(record["timestamp"].replace("T", " "))} for record in records]


def in_form(records, form):
    """Return records with their times, which are in UTC, in a form of `strftime`; ``%s`` are seconds since 1970."""
    times = [datetime.fromisoformat(record["timestamp"]).replace(tzinfo=UTC) for record in records]
    forms = [form.replace("%s", str(int(time.timestamp()))) for time in times]
    return [record | {"timestamp": time.strftime(own)} for record, time, own in zip(records, times, forms, strict=True)]


TYPED, UNTIMED = typed(), typed(None)
CHINESE = make("f", "共发现四个差异表达基因,其中两个在肿瘤样本中上调,另外一个下调", kind="text")  # few spaces
PAIRS = [
    # two lists of records, and whether they hold the same executions
    (TYPED, TYPED, True),
    (TYPED, flat(TYPED), True),
    (UNTIMED, flat(TYPED), True),
    (UNTIMED, UNTIMED, True),
    (TYPED, written(TYPED, "{}Z"), True),  # the same times
    (TYPED, written(TYPED, "{}.000+00:00"), True),
    (written(TYPED, "{}+02:00"), written(typed(-120), "{}Z"), True),
    (TYPED, written(TYPED, "{}-01:00"), False),
    (written(TYPED, "after {}"), written(TYPED, "after {}"), True),  # not times, but equal
    (written(TYPED, "after {}"), written(typed(1), "after {}"), False),
    (TYPED, typed(30), False),  # another run with the same results
    (TYPED, changed(TYPED, 1, result={"count_results": [{"category": "x", "cell_count": 353}]}), False),
    (TYPED, changed(TYPED, 4, error="no cells"), False),
    (TYPED, changed(TYPED, 2, success=False), False),
    (TYPED, TYPED[:3], True),  # stored earlier
    (TYPED, TYPED[2:], True),  # without the beginning
    (TYPED, TYPED[1:4], True),
    (typed(60) + TYPED, TYPED, True),  # two runs in one file
    (TYPED, [*TYPED[:2], TYPED[3]], False),  # not contiguous
    (TYPED, typed(30)[2:], False),
    (TYPED, changed(TYPED[2:], 1, error="no cells"), False),
    (UNTIMED, UNTIMED[2:], False),
    (UNTIMED, UNTIMED[:3], False),  # it may be another run that ended earlier
    (TYPED, in_form(TYPED, "%Y/%m/%d %H:%M:%S"), True),
    (TYPED, in_form(TYPED, "%a, %d %b %Y %H:%M:%S +0000"), True),
    (in_form(TYPED, "%s.0"), in_form(TYPED, "%s000"), True),
    (TYPED, in_form(typed(1), "%Y/%m/%d %H:%M:%S"), False),
    ([CHINESE], [CHINESE], True),
    ([CHINESE | {"result": "细胞类型"}] * 2, [CHINESE | {"result": "细胞类型"}] * 2, False),
    ([BAD] * 5, [BAD] * 5, False),  # nothing tells runs apart that fail at once
    ([GOOD], [GOOD], False),
    ([], [], False),
]


@pytest.mark.parametrize(("a", "b", "same"), PAIRS)
def test_which_histories_hold_the_same_executions(a, b, same):
    assert bool(find_copies([as_history(a), as_history(b)])) is same
    assert bool(find_copies([as_history(b), as_history(a)])) is same


def test_executions_count_once_whatever_their_files(tmp_path):
    other = typed(30)[:3]
    (tmp_path / "a").mkdir()
    (tmp_path / "b.json").write_text(json.dumps(TYPED))
    (tmp_path / "a" / "execution_history.json").write_text(json.dumps(flat(TYPED)))
    (tmp_path / "c.sqlite").write_bytes(
        database([thread("one", value=state(*TYPED)), thread("two", value=state(*other))])
    )
    logs = load(tmp_path)
    assert len(logs.runs) == 4
    assert logs.runs.set_index("history")["copy_of"].dropna().to_dict() == dict.fromkeys(
        ["b.json", "c.sqlite · one"], "execution_history.json"
    )
    flagged = ["duplicate" in flags for flags in logs.runs["run_flags"]]
    assert flagged == logs.runs["copy_of"].notna().tolist()
    assert analysis.overview(logs.runs, logs.steps)["history"].tolist() == ["execution_history.json", "c.sqlite · two"]
    confirmed = analysis.confirmed_success(logs.steps)
    assert (confirmed.estimate, confirmed.n, confirmed.n_tasks) == (0.9, 8, 2)
    assert analysis.failure_kinds(logs.steps)["steps"].tolist() == [1]
    assert analysis.found(logs.results)["histories"].tolist() == [2] * 3 + [2, 2] + [2] + [1, 1]


def test_three_files_with_the_same_executions_are_one(tmp_path):
    for name in ("x.json", "y.json", "z.json"):
        (tmp_path / name).write_text(json.dumps(TYPED))
    shown = CliRunner().invoke(main, ["steps", str(tmp_path)], catch_exceptions=False).output
    alone = CliRunner().invoke(main, ["steps", str(tmp_path / "x.json")], catch_exceptions=False).output
    assert "80 % [38, 96] (4 of 5) confirmed" in alone
    assert shown.startswith("80 % [38, 96] of the steps of 1 history succeeded")
    assert "count once: y.json = x.json and z.json = x.json." in shown


@pytest.mark.parametrize(
    ("histories", "first"),
    [
        ([[GOOD, GOOD, BAD]], "67 % [21, 94] of the steps of 1 history succeeded (3 steps). No step failed silently."),
        (
            [[GOOD, SILENT]],
            "50 % [9, 91] of the steps of 1 history succeeded (2 steps). 100 % [34, 100] reported success; 1 ",
        ),
        (
            [[GOOD], [BAD, SILENT]],
            "On average over 2 histories (3 steps), 50 % [9, 91] of the steps succeeded. 75 % [20, 97]",
        ),
        ([[make("f", success=None)]], "No step can be judged, so there is no success rate."),
    ],
)
def test_the_first_line_is_the_answer(tmp_path, histories, first):
    for place, records in enumerate(histories):
        (tmp_path / f"h{place}.json").write_text(json.dumps(records))
    assert CliRunner().invoke(main, ["steps", str(tmp_path)], catch_exceptions=False).output.startswith(first)


def test_a_failed_step_without_an_error_shows_its_result(tmp_path):
    records = [make("f", "half of the table", success=False), make("g", "half", success=False, error="no cells")]
    (tmp_path / "h.json").write_text(json.dumps(records))
    text = CliRunner().invoke(main, ["steps", str(tmp_path)], catch_exceptions=False).output
    assert "failure  text         half of the table" in text
    assert "failure  text         no cells" in text
