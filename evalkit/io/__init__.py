"""Input and output: listing and reading files, decoding JSON, the ledger of files, tables from columns."""

from evalkit._lazy import door

_PLACES = {
    "frames": "Column Entry Ledger Status cut_name frame frame_of paused_gc summarise",
    "paths": "FileState SourceError StorageOptions absolute check_path is_url redacted storage",
    "sources": "shown_paths Listing Source list_source own_sources resolve state_of",
    "write": "check_output for_spreadsheets write_bytes write_frame write_text",
    "secrets": "masked masking",
    "text": "distinct_names message_pattern plain short_paths shorten warnings_as_lines",
    "read": (
        "BrokenFileError WrongShapeError beginning decode_json decode_start read_file read_files read_json without_mark"
    ),
}

__getattr__, __dir__, __all__ = door(__name__, _PLACES)
