"""Mindcraft task runs as a kind of log."""

import re

from evalkit.kinds import LogKind, Parsed

_AGENT_LOG = re.compile(rb'"turns"\s*:|"role"\s*:\s*"(?:system|assistant|user)"')
_DEFINITIONS = re.compile(rb'"goal"\s*:.*"agent_count"\s*:|"agent_count"\s*:.*"goal"\s*:', re.DOTALL)


def _recognise(head: bytes) -> str:
    return KIND.title if _AGENT_LOG.search(head) else "Mindcraft task definition file" if _DEFINITIONS.search(head) else ""


KIND = LogKind(
    name="mindcraft",
    title="Mindcraft agent log",
    records={},
    tables={},
    parse=lambda path, data: Parsed("skipped", "not ported yet"),
    recognises=_recognise,
)
