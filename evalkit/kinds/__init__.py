"""Kinds of logs: the registry, what a source holds, and what is done alike with logs of every kind."""

from importlib import import_module
from typing import Any

_WHERE = {
    "EVENTS": "transcript",
    "Image": "transcript",
    "RunFiles": "registry",
    "choose": "listing",
    "find_run": "transcript",
    "in_words": "listing",
    "list_runs": "listing",
    "read_log": "transcript",
    "read_transcript": "transcript",
    "show_run": "transcript",
    "transcript_of": "transcript",
    "fresh_records": "logs",
    "recognise": "detection",
    "HEAD": "detection",
    "Assembled": "registry",
    "Finding": "findings",
    "LogKind": "registry",
    "Logs": "logs",
    "Look": "follow",
    "Option": "registry",
    "Parsed": "registry",
    "RUN_COLUMNS": "runs",
    "Records": "registry",
    "Transcript": "transcript",
    "Turn": "transcript",
    "assemble": "logs",
    "cached_records": "logs",
    "collect": "collection",
    "counted_noun": "findings",
    "data_finding": "findings",
    "detect": "detection",
    "endings_finding": "findings",
    "entries_of": "logs",
    "kind_named": "registry",
    "kind_names": "registry",
    "load": "logs",
    "no_records": "logs",
    "nothing_used": "detection",
    "Outcomes": "runs",
    "outcomes": "runs",
    "read_records": "logs",
    "run_columns": "runs",
    "run_ids": "runs",
}

__all__ = list(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'evalkit.kinds' has no attribute {name!r}")
    return getattr(import_module(f"evalkit.kinds.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
