"""Sessions of Claude Code and Codex: a session is a run, and each call counts once, whichever files hold it."""

import io
import json
from pathlib import Path

import fsspec
import pytest
from click.testing import CliRunner
from fsspec.implementations.memory import MemoryFile, MemoryFileSystem
from fsspec.spec import AbstractBufferedFile
from hypothesis import given, settings
from hypothesis import strategies as st

import evalkit
from evalkit import trajectories
from evalkit.cli import main
from evalkit.display.terminal import summary
from evalkit.display.words import finding_text
from evalkit.io import SourceError, remote
from evalkit.io.sources import without_projects
from evalkit.kinds import has_flag
from evalkit.kinds.detection import describe_source
from evalkit.trajectories import analysis
from evalkit.trajectories.parse import excerpt, parse
from evalkit.trajectories.transcript import messages
from tests.trajectories import folders as make
from tests.trajectories.test_formats import JSON, SHARED, real, rows_of

TOKENS = ("tokens_in", "tokens_cache", "tokens_out")


def plain_count(folder: Path) -> list[int]:
    """Count the tokens of Claude Code as plainly as can be: per message, the line with most tokens written."""
    best: dict[str, tuple[int, int, int]] = {}
    for line in "\n".join(path.read_text() for path in sorted(folder.rglob("*.jsonl"))).splitlines():
        try:
            message = json.loads(line)["message"]
            usage = message["usage"]
        except (ValueError, TypeError, KeyError):
            continue
        if message.get("model") != "<synthetic>":
            cached = usage.get("cache_read_input_tokens", 0)
            read = usage["input_tokens"] + usage.get("cache_creation_input_tokens", 0) + cached
            best[message["id"]] = max(best.get(message["id"], (0, 0, 0)), (usage["output_tokens"], read, cached))
    written, read, cached = (sum(column) for column in zip(*best.values(), strict=True))
    return [read, cached, written]


def sums(runs):
    return [int(runs[name].sum()) for name in TOKENS]


@real
def test_real_sessions_are_runs_and_their_tokens_are_those_of_a_plain_count():
    folder = SHARED / "leaderboards" / "claude-code"
    logs = evalkit.load(folder)
    assert set(logs.ledger["status"]) == {"used"}
    assert len(logs.runs) == 4
    assert sums(logs.runs) == sums(logs.usage) == plain_count(folder)
    codex = evalkit.load(SHARED / "leaderboards" / "codex")
    assert codex.runs["turns"].gt(0).all()
    fork = codex.runs[codex.runs["log_id"].eq("multi-leaf")]
    assert rows_of(fork, *TOKENS) == [[5000, 3000, 500]]
    assert "future_synthetic_record" in codex.ledger["reason"].str.cat()


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=30))
def test_tokens_of_files_that_hold_the_same_messages_are_counted_once(tmp_path_factory, calls):
    folder = tmp_path_factory.mktemp("projects")
    largest = {}
    for number, (file, message, written) in enumerate(calls):
        largest[message] = max(largest.get(message, 0), written)
        one = make.claude(f"s{file}", number, make.answer(f"m{message}", "x", read=message + 1, written=written))
        with (folder / f"s{file}.jsonl").open("a") as out:
            out.write(f"{json.dumps(one)}\n")
    runs = trajectories.load(folder).runs
    assert sums(runs) == plain_count(folder)
    assert runs["turns"].sum() == len(largest)


def session(folder: Path, layout: str = "{}/subagents/agent-a1.jsonl") -> Path:
    """Write a session whose answer starts a subagent."""
    make.lines(
        folder / "s1.jsonl",
        {"type": "summary", "summary": "x", "leafUuid": "u1"},
        make.claude("s1", 1, "Ask an agent."),
        make.claude("s1", 2, make.answer("m1", "I ask.", written=1)),
        make.claude("s1", 3, make.answer("m1", ("Agent", "t1"), written=7)),
        make.claude("s1", 4, make.result("t1"), toolUseResult={"agentId": "a1"}),
        make.claude("s1", 5, make.answer("m2", "It is done.")),
    )
    within = {"isSidechain": True, "agentId": "a1"}
    make.lines(
        folder / layout.format("s1"),
        make.claude("s1", 6, "Do it.", **within),
        make.claude("s1", 7, make.answer("m3", ("Bash", "t2"), model="haiku"), **within),
        make.claude("s1", 8, make.result("t2", "no", error=True), **within),
        make.claude("s1", 9, make.answer("m4", "Done.", model="haiku"), **within),
    )
    return folder


LAYOUTS = ("{}/subagents/agent-a1.jsonl", "agent-a1.jsonl", "{}/subagents/workflows/w1/agent-a1.jsonl")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_subagent_is_part_of_the_run_and_follows_the_call_that_started_it(tmp_path, layout):
    logs = trajectories.load(session(tmp_path, layout))
    assert rows_of(logs.runs, "log_id", "model_name", "turns", *TOKENS) == [["s1", "opus", 4, 40, 24, 22]]
    assert rows_of(logs.runs, "agent", "agent_version", "duration") == [["Claude Code", "2.1.1", None]]
    texts = ["Ask an agent.", "I ask.", "Do it.", "", "Done.", "It is done."]
    assert logs.messages["text"].tolist() == texts
    assert rows_of(logs.usage, "model_name", "calls", "tokens_out") == [["haiku", 2, 10], ["opus", 2, 12]]
    columns = ("model_name", "tool", "calls", "errors")
    assert rows_of(logs.tools, *columns) == [["haiku", "Bash", 1, 1], ["opus", "Agent", 1, 0]]
    assert logs.runs["run_flags"].tolist() == [["no_outcome", "several_models"]]
    used = analysis.tool_use(logs, logs.runs)
    columns = ("tool", "read", "runs", "calls", "errors", "n")
    assert rows_of(used, *columns) == [["Bash", 1, 1, 1, 1, 1], ["Agent", 1, 1, 1, 0, 1]]


def test_what_a_user_says_while_claude_works_is_in_its_place_and_an_interruption_is_not_said(tmp_path):
    queued = {"type": "queued_command", "commandMode": "prompt", "prompt": "Hurry."}
    notified = {"type": "queued_command", "commandMode": "task-notification", "prompt": "It ran."}
    interrupted = [{"type": "text", "text": "[Request interrupted by user for tool use]"}]
    make.lines(
        tmp_path / "s1.jsonl",
        make.claude("s1", 1, "Go."),
        make.claude("s1", 2, make.answer("m1", ("Bash", "t1"))),
        make.claude("s1", 3, make.result("t1")),
        *(make.claude("s1", 4, None, type="attachment", attachment=one) for one in (queued, notified)),
        make.claude("s1", 5, make.answer("m2", ("Bash", "t2"))),
        make.claude("s1", 6, interrupted),
    )
    logs = trajectories.load(tmp_path)
    said = logs.messages[logs.messages["text"].ne("")]
    assert said[["role", "text"]].values.tolist() == [
        ["user", "Go."],
        ["user", "Hurry."],
        ["system", interrupted[0]["text"]],
    ]
    assert rows_of(logs.runs, "exit_reason") == [["interrupted"]]


def test_a_limit_of_turns_ends_a_session_unless_it_goes_on(tmp_path):
    ended = make.claude("s1", 2, None, type="attachment", attachment={"type": "max_turns_reached"})
    answers = [make.claude("s1", at, make.answer(f"m{at}", "x")) for at in (1, 3)]
    make.lines(tmp_path / "s1.jsonl", answers[0], ended)
    make.lines(tmp_path / "s2.jsonl", answers[0] | {"sessionId": "s2"}, ended, answers[1] | {"sessionId": "s2"})
    assert rows_of(trajectories.load(tmp_path).runs, "exit_reason") == [["max_turns_reached"], [None]]


def test_the_cost_of_a_session_is_the_last_one_that_it_states_and_of_a_fork_unknown(tmp_path):
    spent = [{"type": "cost-state", "sessionId": "s1", "totalCostUSD": cost} for cost in (0.5, 0.75)]
    first = make.claude("s1", 1, make.answer("m1", "x"))
    make.lines(tmp_path / "s1.jsonl", first, spent[0], make.claude("s1", 2, make.answer("m2", "y")), spent[1])
    make.lines(tmp_path / "s2.jsonl", first, make.claude("s2", 3, make.answer("m3", "z")), spent[1])
    unknown = [make.claude("s3", 4, make.answer("m4", "x")), spent[0] | {"hasUnknownModelCost": True}]
    make.lines(tmp_path / "s3.jsonl", *unknown)
    assert rows_of(trajectories.load(tmp_path).runs, "log_id", "cost") == [["s1", 0.75], ["s2", None], ["s3", None]]


def test_a_subagent_whose_session_is_gone_is_one_run_with_its_siblings(tmp_path):
    session(tmp_path)
    (tmp_path / "s1.jsonl").unlink()
    within = {"isSidechain": True, "agentId": "a2"}
    make.lines(tmp_path / "s1" / "subagents" / "agent-a2.jsonl", make.claude("s1", 1, make.answer("m9", "x"), **within))
    assert rows_of(trajectories.load(tmp_path).runs, "log_id", "turns") == [["s1", 3]]


def test_a_resumed_copy_owns_what_it_adds_and_a_copy_that_adds_nothing_counts_in_no_rate(tmp_path):
    one = [make.claude("s1", 1, "Hello."), make.claude("s1", 2, make.answer("m1", ("Bash", "t1")))]
    copied = [{**record, "sessionId": "s2"} for record in one]
    make.lines(tmp_path / "s1.jsonl", *one)
    make.lines(tmp_path / "s2.jsonl", *copied, make.claude("s2", 3, make.answer("m2", "Bye.", written=9)))
    make.lines(tmp_path / "s3.jsonl", *({**record, "sessionId": "s3"} for record in one))
    logs = trajectories.load(tmp_path)
    assert rows_of(logs.runs, "log_id", "turns", "tokens_out", "run_flags") == [
        ["s1", 1, 5, ["no_outcome"]],
        ["s2", 1, 9, ["no_outcome"]],
        ["s3", 0, None, ["duplicate", "no_outcome"]],
    ]
    assert logs.tools["calls"].sum() == 1
    table = analysis.took(logs.runs, logs.usage, logs.tools)
    assert rows_of(table, "n", "turns", "tokens_out", "tool_calls") == [[2, 2, 14, 1]]


def test_a_session_in_two_files_is_one_run(tmp_path):
    make.lines(tmp_path / "a" / "s1.jsonl", make.claude("s1", 1, make.answer("m1", "One.")))
    make.lines(tmp_path / "b" / "s1.jsonl", make.claude("s1", 2, make.answer("m2", "Two.")))
    logs = trajectories.load(tmp_path)
    assert rows_of(logs.runs, "log_id", "turns") == [["s1", 2]]
    assert logs.messages["text"].tolist() == ["One.", "Two."]


def test_what_is_not_of_the_user_is_of_the_system_and_errors_are_no_answers(tmp_path):
    make.lines(
        tmp_path / "s1.jsonl",
        make.claude("s1", 1, "<command-name>/clear</command-name>"),
        make.claude("s1", 2, "Caveat", isMeta=True),
        make.claude("s1", 3, "What was said", isCompactSummary=True),
        make.claude("s1", 4, "Hello."),
        make.claude("s1", 5, make.answer("m1", "Hi.")),
        make.claude("s1", 6, "Hello again.", parentUuid="u3"),
        make.claude("s1", 7, make.answer("e1", "API Error: 529", model="<synthetic>", written=0)),
    )
    logs = trajectories.load(tmp_path)
    roles = ["system", "system", "system", "user", "assistant", "system", "user", "system"]
    assert logs.messages["role"].tolist() == roles
    assert rows_of(logs.runs, "turns", "model_name", "error") == [[1, "opus", "API Error: 529"]]


def test_zero_tokens_were_not_counted(tmp_path):
    nothing, unread = {"read": 0, "cached": 0, "written": 0}, {"read": 0, "cached": 0, "written": 5}
    make.lines(tmp_path / "s1.jsonl", make.claude("s1", 1, make.answer("m1", "x", **nothing)))
    make.lines(tmp_path / "s2.jsonl", make.claude("s2", 2, make.answer("m2", "x", **unread)))
    runs = trajectories.load(tmp_path).runs
    assert rows_of(runs, "turns", *TOKENS) == [[1, None, None, None], [1, None, None, 5]]


HI = make.claude("s1", 1, "Hi.")
ANSWER = make.claude("s1", 1, make.answer("m1", "x"))
UNKNOWN = {"type": "novelty", "sessionId": "s1"}
META, SAID, NEW = make.meta("a"), make.said("user", "Hi."), make.codex("v2", outer="v2")


@pytest.mark.parametrize(
    ("own", "status", "said"),
    [
        (["massive error", "42", "[1]", ANSWER], "used", "3 broken lines left out"),
        ([ANSWER, UNKNOWN], "used", "1 record of unknown types: novelty"),
        ([{"type": "user", "sessionId": "s"}, ANSWER], "used", "1 broken line left out"),
        ([{"type": "mode", "sessionId": "s1"}], "skipped", "a session without a message"),
        ([UNKNOWN] * 2, "failed", "no message was understood; 2 records of unknown types: novelty (2)"),
        ([HI, UNKNOWN], "failed", "no answer was understood; 1 record of unknown types: novelty"),
        ([META, make.codex("v2", outer="event_msg")], "failed", "event_msg v2"),
        ([META, NEW], "failed", "no message was understood; 1 record of unknown types: v2"),
        ([META, SAID, NEW], "failed", "no answer was understood"),
    ],
)
def test_what_a_file_holds_that_is_not_known_is_counted_and_named(tmp_path, own, status, said):
    data = make.lines(tmp_path / "s.jsonl", *own).read_bytes()
    parsed = parse("s.jsonl", data)
    assert parsed.status == status
    assert said in parsed.reason


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ([[ANSWER]], ""),
        ([[ANSWER, UNKNOWN, {"type": "dream", "sessionId": "s1"}], [ANSWER, UNKNOWN]], "novelty (2) and dream (1)"),
        ([[META, SAID, make.said("assistant", "x"), *[NEW] * 1200]], "v2 (1,200)"),
    ],
)
def test_every_command_names_records_of_unknown_types(tmp_path, files, said):
    for at, own in enumerate(files):
        make.lines(tmp_path / f"{at}.jsonl", *own)
    for command in (["trajectories"], ["compare"], ["trajectories", "--list", "all"]):
        printed = CliRunner().invoke(main, [*command, str(tmp_path)]).stdout
        assert (f"Records of unknown types are left out: {said}" in " ".join(printed.split())) == bool(said)


def test_all_names_the_files_of_which_something_was_left_out(tmp_path):
    make.lines(tmp_path / "s.jsonl", "[1]", ANSWER)
    make.lines(tmp_path / "t.jsonl", HI)
    printed = CliRunner().invoke(main, ["trajectories", str(tmp_path), "--all"]).stdout
    assert "used: s.jsonl: 1 broken line left out" in printed


def call(name: str, own_id: str, second: int = 0) -> dict:
    return make.codex("function_call", second, "response_item", name=name, arguments="{}", call_id=own_id)


def output(own_id: str, text: str = "", second: int = 0) -> dict:
    return make.codex("function_call_output", second, "response_item", output=text, call_id=own_id)


def rollout(folder: Path, own_id: str, *own: object) -> Path:
    return make.lines(folder / f"rollout-2026-06-08T12-00-00-{own_id}.jsonl", *own)


def test_a_message_of_codex_that_stands_in_an_item_and_in_an_event_is_counted_once(tmp_path):
    rollout(
        tmp_path,
        "a",
        make.meta("a"),
        make.codex("turn_context", model="gpt-5"),
        make.said("user", "<environment_context>here</environment_context>"),
        make.said("user", "# AGENTS.md instructions for here"),
        make.codex("user_message", message="Hi."),
        make.said("user", "Hi."),
        make.codex("agent_message", 1, message="Hello."),
        make.said("assistant", "Hello.", 1),
        make.codex("user_message", 8, message="Hi."),
        make.codex("turn_context", 9, model="gpt-6"),
        make.codex("agent_message", 9, outer="response_item", message="Hello."),
        make.codex("turn_aborted", 9, outer="event_msg", reason="interrupted"),
    )
    logs = trajectories.load(tmp_path)
    assert logs.messages["text"].tolist()[2:-1] == ["Hi.", "Hello.", "Hi.", "Hello."]
    assert logs.messages["role"].tolist() == ["system", "system", "user", "assistant", "user", "assistant", "system"]
    assert rows_of(logs.runs, "turns", "exit_reason", "run_flags") == [
        [2, "turn_aborted: interrupted", ["no_outcome", "several_models"]]
    ]


@pytest.mark.parametrize(
    ("counts", "read", "calls"),
    [
        ([(10, 1, (10, 1)), (10, 1, (10, 1)), (30, 2, (20, 1))], 30, 2),  # a repeated count is no call
        ([(10, 1, None), (30, 2, None)], 30, 2),  # of early versions, which tell totals only
        ([(10, 1, (10, 1)), (4, 1, (4, 1)), (9, 2, (5, 1))], 19, 3),  # the totals begin again
        ([(10, 1, (10, 1)), (15, 1, (15, 1))], 25, 2),  # also above the former ones
    ],
)
def test_tokens_of_codex_are_those_of_its_last_totals_which_may_begin_again(tmp_path, counts, read, calls):
    own = [make.totals(*one[:2], last=one[2], second=at) for at, one in enumerate(counts)]
    rollout(tmp_path, "a", make.meta("a"), *own)
    assert rows_of(trajectories.load(tmp_path).runs, "tokens_in", "turns") == [[read, calls]]


def record(read: int, written: int, total: tuple[int, int]) -> dict:
    """Return the usage of a call, which newer versions write before the counts of the session."""
    names = ("input_tokens", "output_tokens")
    usage, of_session = (dict(zip(names, counts, strict=True)) for counts in ((read, written), total))
    return make.codex("token_usage_record", usage=usage, thread_token_usage=of_session)


TASK = make.codex("task_started")
DONE = make.codex("task_complete", outer="event_msg")


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ([TASK, call("shell", "c1"), record(10, 2, (10, 2))], [1, 10, 2, "unended"]),  # killed while a tool ran
        (
            [TASK, call("shell", "c1"), record(10, 2, (10, 2)), output("c1"), make.totals(10, 2, last=(10, 2)), DONE],
            [1, 10, 2, "completed"],
        ),
        ([TASK, DONE, TASK, call("shell", "c1"), record(10, 2, (10, 2))], [1, 10, 2, "unended"]),
        (  # the counts leave out a call, such as one that compacts
            [TASK, call("shell", "c1"), record(10, 2, (10, 2)), record(5, 1, (15, 3)), make.totals(10, 2), DONE],
            [2, 15, 3, "completed"],
        ),
        ([call("shell", "c1"), make.totals(10, 2), DONE, TASK, record(5, 1, (5, 1))], [2, 15, 3, "unended"]),
    ],
)
def test_tokens_of_codex_are_those_of_its_records_where_it_writes_these(tmp_path, own, expected):
    rollout(tmp_path, "a", make.meta("a"), *own)
    runs = trajectories.load(tmp_path).runs
    assert rows_of(runs, "turns", "tokens_in", "tokens_out", "status") == [expected]
    assert runs["exit_reason"].isna().all() == (expected[-1] == "unended")


PARENT = [
    make.said("user", "Start."),
    call("exec_command", "c1"),
    make.totals(100, 10, last=(100, 10)),
    output("c1", "Process exited with code 1"),
    make.said("assistant", "Failed."),
    make.totals(250, 30, last=(150, 20)),
]
REPLAYED = [make.meta("b", 20, forked_from_id="a"), make.meta("a", 20), *PARENT]
OWN = [
    make.said("user", "Go on.", 30),
    make.said("assistant", "Done.", 31),
    make.totals(300, 35, last=(50, 5), second=32),
]
STARTED = make.codex("task_started", 30, started_at=1_780_920_030)  # 12:00:30


@pytest.mark.parametrize(
    ("has_parent", "own", "read", "turns"),
    [
        (True, OWN, 50, 1),  # where items stop being those of the parent
        (True, OWN[:2], None, 1),
        (False, [STARTED, *OWN], 50, 1),  # where the first task of its own begins
        (False, OWN, None, 3),  # nothing tells
    ],
)
def test_a_fork_owns_what_comes_after_the_history_that_it_replays(tmp_path, has_parent, own, read, turns):
    rollout(tmp_path, "b", *REPLAYED, *own)
    if has_parent:
        rollout(tmp_path, "a", make.meta("a"), *PARENT, make.said("user", "Else."), make.totals(999, 99))
    logs = trajectories.load(tmp_path)
    runs = logs.runs
    assert rows_of(runs[runs["log_id"].eq("b")], "tokens_in", "turns") == [[read, turns]]
    assert logs.ledger["reason"].str.contains("tokens are missing unless the logs include the session").any() == (
        STARTED not in own
    )
    assert len(runs) == 1 + has_parent


def test_totals_of_a_fork_that_go_on_from_its_parents_are_not_its_own(tmp_path):
    own = [make.said("assistant", "Done."), make.totals(1050, 105, last=(50, 5)), make.totals(1090, 109, last=(40, 4))]
    rollout(tmp_path, "b", make.meta("b", forked_from_id="a"), *own)
    assert rows_of(trajectories.load(tmp_path).runs, "tokens_in", "tokens_out") == [[90, 9]]


AROUND = [make.said("user", "Go."), call("shell", "c1"), output("c1", "unsupported call: shell")]
ORDERS = {  # in which versions write an answer with two calls, their outputs, and its tokens
    "tokens last": [*AROUND[:2], call("shell", "c2"), AROUND[2], output("c2"), make.totals(10, 1)],
    "tokens before the outputs": [*AROUND[:2], call("shell", "c2"), make.totals(10, 1), AROUND[2], output("c2")],
    "tokens first": [AROUND[0], make.totals(10, 1), *AROUND[1:], call("shell", "c2"), output("c2")],
    "no tokens": [*AROUND, call("shell", "c2"), output("c2"), {"record_type": "state"}],
}


@pytest.mark.parametrize("order", ORDERS)
def test_an_answer_of_codex_with_two_calls_is_one_turn_in_each_order_of_its_lines(tmp_path, order):
    last = [make.codex("agent_message", 9, message="Done."), make.totals(30, 2), make.said("assistant", "Done.", 9)]
    if order == "no tokens":
        last = [last[-1], {"record_type": "state"}]
    rollout(tmp_path, "a", make.meta("a"), *ORDERS[order], *last)
    logs = trajectories.load(tmp_path)
    assert rows_of(logs.runs, "turns") == [[2]]
    assert rows_of(logs.tools, "tool", "calls", "errors") == [["shell", 2, 1]]


def test_a_subagent_of_codex_that_states_where_its_own_lines_begin_owns_these(tmp_path):
    parent, own = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
    started = make.codex("item_completed", 5, "event_msg", item={"kind": "started", "id": "c9", "agent_thread_id": own})
    spawn = [make.said("user", "Ask."), call("spawn_agent", "c9", 5), started, output("c9", "is running", 6)]
    rollout(tmp_path, parent, make.meta(parent), *spawn, make.totals(40, 4), make.said("assistant", "Thanks."))
    source = {"subagent": {"thread_spawn": {"parent_thread_id": parent}}}
    begun = make.codex("task_started", 5, started_at=1_780_920_005)  # in the second in which the subagent was started
    about = {"source": source, "forked_from_id": parent, "subagent_history_start_ordinal": 5}
    lines = [make.meta(own, 5, **about), make.meta(parent, 5), begun, *spawn[:2], begun]
    lines += [make.codex("agent_message", 7, "response_item", author="/root", content="Count.")]
    lines += [make.said("assistant", "Three.", 8), make.totals(20, 2, second=8)]
    rollout(tmp_path, own, *({**line, "ordinal": at} for at, line in enumerate(lines)))
    logs = trajectories.load(tmp_path)
    assert rows_of(logs.runs, "log_id", "turns", "tokens_in") == [[parent, 3, 60]]
    assert logs.messages["text"].tolist() == ["Ask.", "", "Count.", "Three.", "Thanks."]


def test_the_first_sessions_of_codex_are_documents(tmp_path):
    about = {"id": "a", "timestamp": "2025-05-01T10:00:00.000Z", "instructions": "Be brief."}
    items = [one["payload"] for one in (*AROUND, make.said("assistant", "Done."))]
    path = tmp_path / "rollout-2025-05-01-a.json"
    path.write_text(json.dumps({"session": about, "items": items}, indent=2))
    assert "Codex session" in describe_source(tmp_path)
    logs = trajectories.load(tmp_path)
    assert rows_of(logs.runs, "log_id", "turns", "tokens_in") == [["a", 2, None]]
    assert [text for text in logs.messages["text"] if text] == ["Go.", "Done."]


def test_a_task_of_codex_that_an_error_ended_has_it(tmp_path):
    ended = make.codex("task_complete", 3, "event_msg", error={"message": "overloaded"})
    rollout(tmp_path, "a", make.meta("a"), make.said("assistant", "Hm."), ended)
    assert rows_of(trajectories.load(tmp_path).runs, "error", "exit_reason") == [["overloaded", "task_complete"]]


def test_a_subagent_of_codex_is_part_of_the_run_and_shows_no_message_twice(tmp_path):
    own, other = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
    spawn = [call("spawn_agent", "c9", 5), output("c9", json.dumps({"agent_id": other}), 6)]
    asked = [make.said("user", "Ask.", 4), *spawn, make.said("assistant", "All done.", 40)]
    rollout(tmp_path, own, make.meta(own), *PARENT, *asked)
    source = {"subagent": {"thread_spawn": {"parent_thread_id": own}}}
    rollout(tmp_path, other, make.meta(other, 20, source=source), make.meta(own, 20), *PARENT, STARTED, *OWN)
    logs = trajectories.load(tmp_path)
    assert rows_of(logs.runs, "log_id", "tokens_in", "turns") == [[own, 300, 5]]
    texts = [text for text in logs.messages["text"] if text]
    assert texts == ["Start.", "Failed.", "Ask.", "Go on.", "Done.", "All done."]
    assert rows_of(logs.tools, "tool", "calls", "errors") == [["exec_command", 1, 1], ["spawn_agent", 1, 0]]


def test_rollouts_of_early_2025_have_no_envelope(tmp_path):
    first = {"id": "a", "timestamp": "2025-05-01T00:00:00Z", "instructions": "Be brief."}
    bare = {"type": "message", "content": [{"type": "input_text", "text": "x"}]}
    own = [bare | {"role": "user"}, bare | {"role": "assistant"}]
    rollout(tmp_path, "x", first, {"record_type": "state"}, *own)
    logs = trajectories.load(tmp_path)
    assert rows_of(logs.runs, "log_id", "turns") == [["a", 1]]
    assert logs.messages["role"].tolist() == ["user", "assistant"]
    assert logs.ledger["reason"].tolist() == [""]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_excerpt_is_parsed_as_the_whole_file(tmp_path, layout):
    rollout(session(tmp_path, layout), "b", *REPLAYED, *OWN)
    for path in tmp_path.rglob("*.jsonl"):
        data = path.read_bytes()
        part = excerpt(str(path), lambda data=data: io.BytesIO(data))
        assert part != data
        assert parse(str(path), part) == parse(str(path), data)


class Block(AbstractBufferedFile):
    """A file in memory that is read like one of a bucket: in blocks, with a `readline` that takes no size."""

    def _fetch_range(self, start, end):
        return self.fs.cat_file(self.path, start, end)


@pytest.mark.parametrize("name", ["s1.jsonl", "rollout-2026-06-08T12-00-00-b.jsonl"])
def test_a_session_behind_a_url_is_read_in_blocks(tmp_path, monkeypatch, name):
    monkeypatch.setattr(remote, "LARGE", 10_000)
    monkeypatch.setattr(
        MemoryFileSystem, "_open", lambda fs, path, *_, block_size, **__: Block(fs, path, "rb", block_size)
    )
    whole, requested = MemoryFileSystem.cat_file, []  # numbers of bytes

    def cat_file(fs, path, start=None, end=None, **_):
        requested.append(len(data := whole(fs, path, start, end)))
        return data

    monkeypatch.setattr(MemoryFileSystem, "cat_file", cat_file)
    long = "Listed the files again. " * 200
    if name.startswith("rollout"):
        rollout(tmp_path, "b", make.meta("b"), *(make.said("assistant", long) for _ in range(40)))
    else:
        make.lines(tmp_path / name, *(make.claude("s1", at, make.answer(f"m{at}", long)) for at in range(40)))
    data = (tmp_path / name).read_bytes()
    url = f"memory://{tmp_path.name}/{name}"
    fsspec.filesystem("memory").store[f"/{tmp_path.name}/{name}"] = MemoryFile(data=data)
    assert rows_of(trajectories.load(url).runs, "turns") == rows_of(trajectories.load(tmp_path).runs, "turns")
    assert max(requested) < len(data) / 2


def test_a_line_longer_than_what_is_examined_is_recognised(tmp_path):
    make.lines(tmp_path / "s1.jsonl", make.claude("s1", 1, "x" * 100_000), make.claude("s1", 2, make.answer("m1", "y")))
    assert "Claude Code session" in describe_source(tmp_path)
    assert rows_of(trajectories.load(tmp_path).runs, "turns") == [[1]]


def test_the_first_screen_says_what_runs_took_where_no_log_states_an_outcome(tmp_path):
    logs = trajectories.load(session(tmp_path))
    text = summary(logs, {})
    assert "tokens read" in text
    assert "--outcomes" in text
    table = analysis.took(logs.runs, logs.usage, logs.tools)
    first = finding_text(analysis.findings([], logs.runs, logs.plans, logs.ledger, table)[0])
    said = "4 turns, 40 tokens read (24 from a cache), 22 tokens written and 2 calls of tools, of which 1 failed."
    assert first == f"1 run of haiku and opus without an outcome in the logs: {said}"


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (1, "No best model: the log of 1 run states no outcome."),
        (2, "No best model: no log of 2 runs states an outcome."),
    ],
)
def test_a_comparison_says_that_logs_state_no_outcome(tmp_path, count, said):
    for at in range(count):
        make.lines(tmp_path / f"s{at}.jsonl", make.claude(f"s{at}", 1, make.answer(f"m{at}", "x")))
    assert CliRunner().invoke(main, ["compare", str(tmp_path)]).output.startswith(said)


def test_outcomes_from_a_file_make_sessions_comparable(tmp_path):
    run_id = trajectories.load(session(tmp_path / "logs")).runs["run_id"].iloc[0]
    given = make.write(tmp_path / "outcomes.csv", f"run_id,outcome\n{run_id},success\n")
    assert rows_of(trajectories.load(tmp_path / "logs", outcomes=given).runs, "is_successful") == [[True]]


def test_no_column_tells_where_a_person_worked(tmp_path):
    session(tmp_path)
    rollout(tmp_path, "b", *REPLAYED, *OWN)
    logs = trajectories.load(tmp_path)
    for name in ("runs", "usage", "tools", "messages", "ledger"):
        text = getattr(logs, name).to_csv()
        assert "jane" not in text
        assert "secret-branch" not in text


@pytest.mark.parametrize(
    ("text", "is_hidden"),
    [
        ("projects/-home-jane-thesis/s1.jsonl", True),
        ("C--Users-jane-thesis/s1.jsonl", True),
        ("-home-jane-thesis", True),
        ("projects/jane-thesis/s1.jsonl", False),
        ("evalkit report --jane x", False),
    ],
)
def test_folders_named_after_a_persons_are_hidden(text, is_hidden):
    assert ("jane" not in without_projects(text)) == is_hidden


@pytest.mark.parametrize("text", ["-1", "-0.5", "-1/2", "-v", "--help", "--no-sandbox"])
def test_numbers_and_options_are_no_folders(text):
    assert without_projects(text) == text


RECORDS = (
    HI,
    make.claude("s1", 2, make.answer("m1", "x", ("Agent", "t1"))),
    make.claude("s1", 3, make.result("t1"), toolUseResult={"agentId": "a1"}),
    {"type": "system", "sessionId": "s1", "content": "x"},
    META,
    make.codex("turn_context", model="gpt-5"),
    SAID,
    call("spawn_agent", "c1"),
    output("c1", "{}"),
    make.totals(10, 1, last=(10, 1)),
    STARTED,
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]},
    {"session": {"id": "a", "timestamp": "x"}, "items": [SAID["payload"]]},
    make.meta("a", subagent_history_start_ordinal=1) | {"ordinal": 0},
    make.codex("item_completed", 5, "event_msg", item={"kind": "started", "id": "c1", "agent_thread_id": "b"}),
    make.claude("s1", 4, None, type="attachment", attachment={"commandMode": "prompt", "prompt": "Go."}),
    {"type": "cost-state", "sessionId": "s1", "totalCostUSD": 0.5},
    {"type": "result", "session_id": "s1", "modelUsage": {"opus": {"outputTokens": 30}}, "total_cost_usd": 1},
    {"sessionId": "s1", "projectHash": "f0", "startTime": "x"},
    {"$set": {"messages": [{"id": "a1", "type": "user", "content": [{"text": "Go."}]}]}},
    {
        "id": "a2",
        "type": "gemini",
        "content": "x",
        "tokens": {"input": 3, "output": 2, "total": 5},
        "toolCalls": [{"id": "t1", "result": [{"functionResponse": {"response": {"output": "x"}}}]}],
    },
    {
        "uuid": "u1",
        "sessionId": "s1",
        "type": "tool_result",
        "message": {"parts": [{"functionResponse": {"id": "c1", "response": {"error": "x"}}}]},
    },
    {
        "uuid": "u2",
        "sessionId": "s1",
        "type": "assistant",
        "message": {"parts": [{"text": "x", "thought": True}, {"functionCall": {"id": "c1", "name": "shell"}}]},
    },
    {"$rewindTo": "u1", "sessionId": "s1"},
    {
        "type": "result",
        "session_id": "s1",
        "num_turns": 2,
        "is_error": True,
        "result": "x",
        "usage": {"input_tokens": 1},
    },
    {"type": "thread.started", "thread_id": "a"},
    {"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": "x"}},
    {
        "type": "item.completed",
        "item": {"id": "i", "type": "mcp_tool_call", "arguments": {}, "error": {"message": "x"}},
    },
    {"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}},
    {"type": "turn.failed", "error": {"message": "x"}},
)


def mutated(value: object, data: st.DataObject) -> object:
    """Replace parts of a record by any JSON."""
    if data.draw(st.integers(0, 4)) == 0:
        return data.draw(JSON)
    if isinstance(value, dict):
        return {key: mutated(one, data) for key, one in value.items()}
    return [mutated(one, data) for one in value] if isinstance(value, list) else value


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(RECORDS), max_size=6), st.data())
def test_reading_sessions_never_raises_whatever_their_lines_hold(own, data):
    text = "\n".join(json.dumps(mutated(one, data)) for one in own).encode()
    for name in ("s.jsonl", "rollout-2026-06-08T12-00-00-a.jsonl"):
        parsed = parse(name, text)
        assert parsed.status in ("used", "skipped", "failed")
        if parsed.status == "used" and parsed.rows["runs"]:
            assert isinstance(messages([name], "0", lambda path: text), list)


USER = {"role": "user", "content": "a"}


@pytest.mark.parametrize(
    ("name", "text", "task", "turns"),
    [
        ("talk.json", {"messages": [USER, {"role": "assistant", "content": "b"}]}, "talk", 1),
        ("talk.json", {"task": "t", "history": [USER, {"name": "assistant", "content": "b"}]}, "t", 1),
        ("talks.json", [{"messages": [USER]}] * 2, "talks 1", None),
        ("talk.jsonl", f"{json.dumps({'messages': [USER]})}\n42\n", "talk", None),  # a line without an object
    ],
)
def test_a_chat_is_a_run_of_a_table_without_an_outcome(tmp_path, name, text, task, turns):
    make.write(tmp_path / name, text)
    assert "chat" in describe_source(tmp_path)
    logs = trajectories.load(tmp_path)
    assert rows_of(logs.runs[:1], "format", "task_id", "turns") == [["table", task, turns]]
    assert has_flag(logs.runs, "no_outcome").all()
    assert logs.messages["text"].iloc[0] == "a"


@pytest.mark.parametrize(
    ("name", "text", "told_of", "expected"),
    [
        ("talk.json", {"model": "m", "score": 1, "messages": [USER]}, "chat", ["talk", "m", 1.0]),
        ("talk.json", {"model": "m", "score": 1, "task": "t", "messages": [USER]}, "table of runs", ["t", "m", 1.0]),
        ("talks.json", [{"model": "m", "passed": True, "history": [USER]}] * 2, "chat", ["talks 1", "m", 1.0]),
        ("talk.jsonl", f"{json.dumps({'model': 'm', 'score': 1, 'messages': [USER]})}\n", "", ["talk", "m", 1.0]),
    ],
)
def test_a_chat_with_a_score_needs_no_task(tmp_path, name, text, told_of, expected):
    make.write(tmp_path / name, text)
    assert told_of in describe_source(tmp_path)
    logs = trajectories.load(tmp_path)
    assert rows_of(logs.runs[:1], "task_id", "model_name", "score") == [expected]
    assert logs.messages["text"].iloc[0] == "a"


@pytest.mark.parametrize(
    ("rows", "columns", "said"),
    [
        ([{"model": m, "passed": True, "topic": n, "history": [USER]} for m in "ab" for n in range(2)], "", True),
        ([{"model": m, "messages": [USER], "topic": m} for m in "abc"], "", True),
        ([{"model": "a", "score": 1, "topic": "x", "messages": [USER]}], "", False),  # the file is the task
        (
            [{"model": m, "passed": True, "topic": n, "history": [USER]} for m in "ab" for n in range(2)],
            "task=topic",
            False,
        ),
        ([{"model": m, "passed": True, "task": "t", "history": [USER]} for m in "ab"], "", False),
    ],
)
@pytest.mark.parametrize("name", ["talks.json", "talks.jsonl"])
def test_chats_each_of_which_is_a_task_of_its_own_are_named(tmp_path, name, rows, columns, said):
    text = "\n".join(map(json.dumps, rows)) + "\n"
    logs = trajectories.load(make.write(tmp_path / name, rows if name.endswith("json") else text), columns=columns)
    assert (logs.runs["task_id"].nunique() == len(rows) > 1) == said
    assert ("no column is the task, so each row is one of its own (--column task_id=NAME)" in str(logs.chosen)) == said


def test_a_chat_is_no_run_of_a_kind_if_nothing_in_it_is_a_message(tmp_path):
    make.write(tmp_path / "a.json", {"messages": ["a"]})
    with pytest.raises(SourceError):
        trajectories.load(tmp_path)


PRINTED = [
    {"type": "system", "subtype": "init", "session_id": "s1", "claude_code_version": "2.1.9"},
    {"type": "assistant", "message": make.answer("m1", ("Agent", "t1"), written=1) | {"stop_reason": None}},
    {"type": "assistant", "message": make.answer("m2", "Three.", written=1) | {"stop_reason": None}},
    {"type": "user", "message": {"role": "user", "content": make.result("t1")}},
]
PRINTED[2]["parent_tool_use_id"] = "t1"


def printed(path: Path, *, stop_reason: object = None, subtype: str = "success", **usage: int) -> None:
    """Write what Claude Code prints of a session: two answers, and the tokens of all."""
    shown = [{"session_id": "s1", "parent_tool_use_id": None, **line} for line in PRINTED]
    for line in shown[1:3]:
        line["message"] = line["message"] | {"stop_reason": stop_reason}
    spent = {"total_cost_usd": 0.5, "modelUsage": {"opus[1m]": usage, "other": {"outputTokens": 9}}}
    make.lines(path, *shown, {"type": "result", "session_id": "s1", "subtype": subtype, **spent})


def test_what_claude_code_prints_is_a_session(tmp_path):
    printed(tmp_path / "printed.jsonl", subtype="error_max_turns", outputTokens=30)
    logs = trajectories.load(tmp_path)
    assert rows_of(logs.runs, "log_id", "agent_version", "turns") == [["s1", "2.1.9", 2]]
    assert rows_of(logs.runs, *TOKENS, "cost", "exit_reason") == [[20, 12, 30, 0.5, "error_max_turns"]]


@pytest.mark.parametrize("others", [["s1"], ["s2"], ["s1", "s3", "s3"]])
def test_output_of_several_sessions_in_one_file_is_refused(tmp_path, others):
    printed(tmp_path / "log.jsonl", outputTokens=30)
    text = (tmp_path / "log.jsonl").read_text()
    (tmp_path / "log.jsonl").write_text(text + "".join(text.replace('"s1"', f'"{other}"') for other in others))
    data = (tmp_path / "log.jsonl").read_bytes()
    parsed = parse("log.jsonl", data)
    refused = "several sessions were printed into this file: write each into a file of its own"
    went_on = others == ["s1"]
    assert (parsed.status, parsed.reason) == (("used", "") if went_on else ("failed", refused))
    assert (excerpt("log.jsonl", lambda: io.BytesIO(data)) is not None) == went_on


def test_the_ledger_says_if_session_files_were_joined_by_hand(tmp_path):
    for name, ids in {"one": ["s1", "s1"], "two": ["s1", "s2", "s2"]}.items():
        own = [make.claude(one, at, make.answer(f"{name}{at}", "x")) for at, one in enumerate(ids)]
        make.lines(tmp_path / f"{name}.jsonl", *own)
    reasons = trajectories.load(tmp_path).ledger["reason"].tolist()
    assert reasons == ["", "its sessions, with different ids, count as one run"]


@pytest.mark.parametrize("stop_reason", [None, "tool_use"])
@pytest.mark.parametrize(
    ("usage", "expected", "unprinted"),
    [
        ({"inputTokens": 8, "cacheReadInputTokens": 12, "outputTokens": 12}, [20, 12, 12], 0),
        ({"inputTokens": 20, "cacheReadInputTokens": 17, "outputTokens": 40}, [37, 17, 40], 17),
        ({"inputTokens": 1, "outputTokens": 1}, [20, 12, 2], 0),  # the result counts less than is printed
    ],
)
def test_tokens_of_answers_that_are_not_printed_are_those_of_the_result(
    tmp_path, stop_reason, usage, expected, unprinted
):
    printed(tmp_path / "printed.jsonl", stop_reason=stop_reason, **usage)
    logs = trajectories.load(tmp_path)
    assert rows_of(logs.runs, "turns", *TOKENS) == [[2, *expected]]
    assert rows_of(logs.usage, "model_name", "calls", *TOKENS) == [["opus", 2, *expected]]
    said = f"{unprinted} of the tokens read are of calls that were not printed" if unprinted else ""
    assert logs.ledger["reason"].tolist() == [said]


@pytest.mark.parametrize("written", [(5, 7), (9, 1), (1, 1)])
def test_a_session_and_what_was_printed_of_it_count_tokens_once(tmp_path, written):
    for name in ("printed", "copy"):
        printed(tmp_path / f"{name}.jsonl", inputTokens=8, cacheReadInputTokens=12, outputTokens=12)
    answers = [make.answer(f"m{at + 1}", "x", written=tokens) for at, tokens in enumerate(written)]
    make.lines(tmp_path / "s1.jsonl", *(make.claude("s1", at, one) for at, one in enumerate(answers)))
    assert rows_of(trajectories.load(tmp_path).runs, "turns", *TOKENS) == [[2, 20, 12, 12]]


def result_of(path: Path, session_id: str = "s1", turns: int = 2, read: int = 30, **more: object) -> dict:
    """Return what Claude Code prints of a session without its messages, and write it as a document."""
    usage = {"inputTokens": read, "cacheReadInputTokens": read // 2, "outputTokens": read // 3}
    one = {"type": "result", "subtype": "success", "session_id": session_id, "num_turns": turns, "result": "Done."}
    one |= {"total_cost_usd": read / 100, "modelUsage": {"opus": usage}, **more}
    make.write(path, one)
    return one


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, ["opus", 2, 45, 15, 10, 0.3, None]),
        ({"read": 0}, ["opus", 2, None, None, None, None, None]),
        ({"modelUsage": None, "usage": {"input_tokens": 5, "output_tokens": 6}}, ["unknown", 2, 5, None, 6, 0.3, None]),
        ({"is_error": True, "result": None, "errors": ["no key"]}, ["opus", 2, 45, 15, 10, 0.3, "no key"]),
    ],
)
def test_a_result_that_claude_code_prints_alone_is_a_session(tmp_path, more, expected):
    result_of(tmp_path / "one.json", **more)
    logs = trajectories.load(tmp_path)
    assert rows_of(logs.runs, "model_name", "turns", *TOKENS, "cost", "error") == [expected]
    assert logs.messages["role"].tolist() == ["assistant"]


def test_results_of_a_resumed_session_count_what_was_before_and_those_of_others_are_named(tmp_path):
    result_of(tmp_path / "one.json")
    more = result_of(tmp_path / "two.json", read=60, turns=3)
    make.lines(tmp_path / "three.jsonl", more | {"session_id": "s2"}, more | {"session_id": "s3"})
    logs = trajectories.load(tmp_path)
    columns = ("log_id", "turns", "tokens_in", "tokens_out", "cost")
    assert rows_of(logs.runs, *columns) == [["s1", 5, 90, 20, 0.6]]
    failed = logs.ledger[logs.ledger["status"].eq("failed")]
    assert failed["reason"].str.contains("result of another session").tolist() == [True]


def test_a_document_that_lists_what_claude_code_prints_is_a_session(tmp_path):
    printed(tmp_path / "lines.jsonl", outputTokens=30)
    lines = (tmp_path / "lines.jsonl").read_text().splitlines()
    (tmp_path / "lines.jsonl").unlink()
    make.write(tmp_path / "one.json", [json.loads(line) for line in lines])
    assert "Claude Code session" in describe_source(tmp_path)
    assert rows_of(trajectories.load(tmp_path).runs, "log_id", "turns", *TOKENS) == [["s1", 2, 20, 12, 30]]


def codex_prints(path: Path, *items: dict, read: int = 100, end: dict | None = None) -> None:
    """Write what `codex exec --json` prints of a thread."""
    shown = [{"type": "item.completed", "item": {"id": f"item_{at}", **one}} for at, one in enumerate(items)]
    usage = {"input_tokens": read, "cached_input_tokens": 40, "output_tokens": 9, "reasoning_output_tokens": 3}
    ended = end or {"type": "turn.completed", "usage": usage}
    make.lines(path, {"type": "thread.started", "thread_id": "a"}, {"type": "turn.started"}, *shown, ended)


RAN_IN_CODEX = {"type": "command_execution", "command": "ls", "aggregated_output": "x", "status": "failed"}
PRINTED_BY_CODEX = [
    {"type": "reasoning", "text": "I think."},
    RAN_IN_CODEX | {"exit_code": 2},
    {"type": "mcp_tool_call", "tool": "find", "arguments": {"q": 1}, "error": {"message": "gone"}, "status": "failed"},
    {"type": "file_change", "changes": [{"path": "a.py", "kind": "add"}], "status": "completed"},
    {"type": "agent_message", "text": "Done."},
    {"type": "novelty"},
]


def test_what_codex_exec_prints_is_a_session(tmp_path):
    codex_prints(tmp_path / "out.jsonl", *PRINTED_BY_CODEX)
    logs = trajectories.load(tmp_path)
    assert rows_of(logs.runs, "log_id", "model_name", "turns", *TOKENS) == [["a", "unknown", 4, 100, 40, 9]]
    assert logs.ledger["reason"].tolist() == ["1 record of unknown types: item novelty"]
    columns = ("tool", "calls", "results", "errors")
    expected = [["command_execution", 1, 1, 1], ["file_change", 1, 1, 0], ["find", 1, 1, 1]]
    assert rows_of(logs.tools, *columns) == expected
    spoken = messages([str(tmp_path / "out.jsonl")], "", lambda path: Path(path).read_bytes())
    results = [call.result for message in spoken for call in message.calls]
    assert results == ["Exit code 2\nx", "gone", ""]


@pytest.mark.parametrize(
    ("end", "error", "reason"),
    [
        ({"type": "turn.failed", "error": {"message": "no quota"}}, "no quota", "turn_failed"),
        ({"type": "error", "message": "gone"}, "gone", None),
        ({"type": "turn.completed", "usage": {"input_tokens": 0, "output_tokens": 0}}, None, "turn_completed"),
    ],
)
def test_a_turn_of_codex_exec_that_failed_has_its_error_and_no_tokens(tmp_path, end, error, reason):
    codex_prints(tmp_path / "out.jsonl", {"type": "agent_message", "text": "Hi."}, end=end)
    assert rows_of(trajectories.load(tmp_path).runs, "turns", *TOKENS, "error", "exit_reason") == [
        [1, None, None, None, error, reason]
    ]


@pytest.mark.parametrize("has_rollout", [False, True])
def test_what_codex_exec_prints_of_a_resumed_thread_counts_once(tmp_path, has_rollout):
    codex_prints(tmp_path / "one.jsonl", {"type": "agent_message", "text": "Hi."})
    codex_prints(tmp_path / "two.jsonl", {"type": "agent_message", "text": "Bye."}, read=300)
    if has_rollout:
        own = [(make.said("assistant", text), make.totals(read, 9)) for text, read in (("Hi.", 100), ("Bye.", 300))]
        make.lines(tmp_path / "rollout-a.jsonl", make.meta("a"), *(line for pair in own for line in pair))
    assert rows_of(trajectories.load(tmp_path).runs, "turns", "tokens_in") == [[2, 300]]


def gemini(own_id: str, kind: str, content: object, **more: object) -> dict:
    return {"id": own_id, "timestamp": "2026-06-15T10:00:00.000Z", "type": kind, "content": content, **more}


SPENT = {"model": "gemini-pro", "tokens": {"input": 10, "cached": 4, "output": 2, "thoughts": 3, "total": 15}}
RAN = {"id": "t1", "name": "shell", "args": {"command": "ls"}, "status": "error"}
RAN["result"] = [{"functionResponse": {"id": "t1", "response": {"error": "no such folder"}}}]
GEMINI = [
    gemini("a1", "user", [{"text": "Look."}]),
    gemini("a2", "gemini", "I look.", **SPENT),
    gemini("a2", "gemini", "I look.", **SPENT, toolCalls=[RAN]),
    gemini("a3", "gemini", "None.", **SPENT),
]
START = {"sessionId": "s1", "projectHash": "f00", "startTime": "2026-06-15T10:00:00.000Z", "kind": "main"}


@pytest.mark.parametrize("name", ["session-1.jsonl", "session-1.json"])
def test_sessions_of_gemini_count_each_message_once(tmp_path, name):
    if name.endswith("l"):
        resumed = {"$set": {"messages": GEMINI[:1]}}
        make.lines(tmp_path / name, START, *GEMINI[:3], {"$set": {"lastUpdated": "x"}}, resumed, GEMINI[3])
    else:
        (tmp_path / name).write_text(json.dumps({**START, "messages": GEMINI}, indent=2))
    assert "Gemini CLI session" in describe_source(tmp_path)
    logs = trajectories.load(tmp_path)
    assert rows_of(logs.runs, "log_id", "agent", "model_name", "turns", *TOKENS) == [
        ["s1", "Gemini CLI", "gemini-pro", 2, 20, 8, 10]
    ]
    assert logs.messages["text"].tolist() == ["Look.", "I look.", "None."]
    assert rows_of(logs.tools, "tool", "calls", "errors") == [["shell", 1, 1]]


def test_a_session_of_gemini_shows_where_the_user_went_back_and_counts_what_that_left(tmp_path):
    again = [gemini("b1", "user", "Look again."), gemini("b2", "gemini", "Two.", **SPENT)]
    make.lines(tmp_path / "session-1.jsonl", START, GEMINI[0], GEMINI[1], {"$rewindTo": "a1"}, *again)
    logs = trajectories.load(tmp_path)
    assert rows_of(logs.runs, "turns", "tokens_in") == [[2, 20]]
    assert logs.messages["role"].tolist() == ["user", "assistant", "system", "user", "assistant"]


def test_answers_of_gemini_without_ids_are_calls_of_their_own(tmp_path):
    make.lines(tmp_path / "session-1.jsonl", START, *({**one, "id": None} for one in (GEMINI[1], GEMINI[3])))
    assert rows_of(trajectories.load(tmp_path).runs, "turns", *TOKENS) == [[2, 20, 8, 10]]


def test_sessions_of_qwen_are_no_sessions_of_claude_and_have_their_subagents_in_place(tmp_path):
    def line(uuid, kind, *parts, **more):
        return {"uuid": uuid, "sessionId": "s1", "type": kind, "message": {"parts": parts}, **more}

    usage = {"promptTokenCount": 10, "candidatesTokenCount": 2, "totalTokenCount": 12, "cachedContentTokenCount": 4}
    spent = {"model": "qwen", "usageMetadata": usage}
    asked = {"functionCall": {"id": "c1", "name": "agent", "args": {"prompt": "Count."}}}
    answered = {"functionResponse": {"id": "c1", "response": {"output": "Three."}}}
    make.lines(
        tmp_path / "chats" / "s1.jsonl",
        line("u1", "user", {"text": "Ask."}),
        line("u2", "assistant", asked, **spent),
        line("u3", "tool_result", answered, toolCallResult={"status": "success"}),
        line("u4", "assistant", {"text": "Done."}, **spent),
    )
    make.lines(
        tmp_path / "subagents" / "s1" / "agent-general-c1.jsonl",
        line("v1", "user", {"text": "Count."}, isSidechain=True),
        line("v2", "assistant", isSidechain=True, usageMetadata=usage),
        line("v3", "assistant", {"functionCall": {"id": "c2", "name": "shell", "args": {}}}, isSidechain=True),
        line("v4", "assistant", {"text": "Three."}, isSidechain=True, usageMetadata=usage),
    )
    logs = trajectories.load(tmp_path)
    assert rows_of(logs.runs, "log_id", "agent", "turns", *TOKENS) == [["s1", "Qwen Code", 4, 40, 16, 8]]
    assert not has_flag(logs.runs, "several_models").any()  # the subagent names none
    assert [text for text in logs.messages["text"] if text] == ["Ask.", "Count.", "Three.", "Done."]


@pytest.mark.parametrize(("ends", "noted"), [(0, "of 3 answers"), (1, "of 2 answers"), (2, "")])
def test_a_session_that_counts_only_the_first_written_tokens_of_most_answers_says_so(tmp_path, ends, noted):
    answers = [make.answer(f"m{at}", "x", written=1) | {"stop_reason": None} for at in range(3)]
    for one in answers[:ends]:
        one["stop_reason"] = "end_turn"
    make.lines(tmp_path / "s1.jsonl", *(make.claude("s1", at, one) for at, one in enumerate(answers)))
    reason = trajectories.load(tmp_path).ledger["reason"][0]
    assert reason == (f"{noted} only the first written tokens are counted" if noted else "")


@pytest.mark.parametrize(
    ("logged", "shown", "error"),
    [
        (
            "Chunk ID: a1\nWall time: 0.1 seconds\nProcess exited with code 2\nOutput:\nno file",
            "Exit code 2\nno file",
            1,
        ),
        ("Chunk ID: a1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\nx", "x", 0),
        ("Exit code: 1\nWall time: 0 seconds\nOutput:\nno", "Exit code 1\nno", 1),
        ('{"output":"no","metadata":{"exit_code":3,"duration_seconds":0.2}}', "Exit code 3\nno", 1),
        ('{"output":', '{"output":', 0),
        ("Wall time: 4.2 seconds\naborted by user", "aborted by user", 0),
        ("apply_patch verification failed: no hunk", "apply_patch verification failed: no hunk", 1),
        ("Plan updated", "Plan updated", 0),
    ],
)
def test_an_output_of_codex_is_what_a_tool_printed_without_times_that_differ(tmp_path, logged, shown, error):
    rollout(tmp_path, "a", make.meta("a"), call("shell", "c1"), output("c1", logged))
    logs = trajectories.load(tmp_path)
    assert logs.tool_calls["result"].tolist() == [shown]
    assert logs.tools["errors"].tolist() == [error]
