"""Detect whether the inputs of a report have changed."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evalkit.io import SourceError, list_files
from evalkit.io.paths import has_magic
from evalkit.io.sources import MISSING, paths_of, state_of
from evalkit.io.versions import code_version, package_versions
from evalkit.reports.job import Report
from evalkit.reports.records import Record, files_beside

REMOTE = "remote"  # marks inputs without a fingerprint: such a report is always made again

_Fingerprint = Callable[[str], str]


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


def stamp(
    report: Report, *, code: bool = True, evidence: str = "linked", fingerprint: _Fingerprint = input_fingerprint
) -> dict[str, Any]:
    """Return the stamp of a report's inputs, as plain JSON; a cached `fingerprint` lists each source once."""
    inputs = {}
    for name, value in report.all_parameters.items():
        texts = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str) and item]
        if fingerprints := {text: mark for text in texts if (mark := fingerprint(text))}:
            inputs[name] = fingerprints
    return {
        "notebook": _digest([(cell.get("cell_type"), cell["source"]) for cell in report.notebook.cells]),
        "parameters": json.loads(json.dumps(report.parameters, default=str)),
        "inputs": inputs,
        "evalkit": code_version(),
        "packages": package_versions(),
        "page": {"code": code, "evidence": evidence},
    }


def why(record: Record | None, stamp: dict[str, Any], output: Path) -> str:
    """Return why a report must be made; empty if it is up to date."""
    if record is None:
        return "new"
    if record["status"] == "failed":
        return "failed last time"
    old = record["stamp"]
    files = [record["page"], record["executed"], *(f"{record['notebook']}/{file}" for file in files_beside(record))]
    if not all((output / file).is_file() for file in files):
        return "a file of it is missing"
    if old.get("notebook") != stamp["notebook"]:
        return "the notebook changed"
    for key, what in {"parameters": "parameters", "inputs": "input", "packages": "packages"}.items():
        if (before := old.get(key) or {}) != (now := stamp[key]):
            names = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
            return f"changed {what}: {', '.join(names)}"
    if any(REMOTE in fingerprints.values() for fingerprints in stamp["inputs"].values()):
        return "remote input"
    if old.get("evalkit") != stamp["evalkit"]:
        return "evalkit changed"
    return "" if old.get("page") == stamp["page"] else "other page options"


def _digest(value: Any) -> str:
    text = json.dumps(value, default=str, ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
