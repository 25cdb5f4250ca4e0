"""Provenance: which files a report was made from, and with what code."""

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from evalkit._text import counted_noun
from evalkit._version import code_version, package_versions
from evalkit.display.show import show_table
from evalkit.io.paths import SourceError, absolute, common_folder, is_secret_name, is_url, redacted
from evalkit.io.sources import list_source
from evalkit.io.store import read_manifest


def fingerprint(sources: Iterable[str]) -> tuple[int, str]:
    """Return the size in bytes of files, given as paths and URLs of a ledger, and a hash of their names and contents.

    Names are hashed relative to the files' common folder, so that the same data elsewhere have the same fingerprint. Of
    a file behind a URL, size and tag are hashed; of one that can't be read, and of pipes and devices, only the name.
    """
    names = {path: absolute(path) for path in sorted(set(sources))}
    root = common_folder({os.path.dirname(name) for name in names.values()})
    states = {}
    if any(map(is_url, names)):
        with suppress(SourceError):
            states = list_source(root).states
    digest = hashlib.blake2b(digest_size=8)
    size = 0
    for path, name in names.items():
        digest.update(name.removeprefix(root).lstrip("/").encode("utf-8", "surrogateescape") + b"\0")
        if path in states:
            size += states[path].size
            digest.update(f"{states[path].size} {states[path].tag}".encode())
        elif os.path.isfile(path):
            with suppress(OSError), open(path, "rb") as file:
                left = os.fstat(file.fileno()).st_size  # 0 of files in /proc, which may block or never end
                size += left
                contents = hashlib.blake2b()
                while left > 0 and (part := file.read(min(left, 2**20))):
                    contents.update(part)
                    left -= len(part)
                digest.update(contents.digest())
    return size, digest.hexdigest()


def provenance(ledger: pd.DataFrame, **parameters: Any) -> None:
    """Show the provenance of a report: versions, code, parameters, input files with their fingerprint, and time.

    If a parameter names a dataset, the fingerprint is of the dataset's files.

    Parameters
    ----------
    ledger : DataFrame
        One row per input file, such as `logs.ledger`.
    **parameters : Any
        Parameters of the notebook, by name.

    Examples
    --------
    >>> evalkit.provenance(logs.ledger, runs="samples:mindcraft/runs")  # doctest: +SKIP
    """
    used = ledger.loc[ledger["status"] != "skipped", "source"].tolist()
    files = set(used)
    given = [name for value in parameters.values() for name in (value if isinstance(value, list) else [value])]
    datasets = (read_manifest(name) for name in given if isinstance(name, str))
    for dataset in filter(None, datasets):
        files = {path for path in files if not path.startswith(f"{dataset.about['root']}/")}.union(dataset.files)
    size, digest = fingerprint(files)
    values = {
        f"parameter {name}": "…" if is_secret_name(name) and value else redacted(repr(value))
        for name, value in parameters.items()
    }
    rows = [
        ("made", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")),
        *package_versions().items(),
        ("code of evalkit", code_version()),
        *values.items(),
        ("input files", f"{len(used)} read, {len(ledger)} seen"),
        ("size of the input", f"{size:,} bytes in {counted_noun(len(files), 'file')}"),
        ("fingerprint of the input", digest),
    ]
    show_table(pd.DataFrame(rows, columns=["what", "value"]), caption="Provenance")
