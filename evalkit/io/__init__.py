"""Where logs live: listing and reading files, decoding JSON, the ledger of files, frames from columns."""

from typing import Any

from evalkit.io.bulk import paused_gc
from evalkit.io.decode import BrokenFileError, WrongShapeError, decode_json
from evalkit.io.files import SourceError, read_file, read_files
from evalkit.io.frames import Column, frame, frame_of, joined
from evalkit.io.ledger import Ledger
from evalkit.io.parallel import cluster, parse_files
from evalkit.io.paths import absolute, is_url
from evalkit.io.sources import Listing, Source, list_files, list_source, list_tree, mark_of, own_sources, resolve
from evalkit.io.storage import FileMark, StorageOptions, storage
from evalkit.io.text import plain

__all__ = [
    "BrokenFileError",
    "Column",
    "FileMark",
    "Ledger",
    "Listing",
    "Source",
    "SourceError",
    "StorageOptions",
    "WrongShapeError",
    "absolute",
    "cached_frames",
    "cluster",
    "decode_json",
    "frame",
    "frame_of",
    "is_url",
    "joined",
    "list_files",
    "list_source",
    "list_tree",
    "mark_of",
    "own_sources",
    "parse_files",
    "paused_gc",
    "plain",
    "read_file",
    "read_files",
    "resolve",
    "storage",
]


def __getattr__(name: str) -> Any:
    if name != "cached_frames":
        raise AttributeError(f"module 'evalkit.io' has no attribute {name!r}")
    from evalkit.io.store import cached_frames  # imports as much as the rest together, and commands don't need it

    return cached_frames
