"""Where logs live: listing and reading files, decoding JSON, the ledger of files, tables from columns."""

from evalkit.io.decode import BrokenFileError, WrongShapeError, decode_json
from evalkit.io.frames import Column, escape_surrogates, frame, frame_of, paused_gc, unescape_surrogates
from evalkit.io.ledger import Entry, Ledger, Status
from evalkit.io.parallel import cluster, parse_files
from evalkit.io.paths import (
    SourceError,
    StorageOptions,
    absolute,
    has_magic,
    is_url,
    storage,
)
from evalkit.io.read import read_file, read_files
from evalkit.io.sources import FileState, Listing, Source, list_files, list_source, own_sources, resolve, state_of
from evalkit.io.text import labels, plain, short_paths, shorten, warnings_as_lines
from evalkit.io.write import check_output, write_frame, write_text

__all__ = [
    "BrokenFileError",
    "Column",
    "Entry",
    "FileState",
    "Ledger",
    "Listing",
    "Source",
    "SourceError",
    "Status",
    "StorageOptions",
    "WrongShapeError",
    "absolute",
    "check_output",
    "cluster",
    "decode_json",
    "escape_surrogates",
    "frame",
    "frame_of",
    "has_magic",
    "is_url",
    "labels",
    "list_files",
    "list_source",
    "own_sources",
    "parse_files",
    "paused_gc",
    "plain",
    "read_file",
    "read_files",
    "resolve",
    "short_paths",
    "shorten",
    "state_of",
    "storage",
    "unescape_surrogates",
    "warnings_as_lines",
    "write_frame",
    "write_text",
]
