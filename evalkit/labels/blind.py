"""Hide the model and the outcome in transcripts, for people who label them."""

import re
from collections.abc import Iterable

from evalkit.kinds import Transcript, Turn
from evalkit.kinds.detectors import seen

MODEL, HIDDEN = "[model]", "(hidden while you label: it says how the run ended)"
_SHORTEST = 3  # minimum number of characters of a name that is hidden
_OUTCOME = re.compile(
    r"\b(?:score|reward|accuracy)\b\W{0,3}(?:is|was|of|[=:])|\btask (?:ended|timed|success|fail|complete)|\bresolved\b",
    re.IGNORECASE,
)
_FINAL = "final message"  # mark of a message that decides the outcome of a run


def blinded(transcript: Transcript, names: Iterable[str], title: str, task: str = "") -> Transcript:
    """Return a transcript without its title, facts and marks, with names of models hidden in all texts.

    Turns of the system or a verifier that state a score or how the run ended are also hidden, and so are lines at the
    end of the run that detectors do not see. The agent's messages and actions stay visible, so a person who reads them
    may guess the model or the outcome.

    Parameters
    ----------
    names : iterable of str
        Names of models. Of ``provider/model``, both the whole name and the part after the last ``/`` are hidden.
    title : str
        Replacement for the title, which often is a path.
    task : str
        The task, the only fact that is shown; empty to show no fact.
    """
    forms = {form for name in names for form in (name, name.rpartition("/")[2]) if len(form) >= _SHORTEST}
    longest_first = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
    pattern = re.compile(rf"(?<![A-Za-z0-9])(?:{longest_first})(?![A-Za-z0-9])", re.IGNORECASE)

    def hide(text: str) -> str:
        return pattern.sub(MODEL, text) if forms else text

    turns = []
    for turn, stated in zip(transcript.turns, seen(transcript).turns, strict=True):
        text = hide(stated.shown)
        if _OUTCOME.search(stated.shown.removeprefix(stated.text)):  # in a call or its result below the text
            text = hide(stated.text) or HIDDEN
        if turn.role == "system" and (_OUTCOME.search(text) or any(mark.endswith(_FINAL) for mark in turn.marks)):
            text = HIDDEN
        if stated.shown != turn.shown and not text.strip():
            text = HIDDEN
        turns.append(Turn(hide(turn.actor), turn.role, text, when=turn.when, images=turn.images))
    facts = [f"task {hide(task)}"] if task else []
    return Transcript(title, facts, turns)
