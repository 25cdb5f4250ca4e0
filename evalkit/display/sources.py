"""Provenance: what a report was made from and with what."""

import hashlib
import os
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from evalkit.display.show import show_table
from evalkit.io import FileState, SourceError, absolute, is_url, list_source
from evalkit.io.paths import common_folder
from evalkit.io.records import dataset_files
from evalkit.io.versions import package_versions


def fingerprint(sources: Iterable[str]) -> str:
    """Hash the names and bytes of files, in sorted order, to 16 hexadecimal digits.

    Names count relative to the files' common folder, so that the same data elsewhere give the same fingerprint.
    A file that can't be read counts with its name only; one behind a URL is not read again, but counts with its size
    and tag as the store lists them.
    """
    paths = sorted(set(sources))
    digest = hashlib.blake2b(digest_size=8)
    root = common_folder(os.path.dirname(absolute(path)) for path in paths)
    states = _states(root) if any(map(is_url, paths)) else {}
    for path in paths:
        digest.update(absolute(path).removeprefix(root).lstrip("/").encode("utf-8", "surrogateescape") + b"\0")
        if is_url(path):
            digest.update(f"{states[path].size} {states[path].tag}".encode() if path in states else b"unreadable")
            continue
        try:
            with open(path, "rb") as file:
                digest.update(hashlib.file_digest(file, "blake2b").digest())
        except OSError:
            digest.update(b"unreadable")
    return digest.hexdigest()


def _states(root: str) -> dict[str, FileState]:
    try:
        return list_source(root).states
    except SourceError:
        return {}


def provenance(ledger: pd.DataFrame, **parameters: Any) -> None:
    """Show what the report was made from: versions, parameters, fingerprint of the input files, time.

    Parameters
    ----------
    ledger : DataFrame
        The ledger of the files that were read, with the column `source`.
    **parameters
        The notebook's parameters. Where one names a dataset, its files count in the fingerprint, not the logs.
    """
    used = ledger.loc[ledger["status"] != "skipped", "source"].tolist()
    seen = set(used)
    given = [name for value in parameters.values() for name in (value if isinstance(value, list) else [value])]
    for root, parts in filter(None, (dataset_files(name) for name in given if isinstance(name, str))):
        seen = {path for path in seen if not path.startswith(f"{root}/")}.union(parts)
    rows = [
        ("made", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")),
        *package_versions().items(),
        *((f"parameter {name}", repr(value)) for name, value in parameters.items()),
        ("input files", f"{len(used)} read, {len(ledger)} seen"),
        ("fingerprint of the input", fingerprint(seen)),
    ]
    show_table(pd.DataFrame(rows, columns=["what", "value"]), caption="Provenance")
