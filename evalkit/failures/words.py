"""Write the sentences of findings about failures; each function is the template of a `Finding`."""

from collections.abc import Mapping, Sequence
from typing import Any

from evalkit._text import Part, Parts, counted_noun, fill, listed, listed_parts, sentence
from evalkit.failures.contrasts import FEWEST_TASKS
from evalkit.failures.failure_modes import UNEXPLAINED, UNSEARCHED
from evalkit.io import shorten

NOTHING = "No run failed, so there are no reasons to count."
UNKNOWN = "Logs do not say which runs failed, so events are counted in all runs."
RULES = {
    "success": "Every run that is not a success counts as failed.",
    "events": "These logs never state success: a history has failed if a step failed, or failed silently.",
    "score": "These logs state only scores. A run counts as failed if its score is below the median of the runs of its "
    "task, or of all runs if its task has one run.",
    "unknown": "",  # the answer contains this sentence
}


def _noun(rule: str) -> str:
    return "history" if rule == "events" else "run"


def loops(
    n: int, total: int, least: int, rule: str, most: int, call: str, model: str, of_model: int, n_model: int
) -> str:
    """Describe how many runs (failed ones if logged) repeat a call many times, and the longest repetition."""
    noun = counted_noun(total, _noun(rule) if rule in ("events", "unknown") else "failed run")
    verb = "repeats" if n == 1 else "repeat"
    text = f"{n:,} of {noun} {verb} one call at least {least} times without effect"
    if model and n > of_model:
        text += f", {of_model:,} of {n_model:,} of {model}"
    return f"{text}; the longest repetition is {most:,} times: {call.rstrip('.')}."


def _reason(mode: str, n: int) -> Part:
    """Count the runs in which a mode leads. The mode is the key of the link to these runs."""
    if mode == UNEXPLAINED:
        return Part(f"no rule explains {n:,}", mode)
    if mode == UNSEARCHED:
        return Part(f"{n:,} {'has' if n == 1 else 'have'} no transcript", mode)
    return Part(f"{mode} ({n:,})", mode)


def leading(
    failed: int, rule: str, reasons: Sequence[tuple[str, int]], unexplained: int, unsearched: int
) -> str | Parts:
    """Describe the modes that lead most often. Each mode links to the runs in which it leads."""
    noun = counted_noun(failed, f"failed {_noun(rule)}")
    if unsearched == failed:
        return f"None of the {noun} has a transcript to search."
    if not reasons:
        without = f", {unsearched:,} of them without a transcript" if unsearched else ""
        return f"No rule explains any of {noun}{without}."
    shown = listed_parts((_reason(mode, n) for mode, n in reasons), 3)
    rest = _reason(UNEXPLAINED, unexplained) if unexplained else "all are explained by a rule"
    if unsearched:
        return fill("Main reasons of {}: {}; {}, and {}.", noun, shown, rest, _reason(UNSEARCHED, unsearched))
    return fill("Main reasons of {}: {}; {}.", noun, shown, rest)


def errors(calls: int, groups: int, error: str, n: int, runs: int, rule: str) -> str:
    """Describe how many calls failed in all runs, and the most frequent error."""
    failed = f"{counted_noun(calls, 'call')} failed"
    if rule == "events":
        failed += " or failed silently"
    where = f"in {counted_noun(runs, 'run')}: {shorten(error, 60).rstrip('.')}."
    if groups == 1:
        return f"{failed} {where}"
    times = "once" if n == 1 else f"{n:,} times"
    return f"{failed}, with {groups:,} kinds of errors; the most frequent, {times} {where}"


def mode_of_models(mode: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Describe how often a mode occurs in the failed runs of each model."""
    counts = listed((f"{row['runs']:,} of {row['n']:,} of {row['model_name']}" for row in rows), 3)
    return sentence(f"{mode}, of failed runs: {counts}")


def contrasts(decided: Sequence[Mapping[str, Any]], events: int, tested: int, n_tasks: int, across_models: bool) -> str:
    """Describe which events differ between failed and successful runs of the same tasks and models."""
    tasks = f"{counted_noun(n_tasks, 'task')} with both outcomes"
    nothing = "No event can be compared between failed and successful runs"
    if n_tasks < FEWEST_TASKS:
        return f"{nothing}: {'only one' if n_tasks else 'no'} task has transcripts of both."
    if not events:
        return f"{nothing}: no event occurred in the {tasks}."
    if not tested:
        return f"{nothing}: in the {tasks}, the same models fail, so models may be the reason."
    same = "the same task, adjusted for models" if across_models else "the same task and model"
    if not decided:
        return f"No event is shown to differ between failed and successful runs of {same} ({tasks})."
    shown = listed(
        (
            f"{row['event'].replace('_', ' ')} ({row['failed_share']:.0%} against {row['successful_share']:.0%})"
            for row in decided
        ),
        2,
    )
    return f"More or less frequent in failed than in successful runs of {same}: {shown}, over {tasks}."
