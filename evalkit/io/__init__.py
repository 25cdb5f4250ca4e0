"""Where logs live: listing and reading files, decoding JSON, the ledger of files, tables from columns."""

from importlib import import_module
from typing import Any

_WHERE = {
    "BrokenFileError": "decode",
    "Column": "frames",
    "Entry": "ledger",
    "FileState": "paths",
    "Ledger": "ledger",
    "Listing": "sources",
    "Source": "sources",
    "SourceError": "paths",
    "Status": "ledger",
    "StorageOptions": "paths",
    "WrongShapeError": "decode",
    "absolute": "paths",
    "check_output": "write",
    "check_path": "write",
    "cluster": "parallel",
    "decode_json": "decode",
    "escape_surrogates": "frames",
    "for_spreadsheets": "write",
    "frame": "frames",
    "frame_of": "frames",
    "has_magic": "paths",
    "is_url": "paths",
    "labels": "text",
    "list_files": "sources",
    "list_source": "sources",
    "own_sources": "sources",
    "parse_files": "parallel",
    "paused_gc": "frames",
    "plain": "text",
    "read_file": "read",
    "read_files": "read",
    "redacted": "paths",
    "refuse_credentials": "paths",
    "resolve": "sources",
    "short_paths": "text",
    "shorten": "text",
    "state_of": "sources",
    "storage": "paths",
    "summarise": "ledger",
    "unescape_surrogates": "frames",
    "unescaped": "frames",
    "warnings_as_lines": "text",
    "write_bytes": "write",
    "write_frame": "write",
    "write_text": "write",
}

__all__ = list(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'evalkit.io' has no attribute {name!r}")
    return getattr(import_module(f"evalkit.io.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
