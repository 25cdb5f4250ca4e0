"""Read logs as the original MineCollab scripts do: their rules for text, first and last turns, and odd shapes.

The scripts are those of kolbytn/mindcraft, ``tasks/`` at commit `COMMIT`; they are described here, not copied. Each
reads every ``*.json`` of a task's folder, looks at turns of the role ``system``, and accepts a wording anywhere in a
turn. An exception within a file has a different effect in each of them.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from evalkit.mindcraft.format import AgentLog

COMMIT = "00127506"
_SCORE = "Task ended with score : "
_SUCCESS = ("Task successful ended with code : 2", "Task ended with score : 1", "Task ended in score: 1")


class Reading(NamedTuple):
    """What the scripts read in one JSON file.

    Attributes
    ----------
    evaluation : float or None
        evaluation_script.py: the score of the first turn with one; the first digit after the wording decides between 1
        and 0.
    crafting, analyse : bool
        analyze_crafting_tasks.py (from the first turn on), analyse_results.py (from the last one back): a success.
    cooking : str
        analyze_cooking_tasks.py: ``success``, ``failure`` (a score, none of them a success), or empty.
    stops : str
        Name of the exception by which the file ends analyze_cooking_tasks.py, or empty.
    construction : float or None
        analyze_construction_tasks.py: the number after the last colon of the last turn with a score.
    """

    evaluation: float | None = None
    crafting: bool = False
    analyse: bool = False
    cooking: str = ""
    stops: str = ""
    construction: float | None = None


NOTHING = Reading()


class FolderReading(NamedTuple):
    """What the scripts read in one task folder; None where a script leaves the folder out.

    Attributes
    ----------
    files : int
        JSON files in the folder.
    evaluation : float or None
        The highest score of the files, at least 0.
    crafting, analyse : bool or None
        Whether any file shows a success; `analyse` is None unless there are two files.
    cooking : str
        ``success``, ``failure``, or empty without any score.
    stops : str
        Name of the exception that ends analyze_cooking_tasks.py, or empty.
    construction : float or None
        The score of the first file that has one; the scripts read files in the order of the file system, here they are
        sorted by name.
    """

    files: int = 0
    evaluation: float | None = None
    crafting: bool | None = None
    analyse: bool | None = None
    cooking: str = ""
    stops: str = ""
    construction: float | None = None


def read_log(log: AgentLog, messages: Iterable[str], data: bytes, *, whole: bool) -> Reading:
    """Read a log by its final, or nearly final, system messages: no script reads anything in others.

    `whole` is whether every turn has a text.
    """
    if data.lstrip()[:1] == b"[":  # the scripts read objects only
        return NOTHING
    if not whole or None in [turn.role for turn in log.turns]:
        return read_bytes(data)  # to them a missing key differs from null
    return read_messages(tuple(messages))


@lru_cache(maxsize=256)  # most logs end with the same few messages
def read_messages(texts: tuple[str, ...]) -> Reading:
    """Read the system messages of a log in which every turn has a role and a text."""
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


def read_folder(readings: Iterable[Reading]) -> FolderReading:
    """Combine the readings of a folder's files, in the order of their names."""
    files = list(readings)
    score, construction = 0.0, None
    cooking, stops = "", ""
    for file in files:
        if file.evaluation is not None:
            score = max(file.evaluation, score)  # in this order, which matters if one is not a number
        if construction is None:
            construction = file.construction
        if cooking != "success":  # once a success is found, no other file is opened
            cooking, stops = file.cooking or cooking, stops or file.stops
    return FolderReading(
        len(files),
        score if files else None,
        any(file.crafting for file in files) if files else None,
        any(file.analyse for file in files) if len(files) == 2 else None,
        cooking,
        stops,
        construction,
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
    cooking, stops = _cooking(value)
    return Reading(
        _or(None, _evaluation, value),
        _or(False, _crafting, value),
        _or(False, _analyse, value),
        cooking,
        stops,
        _or(None, _construction, value),
    )


def _or(instead: Any, read: Callable[[Any], Any], value: Any) -> Any:
    try:
        return read(value)
    except Exception:  # whatever goes wrong, the scripts go on with the next file
        return instead


def _messages(turns: Iterable[Any]) -> Iterator[str]:
    for turn in turns:
        content = turn.get("content")
        if turn.get("role") == "system" and isinstance(content, str):
            yield content


def _evaluation(value: Any) -> float | None:
    first = next((text for text in _messages(value["turns"]) if _SCORE in text), None) if "turns" in value else None
    if first is None:
        return None
    digit = next((number for number in (1.0, 0.0) if f"{_SCORE}{number:.0f}" in first), None)
    return _behind_colon(first) if digit is None else digit


def _crafting(value: Any, step: int = 1) -> bool:
    if "turns" not in value or not isinstance(value["turns"], list):
        return False
    return any(wording in text for text in _messages(value["turns"][::step]) for wording in _SUCCESS)


def _analyse(value: Any) -> bool:
    return _crafting(value, -1)


def _cooking(value: Any) -> tuple[str, str]:
    outcome = ""
    try:
        for text in _messages(value["turns"]) if "turns" in value else ():
            if _SCORE in text:
                outcome = "success" if f"{_SCORE}1" in text else "failure"
            if outcome == "success":
                break
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
