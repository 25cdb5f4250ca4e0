"""Detect whether the inputs of a report have changed."""

import hashlib
import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from evalkit.io import SourceError, list_files
from evalkit.io.paths import has_magic
from evalkit.io.sources import MISSING, paths_of, state_of
from evalkit.io.versions import code_version, package_versions
from evalkit.reports.job import Report
from evalkit.reports.records import Record, files_beside

REMOTE = "remote"  # marks inputs without a fingerprint: such a report is always made again


def stamp(
    report: Report,
    *,
    code: bool = True,
    evidence: str = "linked",
    fingerprint: Callable[[str], str] | None = None,
) -> dict[str, Any]:
    """Return the stamp of a report's inputs."""
    fingerprint = fingerprint or input_fingerprint
    inputs = {}
    for name, value in report.all_parameters.items():
        texts = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str) and item]
        fingerprints = {text: mark for text in texts if (mark := fingerprint(text))}
        if fingerprints:
            inputs[name] = fingerprints
    return {
        "notebook": _digest([(cell.get("cell_type"), cell["source"]) for cell in report.notebook.cells]),
        "parameters": json.loads(json.dumps(report.parameters, default=str)),
        "inputs": inputs,
        "evalkit": code_version(),
        "packages": package_versions(),
        "page": {"code": code, "evidence": evidence},
    }


def input_fingerprint(text: str) -> str:
    """Hash names, sizes and times of the files that a parameter's value names; empty if it names none."""
    if "://" in text:
        return REMOTE
    if not text.strip("/"):  # a separator, hardly the root folder
        return ""
    try:
        # a pattern without a folder may be one of names, such as *.json: matching folders here are not walked
        files = paths_of(text) if has_magic(text) and os.path.basename(text) == text else list_files(text)
    except SourceError:
        return ""
    return _digest([(path, *(state_of(path) or MISSING)[:2]) for path in files]) if files else ""


def cached_fingerprint() -> Callable[[str], str]:
    """Return `input_fingerprint` with its own cache, for one batch."""
    return cache(input_fingerprint)


def why(record: Record | None, stamp: dict[str, Any], output: Path) -> str:
    """Return why a report must be made; empty if it is up to date."""
    if record is None:
        return "new"
    if record["status"] == "failed":
        return "failed last time"
    old = record["stamp"]
    files = [record["page"], record["executed"]]
    folder = output / record["notebook"]
    if not all((output / file).is_file() for file in files) or not all(
        (folder / file).is_file() for file in files_beside(record)
    ):
        return "a file of it is missing"
    if old.get("notebook") != stamp["notebook"]:
        return "the notebook changed"
    for key, change in (
        ("parameters", "changed parameters"),
        ("inputs", "changed input"),
        ("packages", "changed packages"),
    ):
        if old.get(key) != stamp[key]:
            return f"{change}: {_differing(old.get(key) or {}, stamp[key])}"
    if any(REMOTE in fingerprints.values() for fingerprints in stamp["inputs"].values()):
        return "remote input"
    if old.get("evalkit") != stamp["evalkit"]:
        return "evalkit changed"
    return "" if old.get("page") == stamp["page"] else "other page options"


def _differing(old: dict, new: dict) -> str:
    return ", ".join(sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name)))


def _digest(value: Any) -> str:
    text = json.dumps(value, default=str, ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
