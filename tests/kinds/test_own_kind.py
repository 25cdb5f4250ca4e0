"""A kind that somebody adds: what is completed for its author, and which mistakes are named."""

import json
from dataclasses import replace

import pytest

from evalkit import compare
from evalkit.evidence import reference
from evalkit.evidence.pages import run_page
from evalkit.io import Column, SourceError, masked
from evalkit.kinds import Assembled, Call, Option, Parsed, RateRules, Transcript, Turn, load, registry
from evalkit.kinds.kind import RUN_COLUMNS
from tests.kinds.toy import GAMES, TOY, write


@pytest.fixture
def games(tmp_path):
    """Three readable games, and a broken one."""
    for model, task, won in (("a", "t1", True), ("a", "t2", False), ("b", "t1", None)):
        write(tmp_path / "games" / f"{model}_{task}.json", model=model, task=task, won=won)
    (tmp_path / "games/broken.json").write_text("{")
    return tmp_path / "games"


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            {"outcome_of": {"gave up": "fail"}},
            "outcome_of: status 'gave up' has no outcome 'fail'; did you mean 'failure'",
        ),
        ({"denominator": "every"}, "there is no denominator 'every'"),
        (
            {"conditions": ("budget",), "task_conditions": ("budgets",)},
            "do not include 'budgets'; did you mean 'budget'",
        ),
    ],
)
def test_rules_with_a_word_that_means_nothing_are_refused(rules, message):
    with pytest.raises(ValueError, match=message):
        RateRules(**rules)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rates": RateRules(conditions=("tag",))}, "conditions: runs have no column 'tag'; did you mean 'tags'"),
        ({"rates": RateRules(reported_settings=("temp",))}, "reported_settings: runs have no column 'temp'"),
        (
            {"rates": RateRules(lower_bounds=("turn",))},
            "lower_bounds: runs have no column 'turn'; did you mean 'turns'",
        ),
        ({"flags": {"copy": "a copy"}, "rates": RateRules(excluding_flags=("copi",))}, "no flag 'copi'; did you mean"),
        ({"records": {"games": (Column("x", "float32", ""),)}}, "column 'x' of 'games': there is no type 'float32'"),
        ({"tables": {"games": (Column("x", "text", ""),)}}, "column 'x' of 'games': there is no type 'text'"),
        ({"tables": {"game": GAMES}}, "tables: without `assemble`, there is no frame 'game'; did you mean 'games'"),
        (
            {"tables": {"games": (Column("tag", "str", ""),)}},
            "without `assemble`, 'games' has no column 'tag'",
        ),
        ({"log_records": ("game",)}, "log_records: there is no table 'game'; did you mean 'games'"),
        ({"records": {"files": GAMES}}, "evalkit has a table 'files' of its own"),
        ({"options": (Option("where", str, "", ""),)}, "every kind has an option 'where'"),
    ],
)
def test_a_kind_that_names_something_that_is_not_there_is_refused(changed, message):
    with pytest.raises(ValueError, match=f"kind toy: .*{message}"):
        replace(TOY, **changed)


ROW = ("m", "t", 1.0, None, [], {})


@pytest.mark.parametrize(
    ("parsed", "reason"),
    [
        (None, "parse returned NoneType, not Parsed"),
        (("used", "", {}), "parse returned tuple, not Parsed"),
        (Parsed("use"), "parse returned status 'use'; did you mean 'used'?"),
        (Parsed("used", rows=[ROW]), "parse returned rows that are a list, not a mapping of tables to rows"),
        (
            Parsed("used", rows={"game": [ROW]}),
            "parse returned rows of table 'game', which records lack; did you mean 'games'?",
        ),
        (Parsed("used", rows={"games": 5}), "rows of 'games' are a int, not a list"),
        (Parsed("used", rows={"games": ROW}), "a row of 'games' is a str, not a tuple of the values of its columns"),
        (
            Parsed("used", rows={"games": [dict.fromkeys("abcdef", "x")]}),
            "a row of 'games' is a dict, not a tuple of the values of its columns",
        ),
        (Parsed("used", rows={"moves": [dict.fromkeys("ab")]}), "a row of 'moves' is a dict, not a tuple"),
        (Parsed("used", rows={"games": [ROW[:2]]}), "a row of 'games' has 2 values for 6 columns"),
        (Parsed("used", rows={"games": [(*ROW[:2], "high", *ROW[3:])]}), "column 'score' of 'games': "),
    ],
)
def test_a_file_for_which_parse_returns_something_else_fails_alone_with_the_cause(games, parsed, reason):
    kind = replace(TOY, parse=lambda path, data: parsed if path.endswith("b_t1.json") else TOY.parse(path, data))
    logs = load(games, kind)
    assert logs.ledger["status"].tolist() == ["used", "used", "failed", "failed"]
    assert logs.ledger["reason"][2].startswith(f"kind toy: {reason}")
    assert logs.runs["task_id"].tolist() == ["t1", "t2"]


def _returns(path, data):
    return TOY.parse(path, data)


def _raises(path, data):
    return TOY.parse(path, json.dumps(json.loads(data)).encode())


def _has_rows(path, data):
    return Parsed("failed", "no game", {"games": [ROW]}) if path.endswith("broken.json") else TOY.parse(path, data)


@pytest.mark.parametrize(("parse", "model"), [(_returns, "by name"), (_raises, "by name"), (_has_rows, "m")])
def test_a_file_that_failed_without_rows_may_get_them_from_its_name(games, parse, model):
    def unreadable(path, reason):
        return Parsed("failed", reason, {"games": [("by name", *ROW[1:])]})

    logs = load(games, replace(TOY, parse=parse, unreadable=unreadable))
    assert logs.runs["model_name"].tolist() == ["a", "a", "b", model]
    assert logs.ledger["status"].tolist() == ["used", "used", "used", "failed"]


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (lambda: None, "unreadable returned NoneType, not Parsed"),
        (lambda: 1 / 0, "unreadable raised ZeroDivisionError"),
    ],
)
def test_a_mistake_in_unreadable_ends_nothing(games, result, reason):
    logs = load(games, replace(TOY, unreadable=lambda path, reason: result()))
    assert logs.ledger["status"].tolist() == ["used", "used", "used", "failed"]
    assert f"; kind toy: {reason}" in logs.ledger["reason"][3]


def made(**frames):
    """Make `assemble` of a kind with only the frame of games and these changes of it."""

    def assemble(records, options):
        table = records.tables["games"].to_pandas().iloc[::-1].set_index("task_id", drop=False)
        return Assembled({"games": table.assign(**frames)[[*reversed(table.columns), *frames]]})

    return replace(TOY, tables={"games": (*GAMES, Column("size", "int?", ""))}, assemble=assemble)


def test_runs_that_an_author_assembles_get_the_common_columns_and_types(games):
    runs = load(games, made(size=[3.0, None, 5.0])).runs
    assert list(runs) == [*(column.name for column in RUN_COLUMNS), "tags", "pieces", "size"]
    assert runs.index.tolist() == [0, 1, 2]
    assert runs["model_name"].tolist() == ["b", "a", "a"]
    assert set(runs["run_id"]) == set(load(games, TOY).runs["run_id"])
    assert runs[["kind", "run_flags", "tags", "pieces"]].to_numpy().tolist() == [["toy", [], [], {"pawn": 1}]] * 3
    own = load(games, TOY).runs
    assert runs.dtypes[list(own)].equals(own.dtypes)
    assert runs["size"].dtype == "Int64"
    kept = load(games, made(size=1, run_id=["x", "y", "z"], run_flags=[["odd"], None, ("even",)])).runs
    assert kept["run_id"].tolist() == ["x", "y", "z"]
    assert kept["run_flags"].tolist() == [["odd"], [], ["even"]]


def _without_source(records, options):
    return Assembled({"games": records.tables["games"].to_pandas().drop(columns="source")})


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (made(), "frame 'games': assemble left out column 'size'; there are"),
        (made(size="large"), "frame 'games': column 'size': .*large"),
        (made(size=1, run_flags="odd"), "frame 'games': column 'run_flags': 'odd' is not a list"),
        (replace(made(), assemble=lambda records, options: None), "assemble returned NoneType, not Assembled"),
        (replace(made(), assemble=lambda records, options: Assembled({})), "assemble returned no frame 'games'"),
        (replace(made(), assemble=_without_source), "frame 'games': assemble left out column 'source'"),
    ],
)
def test_what_assemble_left_out_is_named(games, kind, message):
    with pytest.raises(SourceError, match=f"kind toy: {message}"):
        load(games, kind)


def test_runs_of_a_kind_that_is_not_installed_are_compared_after_they_were_loaded(games, monkeypatch):
    monkeypatch.setattr(registry, "_USED", {})
    runs = load(games, TOY).runs
    assert compare.leaderboard(runs).table["model_name"].tolist() == ["a", "b"]
    registry._USED.clear()
    with pytest.raises(SourceError, match=r"no kind of log is named 'toy'; .*known once its logs are loaded"):
        compare.leaderboard(runs)


@pytest.mark.parametrize(("dtype", "value"), [("int", 7), ("float", 7.0), ("str", "7")])
def test_a_common_column_may_be_recorded_with_another_type(tmp_path, dtype, value):
    write(tmp_path / "a.json")
    parsed = Parsed("used", rows={"games": [(value,)]})
    records = {"games": (Column("seed", dtype, ""),)}
    runs = load(tmp_path, replace(TOY, records=records, tables={}, parse=lambda path, data: parsed)).runs
    assert runs["seed"].dtype == "str"
    assert float(runs["seed"][0]) == 7


@pytest.mark.parametrize(
    ("make", "reason"), [(lambda: 3, "returned int, not Transcript"), (lambda: None.turns, "AttributeError")]
)
def test_a_run_whose_transcript_can_not_be_built_has_no_turns(games, make, reason):
    logs = load(games, replace(TOY, transcript=lambda paths, read: make()))
    with pytest.warns(UserWarning, match=f"no turns of 3 runs: .*{reason}"):
        assert logs.turns.empty


@pytest.mark.parametrize(
    ("text", "call", "shown"),
    [
        ("I look.", None, "I look."),
        ("I look.", Call("read", "a.py", "a = 1\n"), "I look.\ncall: read a.py\nresult: a = 1"),
        ("", Call("read", "a.py"), "call: read a.py"),
        ("read a.py", Call("read", "a.py", ""), "read a.py"),
        ("read a.py: a = 1", Call("read", "a.py", "a = 1", False), "read a.py: a = 1"),
        ("read a.py", Call("read", "a.py", "gone", True), "read a.py\nfailed: gone"),
        ("read a.py: gone", Call("read", "a.py", "gone", True), "read a.py: gone\nfailed"),
        ("read a.py", Call("read", "a.py", "gone", True, result_after=1), "read a.py\nfailed"),
        ("read a.py", Call("read", "a.py", "a = 1", result_after=1), "read a.py"),
        ("read(path=a.py)", Call("read", "a.py", "a = 1", True, is_in_text=True), "read(path=a.py)"),
        ("I used the tools.", Call("ls", "", "1"), "I used the tools.\ncall: ls\nresult: 1"),
        ("step 10", Call("run", "x", "0", True), "step 10\ncall: run x\nfailed: 0"),
    ],
)
def test_the_call_of_a_turn_is_shown_unless_the_text_shows_it(text, call, shown):
    assert Turn("agent", "action", text, call=call).shown == shown


def test_a_token_after_the_name_of_its_header_is_masked():
    call = Call("Authorization: Bearer", "abcdefghijklmnop1234567890abcd", "ok")
    made = Transcript("run", [], [Turn("agent", "action", "I call.", call=call)]).changed(masked)
    assert "abcdefghijklmnop" not in made.turns[0].shown
    assert made.turns[0].shown.startswith("I call.\ncall: Authorization: Bearer")


def test_calls_are_on_pages_in_commands_and_in_the_frame_of_turns_as_text(games):
    call = Call("<b>read", "a.py", "Error: no such file, key sk-ant-api03-" + "x7Kq" * 23 + "-AA")
    kind = replace(
        TOY, transcript=lambda paths, read: Transcript("", [], [Turn("agent", "action", "I look.", call=call)])
    )
    logs = load(games, kind)
    run = logs.runs.iloc[0]
    shown = logs.show(run["run_id"])
    page = run_page(reference(logs, run), shown)
    assert logs.turns["text"][0].startswith("I look.\ncall: <b>read a.py\nresult: Error: no such file")
    assert "I look.\n    call: <b>read a.py\n    result: Error: no such file, key " in shown.text()
    for html in (page, shown._repr_html_()):
        assert "I look.\ncall: &lt;b&gt;read a.py\nresult: Error: no such file" in html
    assert "x7Kq" not in page + shown.text() + shown._repr_html_()
