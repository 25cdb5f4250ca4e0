"""Calls and results that logs hold as text only: in messages of chats, and in answers of the game."""

import json

import pytest

import evalkit
from evalkit import failures
from evalkit.crafter.events import repeated_noop
from evalkit.kinds import Call, Transcript, Turn, read_log
from evalkit.kinds.detectors import seen
from evalkit.mindcraft.events import wrong_item

WRITTEN = {  # a message with a call, the message with its result, and the name, arguments and result of the call
    "ReAct": ("I look.\nAction: find\nAction Input: {}", "Observation: none", ("find", "{}", "none")),
    "JSON in tags": ('<tool_call>{"name": "find", "arguments": {}}</tool_call>', "<tool_response>none</tool_response>",
                     ("find", "{}", "none")),
    "a named tag": ('Next.\n<tool name="find">{"a": 1}</tool>', "<tool_result>\nnone\n</tool_result>",
                    ("find", '{"a":1}', "none")),
    "a tag of a function": ("<function=find>{}</function>", "<function_results>none</function_results>",
                            ("find", "{}", "none")),
    "a tag that runs code": ("<execute_bash>ls</execute_bash>", "OBSERVATION:\na.py", ("execute_bash", "ls", "a.py")),
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
    "Action output:\nCollected 2 wheat.": None,
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_first_or_last_line_of_the_game_tells_that_a_command_failed(answer, tmp_path):
    turns = [{"role": "assistant", "content": '!give("Jill", "coal")'}, {"role": "system", "content": answer}]
    path = tmp_path / "andy.json"
    path.write_text(json.dumps({"name": "andy", "turns": turns}))
    shown = evalkit.mindcraft.KIND.transcript([str(path)], read_log)
    assert shown.turns[0].call.has_failed is ANSWERS[answer]


ITEMS = {
    ("bread", "chest_minecart"): {"chest_minecart"},
    ("bread", "stone_hoe"): {"stone_hoe"},
    ("bread", "bread"): set(),
    ("bread", "stone_pickaxe"): set(),
    ("bread", "bowl"): {"bowl"},
    ("rabbit_stew", "bowl"): set(),
    ("bread", "baked_potato"): set(),  # the goal names it
}


@pytest.mark.parametrize(("target", "made"), ITEMS)
def test_an_item_is_wrong_if_the_task_neither_asks_for_it_nor_names_it(target, made):
    call = Call("!craftRecipe", made, f"Successfully crafted {made}, you now have 1 {made}.")
    goal = Turn("andy", "system", "The goal: make what is asked for, or a baked potato.")
    turns = [goal, Turn("andy", "assistant", "!craftRecipe", call=call)]
    found = wrong_item(seen(Transcript("", [], turns), target))
    assert {item for _, item, _ in found} == ITEMS[target, made]


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
