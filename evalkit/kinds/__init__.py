"""Kinds of logs: the registry, detection, and operations common to all kinds."""

from evalkit._lazy import door

_PLACES = {
    "transcript": "EVENTS Image find_run read_log read_transcript show_run transcript_of Transcript Turn",
    "registry": (
        "RUN_COLUMNS Assembled Command FileRules LogKind Option Parsed RateRules Records RunFiles kind_named kind_names"
        " run_columns"
    ),
    "listing": "choose in_words list_runs",
    "logs": "fresh_records Logs assemble entries_of load no_records read_records",
    "detection": "recognise HEAD detect nothing_used",
    "findings": "Example Finding data_finding endings_finding examples_of",
    "follow": "Snapshot",
    "estimates": "denominators rates usage",
    "runs": "Outcomes outcome_of outcomes run_ids",
    "stores": "cached_records",
    "collection": "collect",
}

__getattr__, __dir__, __all__ = door(__name__, _PLACES)
