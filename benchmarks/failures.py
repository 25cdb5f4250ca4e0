"""Precision and recall of detectors of events, on logs with planted causes: ``python -m benchmarks.failures``.

The benchmark generates runs of every kind. Most have one planted cause, and all have noise and healthy events that look
like causes. An event counts once per run. Detectors compare with two constant ones: ``never`` finds nothing, and
``always`` finds the event in every run, so its precision is the share of runs with the cause, and its recall is 1.

    python -m benchmarks.failures                              # print the tables; takes some seconds
    python -m benchmarks.failures --output docs/failures.md    # write them into the page, after a comment
    python -m benchmarks.failures --null 300                   # rates of false and of true claims of contrasts
    python -m benchmarks.failures --speed 20000                # time relative to reading the same runs
"""

import argparse
import itertools
import json
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import evalkit
from evalkit.failures.contrasts import contrast_of

MARK = "<!-- what follows is written by benchmarks/failures.py -->"
Messages = list[dict[str, Any]]
ERRORS = (
    "Error: order {n} was not found",
    '{{"error": "user {n} is not known", "code": 404}}',
    "Traceback (most recent call last):\n  File \"/app/tools.py\", line {n}, in run\nKeyError: 'order_{n}'",
    "Request timed out after {n} seconds",
    "HTTP 503 Service Unavailable (request {n})",
    "bash: pip{n}: command not found",
    "tool exited with code {n}",
    '{{"is_error": true, "message": "permission denied for item {n}"}}',
    '{{"success": false, "reason": "quota of {n} is used up"}}',
    "Invalid order number: {n}",
    "No such customer: {n}",
    "No invoice found with id {n}",
    "Item {n} is out of stock",
    "Return {n} has been already booked",
    "Internal error {n}, please call us",
    '{{"result": "{{\\"error\\": \\"order {n} is closed\\"}}"}}',
    '{{"type": "text", "value": "Error: order {n} is closed"}}',
)
SAFE = (
    "0 errors found in {n} files",
    '{{"error": null, "items": [{n}]}}',
    "exit code: 0\nchecked {n} lines",
    "The log of {n} May mentions an error that was fixed.",
    "Found {n} results",
    '{{"status": 200, "total": {n}}}',
    "Order {n}: failed deliveries 0, open claims 0",
    "Invalid orders: {n}",
    "No invoices found for customer {n}",
    "Item {n} is available, {n} are in stock",
    "The customer could not be reached; note {n} was left.",
    '{{"result": "{{\\"error\\": null, \\"n\\": {n}}}"}}',
)


class Chat:
    """A builder of conversations with unique noise."""

    def __init__(self, rng: random.Random, *, is_code: bool) -> None:
        self.rng = rng
        self.is_code = is_code
        self.messages = Messages()
        self.numbers = itertools.count(rng.randrange(100, 900))
        self.has_failed = False
        self.style = rng.choice(("ids", "no ids", "react"))
        self.say("system", "You are an agent. Use the tools.")
        self.say("user", "Please fix the failing function." if is_code else "Please change my order.")

    def say(self, role: str, text: str) -> None:
        """Add a message."""
        self.messages.append({"role": role, "content": text})

    def call(self, name: str, arguments: dict[str, Any], result: str | None) -> None:
        """Add a tool call, and its result unless that is None."""
        number = f"call_{next(self.numbers)}"
        if self.style == "react" and not self.is_code:
            self.say("assistant", f"I look further.\nAction: {name}\nAction Input: {json.dumps(arguments)}")
            if result is not None:
                self.say("user", f"Observation: {result}")
            return
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"id": number, "type": "function", "function": function}
        self.messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        if result is not None:
            answer = {"role": "tool", "content": result}
            self.messages.append(answer | ({"tool_call_id": number} if self.style == "ids" else {"name": name}))

    def bash(self, command: str, result: str | None) -> None:
        """Add a call of bash."""
        self.call("bash", {"command": command}, result)

    def n(self) -> int:
        """Return a number that was not used before."""
        return next(self.numbers)

    def noise(self) -> None:
        """Add one healthy event of a type that any run may have."""
        n = self.n()
        kind = self.rng.randrange(8)
        if kind == 0:  # a retry that succeeds
            self.has_failed = True
            query = {"query": f"item {n}"}
            self.call("search", query, "Error: connection reset, try again")
            self.call("search", query, f"Found item {n}")
        elif kind == 1:  # polling with changing results
            for share in (10, 40, 70, 100):
                self.call("get_status", {"job": n}, f"job {n}: {share} % done")
        elif kind == 2:
            self.say("assistant", f"I look at point {n} next.")
            self.say("user", f"Fine, go on with {n}.")
        elif kind == 3:  # results that only acknowledge a call
            for _ in range(3):
                self.call("log_note", {"note": f"note {self.n()}"}, "ok")
        elif kind == 4:  # polling with pauses
            for state in ("queued", "queued", "queued", f"{n} is ready"):
                self.call("wait", {"seconds": 30}, "ok")
                self.call("get_status", {"job": n}, state)
        else:
            self.call("lookup", {"key": n}, self.rng.choice(SAFE).format(n=n))

    def work(self) -> None:
        """Do the task in a healthy way."""
        if self.is_code:
            n = self.n()
            self.bash(f"cat src/mod_{n}.py", f"def f_{n}(): return {n}")
            old, new = f"return {n}", f"return {n + 1}"
            edit = {"path": f"src/mod_{n}.py", "old_str": old, "new_str": new}
            self.call(
                "str_replace_editor", {"command": "str_replace", **edit}, f"The file src/mod_{n}.py has been edited."
            )
            self.bash(f"cat src/mod_{n}.py", f"def f_{n}(): return {n + 1}")
            self.bash("python -m pytest -q", f"{n} passed in 0.{n}s")
        else:
            self.call("update_order", {"order": self.n()}, f"order updated, total {self.n()}")

    def end(self) -> None:
        """Give the final answer."""
        what = "The function returns the right value now" if self.is_code else "Your order has changed"
        self.say("assistant", f"{what}.")

    def finish(self) -> None:
        """Do the task, and give the final answer."""
        self.work()
        self.end()


def failing(chat: Chat) -> str:
    """Return the result of a failed call."""
    return chat.rng.choice(ERRORS).format(n=chat.n() % 90 + 1)


# Each of these functions plants a cause in a conversation, instead of healthy work and a healthy end. It returns the
# events that detectors should find
def repeated_call(chat: Chat) -> set[str]:
    """Repeat a call that has the same result each time."""
    n = chat.n()
    for i in range(chat.rng.randint(3, 15)):
        chat.call("get_order", {"order": n}, f"order {n} is open")
        if i == 1 and chat.rng.random() < 0.5:
            chat.noise()
    chat.finish()
    return {"repeated_call"}


def cycle(chat: Chat) -> set[str]:
    """Alternate between two or three calls."""
    steps = [chat.n() for _ in range(chat.rng.choice((2, 3)))]
    for _ in range(chat.rng.randint(3, 7)):
        for n in steps:
            chat.call("get_item", {"item": n}, f"item {n} is in stock")
    chat.finish()
    return {"cycle", "repeated_call"}


def failed_call(chat: Chat) -> set[str]:
    """Make a call that fails."""
    chat.call("get_order", {"order": chat.n()}, failing(chat))
    chat.call("get_item", {"item": chat.n()}, f"item {chat.n()}")
    chat.finish()
    return {"failed_call"}


def unknown_tool(chat: Chat) -> set[str]:
    """Call a tool that does not exist."""
    name = chat.rng.choice(("get_weather", "fly", "delete_all"))
    texts = (
        "Unknown tool: {}",
        "Error: tool '{}' not found",
        "Tool {} does not exist.",
        "{} is not a valid tool, try one of a, b",
        "Function not found: {}",
        "Tool {} not available. Available tools: a, b",
        "{} is not in the list of known functions",
    )
    chat.call(name, {}, chat.rng.choice(("", "Error: ")) + chat.rng.choice(texts).format(name))
    chat.finish()
    return {"unknown_tool", "failed_call"}


def ignored_again(chat: Chat) -> set[str]:
    """Make a failed call again, unchanged."""
    n, text = chat.n(), failing(chat)
    for _ in range(2):
        chat.call("get_order", {"order": n}, text)
    chat.finish()
    return {"ignored_error", "failed_call"}


def ignored_claim(chat: Chat) -> set[str]:
    """Claim success after a failed call."""
    chat.call("refund", {"order": chat.n()}, failing(chat))
    texts = (
        "Your refund has been processed successfully.",
        "Done! The order is updated.",
        "All done, the task is complete.",
        "Everything is set, you get your money on Monday.",
        "The order is now on hold.",
        "Your card has been unlocked.",
        "Mission accomplished!",
    )
    chat.say("assistant", chat.rng.choice(texts))
    return {"ignored_error", "failed_call"}


def admitted(chat: Chat) -> set[str]:
    """Admit that a call failed, which is healthy."""
    chat.call("refund", {"order": chat.n()}, failing(chat))
    texts = (
        "I am sorry, the refund could not be completed.",
        "Only orders that are confirmed can be refunded.",
        "Your delivery is scheduled for Monday.",
    )
    chat.say("assistant", chat.rng.choice(texts))
    return {"failed_call"}


def no_progress(chat: Chat) -> set[str]:
    """Make different calls that all have the same result."""
    for _ in range(chat.rng.randint(10, 16)):
        chat.call("search", {"query": f"words {chat.n()}"}, "No results.")
    chat.end()
    return {"no_progress"}


def cut_off(chat: Chat) -> set[str]:
    """End with a call."""
    chat.call("get_order", {"order": chat.n()}, chat.rng.choice((None, f"order {chat.n()} is open")))
    return {"cut_off"}


def empty_answer(chat: Chat) -> set[str]:
    """End with an empty answer."""
    chat.work()
    chat.say("assistant", chat.rng.choice(("", " ", "None")))
    return {"empty_answer"}


def limit_reached(chat: Chat) -> set[str]:
    """Be stopped by a limit."""
    chat.work()
    texts = (
        "Maximum number of steps reached.",
        "Token limit exceeded.",
        "Stopped: max_turns reached",
        "The time limit was reached.",
    )
    chat.say("system", chat.rng.choice(texts))
    return {"limit_reached", "cut_off"}


def late_first_action(chat: Chat) -> set[str]:
    """Talk for long before the first call."""
    chat.messages = chat.messages[:2]
    for _ in range(chat.rng.randint(6, 10)):
        chat.say("assistant", f"Let me think about point {chat.n()}.")
        chat.say("user", f"Go on, {chat.n()}.")
    chat.finish()
    return {"late_first_action"}


def wrong_answer_form(chat: Chat) -> set[str]:
    """Answer in a different form than requested."""
    forms = (
        "Put the result in \\boxed{}.",
        "Answer with a single letter only.",
        "End with the line 'FINAL ANSWER: x'.",
    )
    chat.messages[1]["content"] += " " + chat.rng.choice((*forms, "Respond with valid JSON only."))
    chat.work()
    chat.say("assistant", "I believe that the second one is the better choice here")
    return {"wrong_answer_form"}


def right_answer_form(chat: Chat) -> set[str]:
    """Answer in the requested form, which is healthy."""
    forms = {"Put the result in \\boxed{}.": "It is \\boxed{4}.", "Answer with a single letter only.": "B"}
    asked, answer = chat.rng.choice(list(forms.items()))
    chat.messages[1]["content"] += " " + asked
    chat.work()
    chat.say("assistant", answer)
    return set()


def healthy(chat: Chat) -> set[str]:
    """Do the task."""
    chat.finish()
    return set()


def test_not_run(chat: Chat) -> set[str]:
    """Edit a file after the last test."""
    n = chat.n()
    chat.bash("python -m pytest -q", f"{n} failed")
    chat.call(
        "str_replace_editor", {"command": "create", "path": f"src/m{n}.py", "file_text": f"x = {n}"}, "File created."
    )
    chat.end()
    return {"test_not_run"}


def edit_undone(chat: Chat) -> set[str]:
    """Undo an edit."""
    n = chat.n()
    path = f"src/mod_{n}.py"
    chat.call("edit_file", {"path": path, "old_str": f"a = {n}", "new_str": f"b = {n}"}, "edited")
    if chat.rng.random() < 0.5:
        chat.bash(f"git checkout -- {path}", "")
    else:
        chat.call("edit_file", {"path": path, "old_str": f"b = {n}", "new_str": f"a = {n}"}, "edited")
    chat.finish()
    return {"edit_undone"}


def file_read_again(chat: Chat) -> set[str]:
    """Read a file twice."""
    n = chat.n()
    for _ in range(2):
        chat.bash(f"cat src/part_{n}.py", f"y = {n}")
        chat.noise()
    chat.finish()
    return {"file_read_again"}


def submitted_unchanged(chat: Chat) -> set[str]:
    """Submit without having edited anything."""
    chat.bash("ls src", f"a.py b.py {chat.n()}")
    chat.call("submit", {}, "submitted")
    return {"submitted_unchanged"}


def call_not_understood(chat: Chat) -> set[str]:
    """Write several steps in one message."""
    n = chat.n()
    step = f"Action: get_order\nAction Input: {n}\nObservation: order {n} is open\n"
    chat.say("assistant", f"{step * 2}Final Answer: The order is open.")
    return {"call_not_understood"}


Plant = Callable[[Chat], set[str]]
OF_CHATS: tuple[Plant, ...] = (
    *(repeated_call, cycle, failed_call, unknown_tool, ignored_again, ignored_claim, admitted, no_progress, cut_off),
    *(empty_answer, limit_reached, late_first_action, wrong_answer_form, right_answer_form, healthy, healthy),
    call_not_understood,
)
OF_CODE: tuple[Plant, ...] = (test_not_run, edit_undone, file_read_again, submitted_unchanged, repeated_call, healthy)


def chats(rng: random.Random, folder: Path, n: int) -> dict[str, set[str]]:
    """Write a table of chats, and return the planted events of each task."""
    truth, rows = {}, []
    for i in range(n):
        is_code = i % 4 == 0
        chat = Chat(rng, is_code=is_code)
        plant = rng.choice(OF_CODE if is_code else OF_CHATS)
        for _ in range(0 if plant is late_first_action else rng.randint(1, 4)):
            chat.noise()
        task = f"task-{i}"
        truth[task] = plant(chat) | ({"failed_call"} if chat.has_failed else set())
        rows.append({"task_id": task, "model": rng.choice(("alder", "birch")), "success": rng.random() < 0.5})
        rows[-1]["messages"] = chat.messages
    (folder / "runs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return truth


def simulations(rng: random.Random, folder: Path, n: int) -> dict[str, set[str]]:
    """Write simulations of tau2-bench, and return the planted events of each task."""
    truth, runs = {}, []
    for i in range(n):
        chat = Chat(rng, is_code=False)
        chat.style = "ids"
        plant = rng.choice(
            [one for one in OF_CHATS if one not in (limit_reached, wrong_answer_form, right_answer_form)]
        )
        for _ in range(0 if plant is late_first_action else rng.randint(1, 4)):
            chat.noise()
        own, reason = plant(chat) | ({"failed_call"} if chat.has_failed else set()), "user_stop"
        if plant is healthy and rng.random() < 0.5:
            own, reason = own | {"limit_reached"}, rng.choice(("max_steps", "timeout", "too_many_errors"))
        if plant not in (cut_off, empty_answer):
            chat.say("user", "Thank you. ###STOP###")
        messages = []
        for message in chat.messages[1:]:
            message = {**message, "turn_idx": len(messages)}
            calls = message.pop("tool_calls", None)
            if calls:
                function = calls[0]["function"]
                arguments = json.loads(function["arguments"])
                message["tool_calls"] = [{"id": calls[0]["id"], "name": function["name"], "arguments": arguments}]
            if "tool_call_id" in message:
                message["id"] = message.pop("tool_call_id")
            messages.append(message)
        task = f"task-{i}"
        truth[task] = own
        reward = {"reward": float(rng.random() < 0.5)}
        one = {"id": f"sim-{i}", "task_id": task, "trial": 0, "termination_reason": reason, "reward_info": reward}
        runs.append(one | {"messages": messages, "start_time": "2025-06-01T10:00:00"})
    info = {"num_trials": 1, "agent_info": {"llm": "alder"}, "environment_info": {"domain_name": "retail"}}
    results = {"info": info, "tasks": [{"id": task} for task in truth], "simulations": runs}
    (folder / "results.json").write_text(json.dumps(results))
    return truth


def mindcraft(rng: random.Random, folder: Path, n: int) -> dict[str, set[str]]:
    """Write logs of two agents per task run, and return the planted events of each task."""
    truth = {}
    numbers = itertools.count(1)

    def one(i: int) -> None:
        task = f"multiagent_crafting_bookshelf_{i}"
        a, b = Messages(), Messages()

        def say(log: Messages, role: str, text: str) -> None:
            log.append({"role": role, "content": text})

        def act(log: Messages, command: str, answer: str) -> None:
            say(log, "assistant", command)
            say(log, "system", answer)

        def tell(sender: Messages, receiver: Messages, name: str, text: str) -> None:
            say(sender, "assistant", text)
            say(receiver, "user", f"{name}: (FROM OTHER BOT){text}")

        def noise(log: Messages) -> None:
            k = next(numbers)
            choice = rng.randrange(3)
            if choice == 0:  # a retry that succeeds
                own.add("failed_call")
                act(log, f'!goToPlayer("Bob_{k}", 3)', f"Failed to reach Bob_{k}.")
                act(log, f'!goToPlayer("Bob_{k}", 3)', f"You have reached Bob_{k}.")
            elif choice == 1:
                act(log, "!inventory", f"INVENTORY\n- oak_log: {k}")
            else:
                act(log, f'!collectBlocks("oak_log", {k})', f"Collected {k} oak_log.")

        causes = "repeated_call cycle failed_call unknown_tool ignored_error no_progress plan_not_started waiting"
        causes += " unanswered_message recipe_asked recipe_told wrong_item death restart limit_reached"
        causes += " late_first_action healthy healthy healthy"
        cause = rng.choice(causes.split())
        own = {cause} - {"healthy"}
        if cause not in ("plan_not_started", "late_first_action"):
            noise(a)
        if cause not in ("unanswered_message", "late_first_action"):
            said = (
                "we meet at {}",
                "I need 3 paper from chest {}",
                "it takes {} minutes to get there",
                "I made {} planks",
            )
            tell(a, b, "Andy", f"Hello Jill, {rng.choice(said).format(next(numbers))}.")
            tell(b, a, "Jill", f"Hello Andy, I am at {next(numbers)}.")
            noise(b)
        k = next(numbers)
        if cause == "repeated_call":
            for _ in range(rng.randint(3, 9)):
                act(a, f'!collectBlocks("reed_{k}", 2)', f"Found nothing of reed_{k}.")
        elif cause == "cycle":
            own |= {"repeated_call"}
            for _ in range(rng.randint(3, 5)):
                act(a, f'!goToPlayer("Jill_{k}", 3)', f"You have reached Jill_{k}.")
                act(a, f'!givePlayer("Jill_{k}", "stick", 1)', f"Jill_{k} has turned away.")
        elif cause == "failed_call":
            texts = (
                "Failed to collect {}.",
                "Invalid item type: {}.",
                "Could not find any {} to collect.",
                "You do not have {}.",
            )
            before = "Code output:\n" if k % 2 else ""
            act(a, f'!collectBlocks("thing_{k}", 2)', before + rng.choice(texts).format(f"thing_{k}"))
        elif cause == "unknown_tool":
            act(a, f"!dance({k})", "Command !dance does not exist.")
            own |= {"failed_call"}
        elif cause == "ignored_error":
            for _ in range(2):
                act(a, f'!collectBlocks("thing_{k}", 2)', f"Failed to collect thing_{k}.")
            own |= {"failed_call"}
        elif cause == "no_progress":
            for _ in range(11):
                act(a, f'!collectBlocks("thing_{next(numbers)}", 2)', "The way is long.")
        elif cause == "plan_not_started":
            a.clear()
            tell(a, b, "Andy", "Let's make a plan: I will collect logs and you craft planks.")
            tell(b, a, "Jill", "Good.")
            say(a, "assistant", "Very good, so we have it.")
        elif cause == "waiting":
            for _ in range(3):
                say(a, "assistant", rng.choice(("I'll wait for you here.", "Waiting for Jill.", "!stay(30)")))
        elif cause == "unanswered_message":
            for _ in range(rng.randint(1, 2)):
                tell(b, a, "Jill", f"Andy, where are you? I need {next(numbers)} logs.")
            noise(a)
            noise(a)
        elif cause == "recipe_asked":
            asked = ("Do you have the recipe for a bookshelf?", "How do I craft a bookshelf?")
            tell(
                a,
                b,
                "Andy",
                rng.choice((*asked, "How many planks does a bookshelf need?", "I don't know how to make it.")),
            )
            tell(b, a, "Jill", "I have to look.")
        elif cause == "recipe_told":
            recipes = (
                "You need 6 oak_planks and 3 books for it.",
                "The recipe is 6 planks, 3 books.",
                "A book requires 3 paper.",
                "It takes 3 paper to make a book.",
                "Books are made of 3 paper.",
                "You need 3 paper to craft a book.",
            )
            tell(a, b, "Andy", rng.choice(recipes))
            tell(b, a, "Jill", "Understood.")
        elif cause == "wrong_item":
            item = rng.choice(("cake", "snow_block", "white_wool", "birch_boat"))
            act(a, f'!craftRecipe("{item}", 1)', f"Successfully crafted {item}, you now have 1 {item}.")
        elif cause == "death":
            say(a, "system", f"You died at position x: {k}, y: 64, z: 2.")
        elif cause == "restart":
            say(a, "system", "Agent process restarted.")
        elif cause == "late_first_action":
            for _ in range(6):
                tell(a, b, "Andy", f"The weather at {next(numbers)} is fine.")
                tell(b, a, "Jill", f"It is {next(numbers)} o'clock.")
            noise(a)
            noise(b)
        if cause not in ("plan_not_started", "unanswered_message"):
            act(a, '!craftRecipe("oak_planks", 4)', f"Successfully crafted oak_planks, you now have {k} oak_planks.")
        if cause == "limit_reached":
            say(a, "system", "Task timeout reached ended with code : 4")
        else:
            say(a, "system", f"Task ended with score : {rng.randint(0, 1)}")
        truth[task] = own
        place = folder / rng.choice(("alder", "birch")) / task
        place.mkdir(parents=True)
        for name, log in (("Andy_0", a), ("Jill_0", b)):
            (place / f"{name}.json").write_text(json.dumps({"turns": log, "taskStart": i * 1000}))

    for i in range(n):
        one(i)
    target = {"type": "techtree", "goal": "make a bookshelf", "target": "bookshelf", "agent_count": 2}
    (folder.parent / "tasks.json").write_text(json.dumps(dict.fromkeys(truth, target)))
    return truth


def crafter(rng: random.Random, folder: Path, n: int) -> dict[str, set[str]]:
    """Write session traces, and return the planted events of each file."""
    truth = {}
    names = ("noop", "move_left", "move_right", "move_up", "move_down", "do", "sleep")

    def one(i: int) -> None:
        cause = rng.choice(
            ["invalid_action", "low_health_end", "no_unlock", "repeated_noop", "repeated_call", "healthy", "healthy"]
        )
        events = []
        place = [32, 32]
        turn = itertools.count()

        def play(action: str, *, moves: bool = True, invalid: bool = False, health: int = 9, unlocks: str = "") -> None:
            if moves:
                place[0] += 1
            number = next(turn)
            shown = {"inventory": {"health": health, "food": 9}, "player_position": list(place)}
            why = {"action": action, "reason": "Expected position change [1, 0], got [0, 0]"}
            hooks = [{"hook_name": "invalid_action", "data": why, "code": "", "priority": 1}] if invalid else []
            states = {"system_state_after": {"observation": shown}}
            about = {"turn": number, "action_names": [action]}
            events.append({"actions": [names.index(action)], "metadata": about, "event_metadata": hooks, **states})
            got = [{"hook_name": "easy_achievement", "data": {"achievements": [unlocks]}, "code": "", "priority": 1}]
            hooks = got if unlocks else []
            public = {"system_state_after": {"public_state": shown}}
            events.append({"reward": 0.0, "metadata": {"turn": number}, "event_metadata": hooks, **public})

        own = {cause} - {"healthy"}
        for _ in range(rng.randint(3, 8)):
            play(rng.choice(names[1:5]))
        play("noop", moves=False)
        if cause != "no_unlock":
            play("do", unlocks="collect_wood")
        if cause == "invalid_action":
            play("move_left", moves=False, invalid=True)
            own |= {"failed_call"}
        elif cause == "repeated_noop":
            for _ in range(rng.randint(3, 6)):
                play("noop", moves=False)
        elif cause == "repeated_call":
            for _ in range(rng.randint(3, 6)):
                play("do", moves=False)
        play("move_left", health=2 if cause == "low_health_end" else rng.randint(4, 9))
        name = f"session_crafter_episode_{i}.json"
        truth[name] = own
        about = {"metadata_type": "episode_config", "data": {"model_name": "alder", "instance_num": i}, "timestamp": ""}
        trace = {"session_id": f"s{i}", "session_metadata": [about], "message_history": [], "event_history": events}
        (folder / name).write_text(json.dumps(trace | {"created_at": f"2025-07-01T00:00:{i % 60:02d}"}))

    for i in range(n):
        one(i)
    return truth


def steps(rng: random.Random, folder: Path, n: int) -> dict[str, set[str]]:
    """Write histories of steps, and return the planted events of each folder."""
    truth = {}
    numbers = itertools.count(100)

    def one(i: int) -> None:
        causes = "repeated_call cycle failed_call no_progress silent_failure result_cut parameter_not_given"
        cause = rng.choice([*causes.split(), "retry_unchanged", "healthy", "healthy", "healthy"])
        records: Messages = []

        def step(name: str, given: dict[str, Any], result: str | None, error: str | None = None) -> None:
            when = f"2025-08-{1 + i % 28:02d}T{i % 24:02d}:{len(records) // 60:02d}:{len(records) % 60:02d}"
            about = {"timestamp": when, "function_name": name, "parameters": given, "success": error is None}
            records.append(about | {"error": error, "result_summary": result})

        def find(k: int) -> str:
            return f"group_to_cell_type = {{'0': 'T cell {k}', '1': 'B cell {k}'}}"

        own = {cause} - {"healthy"}
        for _ in range(rng.randint(2, 6)):
            k = next(numbers)
            step("process_cells", {"cell_type": f"cell {k}"}, find(k))
        k = next(numbers)
        if rng.random() < 0.3:  # a retry that succeeds
            step("process_cells", {"cell_type": f"odd {k}"}, None, f"connection to {k} was lost")
            step("process_cells", {"cell_type": f"odd {k}"}, find(k))
            own |= {"failed_call"}
        if cause == "repeated_call":
            for _ in range(rng.randint(3, 9)):
                step("search_notes", {"query": f"note {k}"}, f"note {k}: cells are fine")
        elif cause == "cycle":
            own |= {"repeated_call"}
            for _ in range(4):
                step("search_notes", {"query": f"note {k}"}, f"note {k}: cells are fine")
                step("list_cells", {"cell_type": f"note {k}"}, f"cells of {k}")
        elif cause == "failed_call":
            step("process_cells", {"cell_type": f"x {k}"}, None, f"No cells of type 'x {k}' found in the data")
        elif cause == "no_progress":
            for _ in range(11):
                step("search_notes", {"query": f"note {next(numbers)}"}, "there are no such notes")
        elif cause == "silent_failure":
            step("process_cells", {"cell_type": f"x {k}"}, f"Process cells failed: no markers for {k}")
        elif cause == "result_cut":
            step("search_notes", {"query": f"note {k}"}, (f"note {k} says that " * 60)[:500])
        elif cause == "parameter_not_given":
            texts = (
                "f() missing 1 required positional argument: 'cell_type'",
                "Required parameter 'cell_type' is missing",
            )
            step("dea_split_by_condition", {"n": k}, None, rng.choice((*texts, "cell_type must be provided")))
            own |= {"failed_call"}
        elif cause == "retry_unchanged":
            for _ in range(rng.choice((2, 43))):
                step("process_cells", {"cell_type": f"x {k}"}, None, f"object {k} has no attribute 'shape'")
            own |= {"failed_call", "ignored_error"} | ({"repeated_call"} if len(records) > 40 else set())
        k = next(numbers)
        step("process_cells", {"cell_type": f"cell {k}"}, find(k))
        place = folder / f"run_{i}"
        place.mkdir()
        truth[f"run_{i}"] = own
        (place / "execution_history.json").write_text(json.dumps(records))

    for i in range(n):
        one(i)
    return truth


KINDS: dict[str, tuple[str, Callable[[random.Random, Path, int], dict[str, set[str]]]]] = {
    "tables of chats": ("trajectories", chats),
    "simulations": ("trajectories", simulations),
    "Mindcraft logs": ("mindcraft", mindcraft),
    "Crafter traces": ("crafter", crafter),
    "step histories": ("steps", steps),
}


def measured(name: str, n: int, seed: int) -> tuple[pd.DataFrame, list[tuple[str, str, str]]]:
    """Return the precision and recall of each detector on planted runs, and the runs in which it is wrong."""
    kind, make = KINDS[name]
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root) / "logs"
        folder.mkdir()
        truth = make(random.Random(seed), folder, n)
        given = {"tasks": [root + "/tasks.json"]} if kind == "mindcraft" else {}
        logs = evalkit.load(folder, kind, **given)
        found = evalkit.failures.events(logs).groupby("run_id")["event"].agg(set)
        of_run = {}
        for run in logs.runs.to_dict("records"):
            source = Path(run["source"])
            key = {"crafter": source.name, "steps": source.parent.name}.get(kind, run["task_id"])
            of_run[key] = found.get(run["run_id"], set()), run["run_id"]
        assert of_run.keys() == truth.keys(), "a run is missing"
    rows, wrong = [], []
    for event in sorted(set().union(*truth.values())):
        true = {key for key, events in truth.items() if event in events}
        said = {key for key, (events, _) in of_run.items() if event in events}
        wrong += [(event, key, "missed" if key in true else "wrong") for key in true ^ said]
        precision = len(true & said) / len(said) if said else np.nan
        rows.append((name, event, len(truth), len(true), precision, len(true & said) / len(true)))
    columns = ["logs", "event", "runs", "planted", "precision", "recall"]
    return pd.DataFrame(rows, columns=columns), wrong


def contrast_of_made(
    rng: np.random.Generator, tasks: int, runs: int, shares: tuple[float, ...] = (), models: int = 1
) -> pd.DataFrame:
    """Return the contrast of 12 events in simulated runs of tasks that differ in difficulty.

    Some events are rare and some are frequent, and the events of a run are correlated. Each model has `runs` runs of
    each task. Models differ in their rates of success and of events. `shares` are the shares of failed and of
    successful runs with the first event. All other events, and without `shares` the first event too, are independent of
    the outcomes of a given model.
    """
    n = tasks * models * runs
    unit = np.repeat(np.arange(tasks), models * runs)
    model = np.tile(np.repeat(np.arange(models), runs), tasks)
    skill = np.linspace(-0.35, 0.35, models) if models > 1 else np.zeros(1)
    failed = rng.random(n) > np.clip(rng.uniform(0.1, 0.9, tasks)[unit] + skill[model], 0.03, 0.97)
    table = pd.DataFrame({"run_id": [f"r{i}" for i in range(n)], "unit": unit, "model_name": model, "failed": failed})
    common = rng.random(n)  # shared by the events of a run, to correlate them
    found = []
    for event in range(12):
        rate = rng.choice([0.02, 0.1, 0.3, 0.6]) * rng.uniform(0.2, 1.5, tasks)[unit]
        if models > 1:
            rate = rate * rng.uniform(0.2, 1.8, models)[model]
        if shares and event == 0:
            rate = np.where(failed, *shares)
        drawn = np.where(rng.random(n) < 0.5, common, rng.random(n))
        found.append(pd.DataFrame({"run_id": table.loc[drawn < rate, "run_id"], "event": f"e{event}"}))
    return contrast_of(table, pd.concat(found), {f"e{i}": "" for i in range(12)})


def null(samples: int, seed: int, models: int = 1) -> tuple[int, int]:
    """Return in how many samples a contrast claims anything, although no event relates to a model's outcomes."""
    rng = np.random.default_rng(seed)
    claims = 0
    for _ in range(samples):
        tasks, runs = int(rng.integers(6, 51)), int(rng.integers(4, 41))
        if models > 1:
            runs = int(rng.integers(1, 11))
        claims += bool(contrast_of_made(rng, tasks, runs, (), models)["decided"].any())
    return claims, samples


POWER: tuple[tuple[int, int, float, float, int], ...] = (  # tasks, runs per task, shares with the event, models
    (8, 30, 0.8, 0.1, 1),
    (6, 20, 0.9, 0.05, 1),
    (10, 20, 0.7, 0.2, 1),
    (10, 10, 0.9, 0.1, 1),
    (20, 40, 0.35, 0.15, 1),
    (20, 10, 0.6, 0.2, 1),
    (20, 4, 0.6, 0.2, 1),
    (50, 4, 0.6, 0.2, 1),
    (20, 5, 0.6, 0.2, 2),
    (12, 10, 0.7, 0.2, 2),
    (50, 2, 0.7, 0.2, 4),
    (50, 1, 0.7, 0.2, 4),
    (100, 1, 0.6, 0.2, 4),
    (100, 1, 0.7, 0.2, 2),
)


def power(samples: int, seed: int, tasks: int, runs: int, failed: float, successful: float, models: int) -> int:
    """Return in how many samples a contrast claims an event that has these shares of failed and successful runs."""
    rng = np.random.default_rng(seed)
    claims = 0
    for _ in range(samples):
        table = contrast_of_made(rng, tasks, runs, (failed, successful), models)
        claims += bool((table["decided"] & (table["event"] == "e0") & (table["low"] > 0)).any())
    return claims


def cpu_time() -> float:
    """Return the processor time of this process and its child processes, in seconds."""
    return sum(os.times()[:4])


def speed(name: str, n: int) -> str:
    """Describe the times of finding the events and failure modes of small runs, as multiples of reading the runs.

    Times are processor times of all processes, with the cache on: both steps store their results. Elapsed times depend
    on the number of processes: one process reads a single file, but several search 2,000 runs or more.
    """
    kind, make = KINDS[name]
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root) / "logs"
        folder.mkdir()
        make(random.Random(1), folder, n)
        start, began = cpu_time(), time.monotonic()
        logs = evalkit.load(folder, kind)
        read, read_elapsed = cpu_time() - start, time.monotonic() - began
        start, began = cpu_time(), time.monotonic()
        evalkit.failures.modes(logs)
        searched, searched_elapsed = cpu_time() - start, time.monotonic() - began
        logs = evalkit.load(folder, kind)
        start = cpu_time()
        evalkit.failures.modes(logs)
        again = cpu_time() - start
    ratio = f"{searched / read:.2f} and, nothing changed, {again / read:.2f} times that"
    elapsed = f"elapsed {read_elapsed:.1f} s and {searched_elapsed / read_elapsed:.2f} times that"
    return f"{n:,} runs of {name}: reading {read:.1f} s; events and modes {ratio}; {elapsed}"


def tables(n: int, seed: int) -> Iterator[str]:
    """Yield the lines of the tables."""
    yield "| logs | event | runs | planted | precision | recall | precision of always |"
    yield "|---|---|---|---|---|---|---|"
    for name in KINDS:
        table, _ = measured(name, n, seed)
        for row in table.to_dict("records"):
            share = f"{row['planted'] / row['runs']:.2f}"
            values = f"{row['runs']} | {row['planted']} | {row['precision']:.3f} | {row['recall']:.3f} | {share}"
            yield f"| {name} | `{row['event']}` | {values} |"


def main() -> None:
    """Print or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=400, help="of each kind of logs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--null", type=int, default=0, metavar="SAMPLES")
    parser.add_argument("--speed", type=int, default=0, metavar="RUNS")
    parser.add_argument("--wrong", action="store_true", help="print the runs in which detectors are wrong")
    options = parser.parse_args()
    if options.null:
        for models in (1, 2, 4):
            claims, samples = null(options.null, options.seed, models)
            text = f"{models} models, no event relates to their outcomes"
            print(f"{text}: {claims} of {samples} contrasts claim something, {claims / samples:.1%}")
        for cell in POWER:
            claims = power(options.null, options.seed, *cell)
            tasks, runs, failed, successful, models = cell
            text = f"{tasks} tasks × {runs} runs of {models} models, an event in {failed:.0%} of failed runs"
            print(f"{text}, {successful:.0%} of successful: claimed in {claims / samples:.0%}")
    elif options.speed:
        for name in KINDS:
            print(speed(name, options.speed), flush=True)
    elif options.wrong:
        for name in KINDS:
            for event, key, how in measured(name, options.runs, options.seed)[1]:
                print(name, event, key, how)
    else:
        text = "\n".join(tables(options.runs, options.seed))
        if options.output:
            before = options.output.read_text("utf-8").partition(MARK)[0]
            text = f"{before}{MARK}\n\n{text}\n"
            options.output.write_text(text, "utf-8")
        else:
            print(text)


if __name__ == "__main__":
    main()
