"""Kinds of logs: the registry, what a source holds, and what is done alike with logs of every kind."""

from evalkit._lazy import door

_NAMES = {
    "read_transcript": "transcript",
    "fresh_records": "logs",
    "recognise": "detection",
    "HEAD": "detection",
    "Assembled": "registry",
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
    "cached_records": "stores",
    "collect": "collection",
    "detect": "detection",
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

__getattr__, __dir__, __all__ = door(__name__, _NAMES)
