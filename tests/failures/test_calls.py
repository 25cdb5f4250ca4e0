"""Calls and results that logs hold as text only: in messages of chats, and in answers of the game."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evalkit
from evalkit import failures
from evalkit.crafter.events import repeated_noop
from evalkit.kinds import Call, Transcript, Turn, read_log
from evalkit.kinds.detectors import seen
from evalkit.mindcraft.events import unanswered_message, wrong_item
from evalkit.trajectories.chat import Message, chat_messages
from evalkit.trajectories.transcript import turns_of

WRITTEN = {  # a message with a call, the message with its result, and the name, arguments and result of the call
    "ReAct": ("I look.\nAction: find\nAction Input: {}", "Observation: none", ("find", "{}", "none")),
    "JSON in tags": ('<tool_call>{"name": "find", "arguments": {}}</tool_call>', "<tool_response>none</tool_response>",
                     ("find", "{}", "none")),
    "a named tag": ('Next.\n<tool name="find">{"a": 1}</tool>', "<tool_result>\nnone\n</tool_result>",
                    ("find", '{"a":1}', "none")),
    "a tag of a function": ("<function=find>{}</function>", "<function_results>none</function_results>",
                            ("find", "{}", "none")),
    "a tag that runs code": ("<execute_bash>ls</execute_bash>", "OBSERVATION:\na.py", ("execute_bash", "ls", "a.py")),
    "a tag with parameters": (
        '<function=find>\n<parameter=path>\na.py\n</parameter>\n<parameter=n>3</parameter>\n</function>',
        "nothing to see", ("find", '{"n":"3","path":"a.py"}', "nothing to see"),
    ),
    "an invocation": ('<invoke name="find"><parameter name="path">a</parameter></invoke>',
                      "<function_results>\n<result>\n<stdout>\nnone\n</stdout>\n</result>\n</function_results>",
                      ("find", '{"path":"a"}', "none")),
    "a plain block of SWE-agent": (
        "I look.\n\n```\ngrep -n f a.py\n```", "none\n(Open file: n/a)\n(Current directory: /repo)\nbash-$ ",
        ("shell", "grep -n f a.py", "none"),
    ),
    "a plain block of mini-swe-agent": (
        "THOUGHT: look\n\n```\nwc a.py\n```", "<returncode>0</returncode>\n<output>\nnone</output>",
        ("shell", "wc a.py", "<returncode>0</returncode>\n<output>\nnone</output>"),
    ),
    "ReAct with numbers": (
        "Thought 2: look\nAction 2: find[the sum]", "Observation 2: none", ("find", "the sum", "none")),
    "ReAct in bold": ("**Action:** find\n**Action Input:** a\nObservation:", "none", ("find", "a", "none")),
    "parts of a task": ("<list_files>\n<path>src</path>\n</list_files>", "[list_files for 'src'] Result:\na.py",
                        ("list_files", '{"path":"src"}', "a.py")),
    "JSON of a tool": ('```json\n{"tool": "find", "args": {"n": 3}}\n```', "Tool result: none",
                       ("find", '{"n":3}', "none")),
    "JSON in JSON": (
        '{"thought": "look", "command": {"name": "find", "args": {}}}', "Result:\nnone", ("find", "{}", "none")),
    "a token before JSON": ('[TOOL_CALLS] [{"name": "find", "arguments": {}}]', "none", ("find", "{}", "none")),
    "a block of code": ("Code:\n```py\nfind(3)\n```", "Observation: none", ("python", "find(3)", "none")),
    "a block of JSON": ('```json\n{"action": "find", "action_input": "a"}\n```', "Observation: none",
                        ("find", "a", "none")),
}  # fmt: skip


def chat(tmp_path, *texts):
    """Write a table of one chat, of which the user and the assistant speak in turn, and load it."""
    messages = [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)]
    row = {"task_id": "t", "model": "alder", "success": False, "messages": messages}
    (tmp_path / "runs.jsonl").write_text(json.dumps(row))
    return evalkit.load(tmp_path / "runs.jsonl")


@pytest.mark.parametrize("form", WRITTEN)
def test_a_call_in_the_text_of_a_message_has_its_result(form, tmp_path):
    called, answered, expected = WRITTEN[form]
    logs = chat(tmp_path, "Find it.", called, answered, "It is not there.")
    turns = logs.kind.transcript([str(tmp_path / "runs.jsonl")], read_log).turns
    [made] = seen(Transcript("", [], turns)).calls
    assert (made.name, made.arguments, made.result) == expected


def test_the_results_of_several_calls_in_a_message_are_in_order(tmp_path):
    called = "".join(f'<tool_call>{{"name": "{name}", "arguments": {{}}}}</tool_call>' for name in "ab")
    answered = "".join(f"<tool_response>{text}</tool_response>" for text in ("one", "two"))
    logs = chat(tmp_path, "Find it.", called, answered, "There.")
    turns = logs.kind.transcript([str(tmp_path / "runs.jsonl")], read_log).turns
    calls = seen(Transcript("", [], turns)).calls
    assert [(made.name, made.result, made.turn) for made in calls] == [("a", "one", 3), ("b", "two", 4)]


PIECES = st.sampled_from(
    ['<function=find>', '<parameter=a>', '</parameter>', '</function>', '<tool_call>', '{"name": "find"}',
     '</tool_call>', '```json\n', '```', 'Action: find', '\nAction Input: ', '[', ']', '<read_file>',
     '</read_file>', '\ud800']
)  # fmt: skip


@given(st.lists(PIECES | st.text(max_size=9), max_size=12).map("".join))
def test_any_text_is_read_for_calls(text):
    [turn, *_] = [turn for turn, _ in turns_of(Message("assistant", text))]
    assert turn.text == text


UNREAD = {
    "Action: find\nAction Input: a\nObservation: none\nAction: find\nAction Input: b\nObservation: none": True,
    "<tool_call>find a</tool_call>": True,
    "<|python_tag|>find.call(a)": True,
    "Action: find\nAction Input: a": False,
    "Action: I wait for the others.": False,
}


@pytest.mark.parametrize("text", UNREAD)
def test_a_call_in_an_unknown_form_is_named(text, tmp_path):
    events = failures.events(chat(tmp_path, "Find it.", text, "none", "It is not there."))["event"]
    assert ("call_not_understood" in set(events)) is UNREAD[text]


@pytest.mark.parametrize(("answer", "is_named"), [("Observation: none", True), ("Thanks, what does it do?", False)])
def test_several_blocks_with_one_result_are_named(answer, is_named, tmp_path):
    text = "First\n```\nls src\n```\nand then\n```\nls tests\n```"
    assert ("call_not_understood" in set(failures.events(chat(tmp_path, "Go.", text, answer))["event"])) is is_named


INTERFACES = {  # a call of `find` with {"n": 3} and its result "none", in the messages of other interfaces
    "responses": (
        {"type": "function_call", "name": "find", "arguments": '{"n":3}', "call_id": "x"},
        {"type": "function_call_output", "call_id": "x", "output": "none"},
    ),
    "LangChain": (
        {"type": "ai", "content": "", "tool_calls": [{"name": "find", "args": {"n": 3}, "id": "x"}]},
        {"type": "tool", "content": "none", "tool_call_id": "x"},
    ),
    "LangChain, stored": (
        {"type": "ai", "data": {"content": "", "tool_calls": [{"name": "find", "args": {"n": 3}, "id": "x"}]}},
        {"type": "tool", "data": {"content": "none", "tool_call_id": "x"}},
    ),
    "Gemini": (
        {"role": "model", "parts": [{"functionCall": {"name": "find", "args": {"n": 3}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "find", "response": "none"}}]},
    ),
    "Google's client": (
        {"role": "model", "parts": [{"function_call": {"name": "find", "args": {"n": 3}}}]},
        {"role": "user", "parts": [{"function_response": {"name": "find", "response": "none"}}]},
    ),
    "Anthropic's servers, in one message": (
        {
            "role": "assistant",
            "content": [
                {"type": "mcp_tool_use", "id": "x", "name": "find", "input": {"n": 3}},
                {"type": "mcp_tool_result", "tool_use_id": "x", "content": [{"type": "text", "text": "none"}]},
            ],
        },
    ),
    "Llama": (
        {"role": "assistant", "content": '<|python_tag|>{"name": "find", "parameters": {"n": 3}}<|eom_id|>'},
        {"role": "ipython", "content": "none"},
    ),
    "Bedrock": (
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "x", "name": "find", "input": {"n": 3}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "x", "content": [{"text": "none"}]}}]},
    ),
    "Vercel": (
        {
            "role": "assistant",
            "content": [{"type": "tool-call", "toolCallId": "x", "toolName": "find", "args": {"n": 3}}],
        },
        {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "x", "result": "none"}]},
    ),
    "Hermes": (
        {"role": "assistant", "content": '<tool_call>{"name": "find", "arguments": {"n": 3}}</tool_call>'},
        {"role": "tool", "content": "<tool_response>\nnone\n</tool_response>"},
    ),
    "an answer of the user": (
        {"role": "assistant", "content": "", "tool_calls": [{"name": "find", "arguments": '{"n":3}'}]},
        {"role": "user", "content": "Tool output: none"},
    ),
}


@pytest.mark.parametrize("interface", INTERFACES)
def test_calls_of_other_interfaces_are_read(interface, tmp_path):
    messages = [{"role": "user", "content": "Find it."}, *INTERFACES[interface]]
    row = {"task_id": "t", "model": "alder", "success": False, "messages": messages}
    (tmp_path / "runs.jsonl").write_text(json.dumps(row))
    turns = evalkit.trajectories.KIND.transcript([str(tmp_path / "runs.jsonl")], read_log).turns
    [made] = seen(Transcript("", [], turns)).calls
    assert (made.name, made.arguments, made.result) == ("find", '{"n":3}', "none")


@pytest.mark.parametrize(
    ("answers", "results"),
    [
        ([("find", "1"), ("find", "2"), ("count", "3")], ["1", "2", "3"]),
        ([("count", "3"), ("find", "1"), ("find", "2")], ["1", "2", "3"]),
        ([("count", "3")], [None, None, "3"]),
        ([("find", "1"), ("other", "4")], ["1", None, None]),
        ([("find", "1"), ("find", "2"), ("default_api.count", "3")], ["1", "2", "3"]),
        ([(None, "1"), (None, "2")], ["1", "2", None]),
    ],
)
def test_results_without_ids_answer_calls_by_name_and_order(answers, results):
    earlier = {"role": "model", "parts": [{"functionCall": {"name": "count", "args": {}}}]}
    called = [{"functionCall": {"name": name, "args": {}}} for name in ("find", "find", "count")]
    answered = [{"functionResponse": {"name": name, "response": text}} for name, text in answers]
    given = [earlier, {"role": "model", "parts": called}, {"role": "user", "parts": answered}]
    unanswered, spoken, *others = chat_messages(given)
    assert [call.result for call in (*unanswered.calls, *spoken.calls)] == [None, *results]
    assert [(message.actor, message.text) for message in others] == [one for one in answers if one[0] == "other"]


def test_parts_around_a_result_are_messages_of_their_own():
    found = {"type": "fetch_result", "url": "https://a.example/n"}
    parts = [
        {"type": "text", "text": "I look it up."},
        {"type": "server_tool_use", "id": "x", "name": "web_fetch", "input": {"n": 3}},
        {"type": "web_fetch_tool_result", "tool_use_id": "x", "content": [found]},
        {"type": "text", "text": "It is 3."},
    ]
    usage = {"prompt_tokens": 7, "completion_tokens": 5}
    spoken = chat_messages([{"role": "assistant", "content": parts, "usage": usage}])
    assert [message.text for message in spoken] == ["I look it up.", "It is 3."]
    assert [message.tokens_in for message in spoken] == [7, None]
    assert [call.result for call in spoken[0].calls] == ["[fetch_result: https://a.example/n]"]


@pytest.mark.parametrize(
    "block",
    [
        "```python\nprint(3)\n```",
        "```\nx = 3\n```",
        "```diff\n-x\n```\n",
        "```bash\npip install x\n```",
        '{"name": "f", "arguments": {}}',
    ],
)
def test_code_in_an_answer_is_no_call(block, tmp_path):
    assert "cut_off" not in set(failures.events(chat(tmp_path, "How?", block))["event"])


@pytest.mark.parametrize(
    "answer", ['```json\n{"name": "Bob", "age": 3}\n```', '{"action": "Final Answer", "action_input": 3}']
)
def test_an_answer_in_json_is_no_call(answer, tmp_path):
    assert "cut_off" not in set(failures.events(chat(tmp_path, "Who is it?", answer))["event"])


ANSWERS = {
    "Code output:\nYou have reached Jill.\nDiscarded 2 coal.\nFailed to give coal to Jill, it was never received": True,
    "Don't have right tools to harvest gold_ore.": True,
    "Action output:\nbred is either not an item, or it does not have a crafting recipe!": True,
    "Could not find any wheat in 64 blocks.": True,
    "Command !take was given 1 args, but requires 2 args.": True,
    "Path not found, but attempting to navigate anyway.\nYou have reached Jill.": None,
    "No more oak_log nearby to collect.\nCollected 3 oak_log.": None,
    "Action output:\nCollected 2 wheat.": False,
    "INVENTORY\n- oak_log: 2": False,
    "Found 2 wheat.\nTypeError: bot is not defined": None,  # its text decides
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_first_or_last_line_of_the_game_tells_that_a_command_failed(answer, tmp_path):
    turns = [{"role": "assistant", "content": '!give("Jill", "coal")'}, {"role": "system", "content": answer}]
    path = tmp_path / "andy.json"
    path.write_text(json.dumps({"name": "andy", "turns": turns}))
    shown = evalkit.mindcraft.KIND.transcript([str(path)], read_log)
    assert shown.turns[0].call.has_failed is ANSWERS[answer]


MESSAGES = {  # a message from Jill, and whether Ada, who goes on acting in silence, should have answered
    "Where is the wheat?": True,
    "Please bring me 2 eggs": True,
    "I have 2 eggs.": False,
    "Nice!": False,
}


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_needs_an_answer_if_it_asks_for_something(message):
    heard = Turn("Jill → Ada", "user", message, agent="Ada", values={"from": "Jill", "words": message})
    acts = [Turn("Ada", "assistant", "!dig(1)", agent="Ada", values={"words": "", "acts": True})] * 3
    assert bool([*unanswered_message(seen(Transcript("", [], [heard, *acts])))]) is MESSAGES[message]


ITEMS = {
    ("bread", "chest_minecart"): {"chest_minecart"},
    ("bread", "stone_hoe"): {"stone_hoe"},
    ("bread", "bread"): set(),
    ("bread", "stone_pickaxe"): set(),
    ("bread", "bowl"): {"bowl"},
    ("rabbit_stew", "bowl"): set(),
    ("lantern", "torch"): set(),
    ("ladder", "hay_block"): {"hay_block"},
    ("oak_boat", "birch_boat"): {"birch_boat"},
    ("anvil", "iron_block"): set(),
    ("red_bed", "white_wool"): set(),
    ("lantern", "white_wool"): {"white_wool"},
    ("bread", "baked_potato"): set(),  # the goal names it
}


@pytest.mark.parametrize(("target", "made"), ITEMS)
def test_an_item_is_wrong_if_the_task_neither_asks_for_it_nor_names_it(target, made):
    call = Call("!craftRecipe", made, f"Successfully crafted {made}, you now have 1 {made}.")
    goal = Turn("andy", "system", "The goal: make what is asked for, or a baked potato.")
    turns = [goal, Turn("andy", "assistant", "!craftRecipe", call=call)]
    found = wrong_item(seen(Transcript("", [], turns), target))
    assert {item for _, item, _ in found} == ITEMS[target, made]


def test_what_is_smelted_is_not_what_is_made():
    call = Call("!smeltItem", "clay_ball", "Successfully smelted clay_ball, got 3 brick.")
    turns = [Turn("andy", "assistant", "!smeltItem", call=call)]
    assert not [*wrong_item(seen(Transcript("", [], turns), "flower_pot"))]


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ([["noop"], ["noop"]], []),
        ([["noop"], ["noop"], ["noop"]], ["3"]),
        ([["noop"] * 5, ["noop"] * 5], ["10"]),
        ([["noop", "do", "noop"], ["do", "noop", "noop"]], []),
        ([["sleep"] * 4], []),
    ],
)
def test_noops_in_a_row_are_counted_over_turns(turns, expected):
    shown = [Turn("agent", "action", "x", values={"actions": actions}) for actions in turns]
    assert [detail for _, detail, _ in repeated_noop(Transcript("", [], shown))] == expected


@pytest.mark.parametrize(("role", "events"), [("user", set()), ("assistant", {"repeated_call", "failed_call"})])
@pytest.mark.parametrize("name", ["", "Kim"])
def test_calls_of_a_simulated_user_are_no_events(tmp_path, role, events, name):
    chat = [{"role": "user", "content": "My line is dead."}]
    for n in range(4):
        asked = {"id": f"c{n}", "name": "reboot_router", "arguments": {}, "requestor": role}
        chat.append({"role": role, "name": name, "content": None, "tool_calls": [asked]})
        chat.append({"role": "tool", "id": f"c{n}", "content": "Error: no power", "requestor": role})
        chat.append({"role": "assistant", "content": "Please wait."})
    row = {"task": "router", "model": "m", "success": False, "messages": chat}
    (tmp_path / "runs.jsonl").write_text(json.dumps(row) + "\n")
    found = failures.events(evalkit.load(tmp_path))
    assert set(found["event"]) & {"repeated_call", "failed_call", "no_progress", "cycle"} == events
