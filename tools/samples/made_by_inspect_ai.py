"""Write the samples of inspect_ai: logs of its `eval`, with its mock models.

    PYTHON tools/samples/made_by_inspect_ai.py FOLDER < ANSWERS    # a Python in which inspect_ai is installed

ANSWERS is JSON: for each model, question and epoch, the number of tokens that the model reads and whether it is right.
The script replaces everything that depends on the machine: times, random ids, its own path, and tracebacks, which
contain paths.
"""

import itertools
import json
import re
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from inspect_ai import Task, eval, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessage, ChatMessageUser, GenerateConfig, ModelOutput, ModelUsage, get_model, modelapi
from inspect_ai.model._providers.mockllm import MockLLM
from inspect_ai.scorer import match
from inspect_ai.solver import Generate, Solver, TaskState, solver

START = "2026-09-14T09:00:00+00:00"
DOUBTS = ("birch/birch-70b", "sum-4", 1)  # the model asks back until it reaches the limit of messages
BREAKS = ("birch/birch-70b", "sum-3", 2)  # the provider fails
_ID = re.compile(r"\b[1-9A-HJ-NP-Za-km-z]{22}\b")
_TIME = re.compile(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(\+00:00|Z)")
_SECONDS = re.compile(r'("(?:total_time|working_time|working_start|time|created)":|/time","value":)[0-9.e-]+')
_PLACE = re.compile(r'"task_file":"[^"]*",|"revision":\{[^}]*\},')  # path and repository of the script
_TRACEBACK = re.compile(r'"(traceback|traceback_ansi)": ?"(\\.|[^"\\])*"')


@solver
def until_sure() -> Solver:
    """Ask again until an answer contains no question mark."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        while "?" in (state := await generate(state)).output.completion:
            state.messages.append(ChatMessageUser(content="What is the sum?"))
        return state

    return solve


@task
def sums() -> Task:
    """Ask for five sums."""
    asked = [Sample(id=f"sum-{n}", input=f"What is {n} + {n}?", target=str(2 * n)) for n in range(5)]
    return Task(asked, solver=until_sure(), scorer=match(), epochs=2, message_limit=4, fail_on_error=False)


def mock(model: str, answers: dict[str, list[tuple[int, bool]]]) -> Any:
    """Return a model that gives these answers to each question, in the order of the epochs."""
    epochs = {question: iter(enumerate(given, start=1)) for question, given in answers.items()}

    def answer(messages: list[ChatMessage], *_: Any) -> ModelOutput:
        number = int(messages[0].text.split()[2])
        question = f"sum-{number}"
        if len(messages) > 1:
            return said("Is it?", 40)
        epoch, (tokens, is_right) = next(epochs[question])
        if (model, question, epoch) == BREAKS:
            raise RuntimeError("the provider is overloaded")
        return said("Let me think?" if (model, question, epoch) == DOUBTS else str(2 * number + (not is_right)), tokens)

    def said(text: str, tokens: int) -> ModelOutput:
        output = ModelOutput.from_content(model, text)
        output.usage = ModelUsage(input_tokens=tokens, output_tokens=4, total_tokens=tokens + 4)
        return output

    return get_model(model, config=GenerateConfig(temperature=0.0), custom_outputs=answer, memoize=False)


def main() -> None:
    """Run each model, and write its log."""
    target, answers = Path(sys.argv[1]), json.load(sys.stdin)
    target.mkdir(parents=True, exist_ok=True)
    for model in answers:
        provider = model.partition("/")[0]
        modelapi(name=provider)(type(provider, (MockLLM,), {}))
        with tempfile.TemporaryDirectory() as folder:
            (log,) = eval(
                sums(), mock(model, answers[model]), log_dir=folder, max_samples=1, max_connections=1, display="none"
            )
            write(Path(log.location), target / f"2026-09-14_sums_{provider}.eval")


def write(log: Path, target: Path) -> None:
    """Copy a log, replacing everything that depends on the machine."""
    names, numbers = dict[str, str](), itertools.count(1)

    def name_of(found: re.Match[str]) -> str:
        if found[0] not in names:
            names[found[0]] = f"{target.stem[-5:]}-{next(numbers):04}"
        return names[found[0]]

    with zipfile.ZipFile(log) as source, zipfile.ZipFile(target, "w") as archive:
        for member in source.infolist():
            text = _PLACE.sub("", source.read(member).decode())
            text = _TRACEBACK.sub(r'"\1": ""', _SECONDS.sub(r"\g<1>1.5", _TIME.sub(START, text)))
            entry = zipfile.ZipInfo(member.filename, (2026, 9, 14, 9, 0, 0))
            archive.writestr(entry, _ID.sub(name_of, text), zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main()
