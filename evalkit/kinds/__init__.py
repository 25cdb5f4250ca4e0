"""Kinds of logs: the registry, detection, and operations common to all kinds."""

from evalkit._lazy import door

_PLACES = {
    "transcript": "EVENTS Image cell_text read_log run_facts transcript_of Transcript Turn",
    "kind": "RUN_COLUMNS Assembled Command FileRules LogKind Parsed RateRules Records RunFiles run_columns",
    "registry": "Option kind_named kind_names",
    "terminal": "choose list_runs",
    "pipeline": "Changes Logs assemble collect load read_records run_ids",
    "detection": "recognise HEAD detect nothing_used",
    "findings": "Example Finding similar_names data_finding doubts examples_of flag_counts",
    "follow": "Snapshot",
    "estimates": "denominators rates usage",
    "runs": "Outcomes outcome_of outcomes",
}

__getattr__, __dir__, __all__ = door(__name__, _PLACES)
