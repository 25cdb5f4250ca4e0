"""A kind of log of one's own: quiz sheets, one JSON file per run with the questions that a model answered.

{"model": "beta", "quiz": "capitals", "seconds": 12.5,
 "answers": [{"question": "France?", "answer": "Paris", "correct": true}, …]}
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

from evalkit.io import Column
from evalkit.kinds import FileRules, LogKind, Parsed, Transcript, Turn

RUNS = (  # common columns of runs that a sheet tells, and two of its own
    Column("model_name", "name", "the model that answered"),
    Column("task_id", "name", "name of the quiz"),
    Column("score", "float", "share of correct answers", "share"),
    Column("is_successful", "bool?", "all answers are correct"),
    Column("duration", "float", "how long it took", "seconds"),
    Column("turns", "int?", "questions", "count"),
    Column("correct", "int", "correct answers", "count"),
)
ANSWERS = (
    Column("question", "str", "what was asked"),
    Column("answer", "str", "what the model said"),
    Column("is_correct", "bool", "whether that is right"),
)


def recognises(data: bytes) -> str:
    """Return the title of a quiz sheet; "" for other files."""
    return "quiz sheet" if b'"quiz"' in data and b'"answers"' in data else ""


def parse(path: str, data: bytes) -> Parsed:
    """Parse one file. A broken one has failed, with the reason, and another JSON file is skipped."""
    try:
        sheet = json.loads(data)
        if not recognises(data):  # after decoding, because a broken file may be a cut sheet
            return Parsed("skipped", "not a quiz sheet")
        answers = [(str(a["question"]), str(a["answer"]), a["correct"] is True) for a in sheet["answers"]]
        names = str(sheet["model"]), str(sheet["quiz"])
        seconds = float(sheet["seconds"]) if "seconds" in sheet else None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return Parsed("failed", f"{type(error).__name__}: {error}")
    correct = sum(right for *_, right in answers)
    score = correct / len(answers) if answers else None
    run = (*names, score, correct == len(answers) if answers else None, seconds, len(answers), correct)
    return Parsed("used", rows={"runs": [run], "answers": answers})


def transcript(paths: Sequence[str], read: Callable[[str], bytes]) -> Transcript:
    """Tell question by question what happened."""
    sheet: dict[str, Any] = json.loads(read(paths[0]))
    turns = []
    for answer in sheet["answers"]:
        marks = () if answer["correct"] is True else ("wrong",)
        turns.append(Turn("quiz", "user", str(answer["question"])))
        turns.append(Turn(str(sheet["model"]), "assistant", str(answer["answer"]), marks))
    return Transcript(paths[0], [str(sheet["quiz"]), str(sheet["model"])], turns)


KIND = LogKind(
    name="quiz",
    title="quiz sheet",
    records={"runs": RUNS, "answers": ANSWERS},
    parse=parse,
    files=FileRules(pattern="*.json"),
    recognises=recognises,
    transcript=transcript,
)
