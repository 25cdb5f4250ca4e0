"""Find histories that hold the same executions, in whatever shape each was stored."""

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from evalkit.steps.judge import History
from evalkit.steps.record import StepRecord

SAME_TIME = timedelta(seconds=1)  # an agent does not write its old and its new history at the same moment
ENOUGH_WORDS = 20  # different ones in results, by which histories without times can be told apart
_WORD = re.compile(r"[\w.+-]+")
_NUMPY = re.compile(r"\b(?:np|numpy)\.\w+(?=\()")  # in the text of a structure: np.int64(88)


def copies(histories: Sequence[History]) -> dict[int, int]:
    """Return which histories repeat another one: the position of each, and of the one that it repeats.

    Calls, errors and results must be equal; of a result that was cut, only the part that was kept is compared. The times
    of the first records must not differ. If both are known, a copy may also end earlier. If not, results must have
    `ENOUGH_WORDS`, since runs that fail at once look the same. Of equal histories the longest is the original; among
    these the one with the fewest cut results, then one with a plan, then the first.
    """
    calls = [list(map(_call, history.records)) for history in histories]
    result = cache(lambda i, place: _result(histories[i].records[place]))

    def rank(i: int) -> tuple[int, int, bool]:
        n_cut = sum("truncated" in record["result_metadata"] for record in histories[i].records)
        return -len(calls[i]), n_cut, histories[i].plan is None

    def repeats(i: int, original: int) -> bool:
        n, times = len(calls[i]), [_time(histories[j].records[0]) for j in (i, original)]
        if calls[i] != calls[original][:n]:
            return False
        if None not in times and len({time.tzinfo is None for time in times}) == 1:
            if abs(times[0] - times[1]) > SAME_TIME:
                return False
        elif n < len(calls[original]) or len({w for place in range(n) for w in result(i, place)[0]}) < ENOUGH_WORDS:
            return False
        return all(_agree(result(i, place), result(original, place)) for place in range(n))

    found, originals = dict[int, int](), defaultdict[Any, list[int]](list)  # originals by their first call
    for i in sorted(filter(calls.__getitem__, range(len(calls))), key=rank):
        candidates = originals[calls[i][0]]
        original = next((j for j in candidates if repeats(i, j)), None)
        if original is None:
            candidates.append(i)
        else:
            found[i] = original
    return found


def _call(record: StepRecord) -> tuple[Any, ...]:
    """Return the function of a step, its parameters as words, since old files hold numbers as text, and its end."""
    parameters = json.dumps(record["step"]["parameters"], sort_keys=True)
    return record["step"]["function_name"], tuple(_words(parameters)), record["success"], record["error"]


def _time(record: StepRecord) -> Any:
    with suppress(ValueError):
        return datetime.fromisoformat(record["timestamp"] or "")
    return None


def _result(record: StepRecord) -> tuple[list[str], bool]:
    """Return the words of a successful step's result, without the one at a cut, and whether it was cut."""
    result, is_cut = record["result"], "truncated" in record["result_metadata"]
    if record["success"] is not True or not result or result == "Success":  # what shape A made of false values
        return [], False
    words = _words(_NUMPY.sub("", str(result)))
    return words[:-1] if is_cut else words, is_cut


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text) if word not in ("None", "nan", "NaN", "null")]


def _agree(a: tuple[list[str], bool], b: tuple[list[str], bool]) -> bool:
    """Return whether two results are equal, or one is the beginning of the other and was cut."""
    (words, is_cut), (longer, _) = sorted((a, b), key=lambda result: len(result[0]))
    return words == (longer[: len(words)] if is_cut else longer)
