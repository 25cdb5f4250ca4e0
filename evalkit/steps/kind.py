"""Execution histories of an analysis agent as a kind of log."""

import re

from evalkit.kinds import LogKind, Parsed

_STEPS = re.compile(rb'"execution_history"|"function_name"\s*:|"step_index"\s*:|\ASQLite format 3')


def _recognise(head: bytes) -> str:
    return KIND.title if _STEPS.search(head) else ""


KIND = LogKind(
    name="steps",
    title="execution history",
    records={},
    tables={},
    parse=lambda path, data: Parsed("skipped", "not ported yet"),
    recognises=_recognise,
)
