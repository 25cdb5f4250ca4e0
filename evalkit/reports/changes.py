"""What a report was made from, and whether that has changed since."""

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
from evalkit.reports.plan import Report
from evalkit.reports.records import Record, files_beside

REMOTE = "remote"  # inputs of which no fingerprint is taken: such a report is always made again


def stamp(
    report: Report,
    *,
    code: bool = True,
    evidence: str = "linked",
    fingerprint: Callable[[str], str] | None = None,
) -> dict[str, Any]:
    """Describe what a report is made from.

    Parameters
    ----------
    report : Report
    code : bool
        Whether the page holds the notebook's code.
    evidence : str
        Which runs get pages.
    fingerprint : function, optional
        What `input_fingerprint` does; give `cached_fingerprint()` to list each source once per batch.

    Returns
    -------
    dict
        notebook, parameters, inputs, evalkit, packages and page; plain JSON.
    """
    fingerprint = fingerprint or input_fingerprint
    inputs = {}
    for name, value in report.all_parameters.items():
        texts = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str) and item]
        found = {text: mark for text in texts if (mark := fingerprint(text))}
        if found:
            inputs[name] = found
    return {
        "notebook": _digest([(cell.get("cell_type"), cell["source"]) for cell in report.notebook.cells]),
        "parameters": json.loads(json.dumps(report.parameters, default=str)),
        "inputs": inputs,
        "evalkit": code_version(),
        "packages": package_versions(),
        "page": {"code": code, "evidence": evidence},
    }


def input_fingerprint(text: str) -> str:
    """Hash names, sizes and times of the files a parameter's value stands for; empty where it stands for none."""
    if "://" in text:
        return REMOTE
    if not text.strip("/"):  # a separator, hardly all there is on the machine
        return ""
    try:
        # a pattern without a folder may be one of names, such as *.json: folders here that fit it are not walked
        files = paths_of(text) if has_magic(text) and os.path.basename(text) == text else list_files(text)
    except SourceError:
        return ""
    return _digest([(path, *(state_of(path) or MISSING)[:2]) for path in files]) if files else ""


def cached_fingerprint() -> Callable[[str], str]:
    """Return `input_fingerprint` with a memory of its own, for one batch."""
    return cache(input_fingerprint)


def why(record: Record | None, stamp: dict[str, Any], output: Path) -> str:
    """Say why a report must be made; an empty text where it is up to date."""
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
    for part, said in (
        ("parameters", "changed parameters"),
        ("inputs", "changed input"),
        ("packages", "changed packages"),
    ):
        if old.get(part) != stamp[part]:
            return f"{said}: {_differing(old.get(part) or {}, stamp[part])}"
    if any(REMOTE in found.values() for found in stamp["inputs"].values()):
        return "remote input"
    if old.get("evalkit") != stamp["evalkit"]:
        return "evalkit changed"
    return "" if old.get("page") == stamp["page"] else "other page options"


def _differing(old: dict, new: dict) -> str:
    return ", ".join(sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name)))


def _digest(value: Any) -> str:
    text = json.dumps(value, default=str, ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
