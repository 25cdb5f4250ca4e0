"""Read logs as the original MineCollab scripts do: their rules for text, first and last turns, and odd shapes.

The scripts are those of kolbytn/mindcraft, ``tasks/`` at commit `COMMIT`; they are described here, not copied. Each
reads every ``*.json`` of a task's folder, looks at turns of the role ``system``, and accepts a wording anywhere in a
turn. An exception within a file has a different effect in each of them.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, NamedTuple

from evalkit.mindcraft.format import AgentLog

COMMIT = "00127506"
_SCORE = "Task ended with score : "
_SUCCESS = ("Task successful ended with code : 2", "Task ended with score : 1", "Task ended in score: 1")


class Reading(NamedTuple):
    """What the scripts read in one JSON file."""

    evaluation: float | None = None  # of the first turn with a score: 1 or 0 by its first digit, else the number
    crafting: bool = False  # a success, from the first turn on
    analyse: bool = False  # a success, from the last turn back
    cooking: str = ""  # success, failure (a score, none of them a success), or empty
    stops: str = ""  # name of the exception by which the file ends analyze_cooking_tasks.py, or empty
    construction: float | None = None  # the number after the last colon of the last turn with a score


NOTHING = Reading()


def read_log(log: AgentLog, messages: Iterable[str], data: bytes, *, whole: bool) -> Reading:
    """Read a log by its final, or nearly final, system messages: no script reads anything in others.

    `whole` is whether every turn has a text.
    """
    if data.lstrip()[:1] == b"[":  # the scripts read objects only
        return NOTHING
    if not whole or None in [turn.role for turn in log.turns]:
        return read_bytes(data)  # to them a missing key differs from null
    return _read_messages(tuple(messages))


@lru_cache(maxsize=256)  # most logs end with the same few messages
def _read_messages(texts: tuple[str, ...]) -> Reading:
    return _read({"turns": [{"role": "system", "content": text} for text in texts]})


def read_bytes(data: bytes | OSError) -> Reading:
    """Read a file of any shape, as the scripts decode it."""
    if isinstance(data, OSError):
        return NOTHING
    try:
        return _read(json.loads(data.decode()))
    except json.JSONDecodeError:
        return NOTHING
    except (ValueError, RecursionError) as error:  # not UTF-8, nested too deep, or a number of too many digits
        return Reading(stops=type(error).__name__)


def read_folder(files: list[Reading]) -> tuple:
    """Combine what is read in the files of a task folder: the values of `table.LAZY_TABLES`, from `files` on.

    The scripts read files in the order of the file system, which decides between constructions; here they are sorted by
    name.
    """
    score, cooking, stops = 0.0, "", ""
    for file in files:
        if file.evaluation is not None:
            score = max(file.evaluation, score)  # in this order, which matters if one is not a number
        if cooking != "success":  # once a success is found, no other file is opened
            cooking, stops = file.cooking or cooking, stops or file.stops
    return (
        len(files),
        score if files else None,
        any(file.crafting for file in files) if files else None,
        any(file.analyse for file in files) if len(files) == 2 else None,
        cooking,
        stops,
        next((file.construction for file in files if file.construction is not None), None),
    )


@lru_cache(maxsize=4096)
def to_text(reading: Reading) -> str:
    """Serialise a reading as a short text, which is empty for `NOTHING`."""
    return "" if reading == NOTHING else json.dumps(reading)


@lru_cache(maxsize=4096)
def file_from_text(text: str) -> Reading:
    """Parse what `to_text` wrote."""
    return Reading(*json.loads(text)) if text else NOTHING


def _read(value: Any) -> Reading:
    read: dict[str, Any] = {}
    for name, script in _SCRIPTS.items():
        with suppress(Exception):  # whatever is missing or goes wrong, these scripts go on with the next file
            read[name] = script(value)
    cooking, stops = _cooking(value)
    return Reading(**read, cooking=cooking, stops=stops)


def _messages(turns: Iterable[Any]) -> Iterator[str]:
    for turn in turns:
        content = turn.get("content")
        if turn.get("role") == "system" and isinstance(content, str):
            yield content


def _evaluation(value: Any) -> float:
    first = next(text for text in _messages(value["turns"]) if _SCORE in text)
    digit = next((number for number in (1.0, 0.0) if f"{_SCORE}{number:.0f}" in first), None)
    return _behind_colon(first) if digit is None else digit


def _crafting(value: Any, step: int = 1) -> bool:
    return any(wording in text for text in _messages(value["turns"][::step]) for wording in _SUCCESS)


def _cooking(value: Any) -> tuple[str, str]:
    outcome = ""
    try:
        for text in _messages(value["turns"]) if "turns" in value else ():
            if f"{_SCORE}1" in text:
                return "success", ""
            if _SCORE in text:
                outcome = "failure"
    except Exception as error:
        return outcome, type(error).__name__
    return outcome, ""


def _construction(value: Mapping[str, Any]) -> float | None:
    for turn in reversed(value.get("turns", [])):
        if turn["role"] == "system" and "Task ended with score" in turn["content"]:
            return _behind_colon(turn["content"])
    return None


def _behind_colon(text: str) -> float:
    return float(text.split(":")[-1].strip())


_SCRIPTS: dict[str, Callable[[Any], Any]] = {
    "evaluation": _evaluation,
    "crafting": _crafting,
    "analyse": partial(_crafting, step=-1),
    "construction": _construction,
}
