"""The list of a dataset's parts: which files count, and what was collected; nothing that it says leads elsewhere."""

import json
import os
import re
from typing import Any, NamedTuple

from evalkit.io.files import SourceError, read_file
from evalkit.io.paths import is_url
from evalkit.io.sources import resolve

MANIFEST = "evalkit-dataset.json"
LAYOUT = 1  # of the manifest and the folders
ABOUT = frozenset({"kind", "sources", "root", "options", "code", "complete"})  # what a manifest says beside the parts
# what a part's file is called
PART = re.compile(r"(?P<table>[a-z]+)/(?P<model>model_name=[^/]*/)?(?P<number>[0-9]{6,})\.parquet")


class Part(NamedTuple):
    """One Parquet file of a table; `model` is None where the table is not split."""

    table: str
    model: str | None
    file: str
    rows: int

    @property
    def number(self) -> int:
        """What no other part of the dataset has."""
        return int(os.path.basename(self.file).removesuffix(".parquet"))


def dataset_files(path: str) -> tuple[str, list[str]] | None:
    """Name the root that a dataset was collected from, and its parts; None where `path` is something else."""
    found = read_manifest(path)
    return (found[1]["root"], [f"{found[0]}/{part.file}" for part in found[2]]) if found else None


def read_manifest(path: str | os.PathLike) -> tuple[str, dict[str, Any], list[Part], int] | None:
    """Read a dataset's folder, what was collected, its parts and their highest number; None for what is no dataset.

    Raises
    ------
    SourceError
        Where its list can't be read, or is none.
    """
    if os.fspath(path).startswith("samples:"):
        return None
    try:
        folder = resolve(path).rstrip("/")
        text = read_file(manifest := f"{folder}/{MANIFEST}")
    except (SourceError, FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        if isinstance(error, PermissionError) and is_url(folder):
            return None  # S3 may say that one is not allowed to read what is not there
        raise SourceError(f"{folder}: {error.strerror or error}") from None
    try:
        about = json.loads(text)
        layout = about.pop("layout")
        parts, number = _parts(about) if layout == LAYOUT else ([], 0)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise SourceError(f"{manifest}: no list of a dataset ({reason}); remove the dataset, collect again") from error
    if layout != LAYOUT:
        raise SourceError(f"{folder}: a dataset of another layout ({layout}); collect it again")
    return folder, about, parts, number


def _parts(about: dict[str, Any]) -> tuple[list[Part], int]:
    """Take the parts, and the highest number, off what a manifest says; ValueError where no dataset would say it."""
    parts = [Part(*part) for part in about.pop("parts")]
    for part in parts:
        found = PART.fullmatch(part.file)
        if not found or found["table"] != part.table or bool(found["model"]) != isinstance(part.model, str):
            raise ValueError(f"{part.file!r} is no part")
    if missing := ABOUT - about.keys():
        raise ValueError(f"no {', '.join(sorted(missing))}")
    return parts, max([int(about.pop("number")), *(part.number for part in parts)])
