"""Whatever a folder holds, a command answers on one screen: which model is better, and how sure that is."""

import re

import pytest
from click.testing import CliRunner

from evalkit.cli import main
from tests.crafter.traces import hook
from tests.messy import harbor_trial, played
from tests.mindcraft.builders import write_all

LINES, WIDTH = 24, 80
ANSWER = re.compile(r"\b(leads|best|first|is the only model|On average over \d+ histories|of the steps of 1 history)\b")
TASKS = range(3)


def name_of(model: int) -> str:
    return f"a-provider/a-family-of-models-with-a-name-longer-than-any-column-{model}"


def succeeded(model: int, task: int) -> bool:
    return (model * 7 + task * 5) % 4 > 1


def mindcraft(model: int, task: int) -> tuple[str, object]:
    return f"exp/{name_of(model).replace('/', '_')}/multiagent_cooking_{task}/agent_0.json", int(succeeded(model, task))


def crafter(model: int, task: int) -> tuple[str, object]:
    hooks = [hook("easy_achievement", ["collect_wood"])] * succeeded(model, task) + [hook("invalid_action")] * model
    return f"{model}_{task}.json", played(name_of(model), *hooks, world=f"w{task}")


def steps(model: int, task: int) -> tuple[str, object]:
    record = {"function_name": "f", "parameters": {}, "success": succeeded(model, task), "result_summary": "done"}
    return f"{name_of(model)}/{task}/execution_history.json", [record] * 30


def trajectories(model: int, task: int) -> tuple[str, object]:
    return harbor_trial(name_of(model), f"t{task}", float(succeeded(model, task)), number=model)


@pytest.mark.parametrize("models", [1, 9, LINES + 1])
@pytest.mark.parametrize("made", [mindcraft, crafter, steps, trajectories], ids=lambda made: made.__name__)
def test_the_answer_stands_on_one_screen(tmp_path, monkeypatch, made, models):
    folder = write_all(tmp_path / "logs", dict(made(model, task) for model in range(models) for task in TASKS))
    write_all(folder, {f"{n}/broken_with_a_long_name_{n:050d}.json": b"{" + b"[" * n for n in range(9)})
    commands = [made.__name__, "compare"] if made in (crafter, trajectories) else [made.__name__]  # scores, and rates
    for command in commands:
        line = [command, str(folder)]
        if models > LINES:  # with fewer models, a narrow screen needs more lines
            whole = CliRunner().invoke(main, line).output.rstrip("\n").split("\n")
            assert ANSWER.search(whole[0]), whole[0]
            assert len(whole) <= LINES
        monkeypatch.setattr("evalkit.display.terminal.screen_width", lambda: WIDTH)
        narrow = CliRunner().invoke(main, line).output.rstrip("\n").split("\n")
        monkeypatch.undo()
        assert len(narrow) <= LINES, "\n".join(narrow)
        assert max(map(len, narrow)) <= WIDTH, "\n".join(narrow)
        assert ANSWER.search(" ".join(narrow[:3]))
