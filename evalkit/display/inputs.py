"""Provenance: which files a report was made from, and with what code."""

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pandas as pd

from evalkit._words import counted_noun
from evalkit.display.show import show_table
from evalkit.io.frames import Column
from evalkit.io.paths import SourceError, absolute, common_folder, is_secret_name, is_url, redacted
from evalkit.io.sources import Listing, list_source
from evalkit.io.store import dataset_files
from evalkit.io.versions import code_version, package_versions
from evalkit.kinds import FileRules, LogKind, Parsed, cached_records


class Inputs(NamedTuple):
    """The input files of a result."""

    count: int  # type: ignore[assignment]  # of distinct files; shadows the method of tuples on purpose
    size: int  # in bytes, of those whose size is known
    unreadable: int  # pipes and devices among them
    fingerprint: str  # 16 hexadecimal digits: a hash of the names and contents of all


def _digest_file(path: str, data: bytes | OSError) -> Parsed:
    if isinstance(data, OSError):
        return Parsed("failed", data.strerror or type(data).__name__)
    return Parsed("used", rows={"contents": [(hashlib.blake2b(data, digest_size=32).hexdigest(),)]})


# Digests are cached as the records of logs are: a file whose size and times have not changed is not read again
_CONTENTS = LogKind(
    name="contents",
    title="file",
    records={"contents": (Column("digest", "str", "BLAKE2b-256 of the bytes"),)},
    parse=_digest_file,
    recognises=lambda head: "",
    files=FileRules(accepts=lambda path: "" if os.path.isfile(path) else "not a regular file"),
)


def describe_inputs(sources: Iterable[str]) -> Inputs:
    """Return the number, size and fingerprint of files, given as paths and URLs of a ledger.

    Names are hashed relative to the files' common folder, so that the same data elsewhere have the same fingerprint.
    For a file that can't be read, only the name is hashed. A file behind a URL is not read again: its size and tag are
    hashed, as the listing has them.
    """
    paths = sorted(set(sources))
    names = {path: absolute(path) for path in paths}
    root = common_folder({os.path.dirname(name) for name in names.values()})
    contents: dict[str, tuple[int, str]] = {}  # size, and what stands for the contents, of those that can be read
    if local := [path for path in paths if not is_url(path)]:
        listing = Listing(root, local, {}, {})
        records = cached_records(_CONTENTS, ["contents", root], lambda known: listing, {"kind": _CONTENTS.name})
        digests, files = records.tables["contents"], records.files
        sizes = dict(zip(files["source"].to_pylist(), files["size"].to_pylist(), strict=True))
        found = zip(digests["source"].to_pylist(), digests["digest"].to_pylist(), strict=True)
        contents |= {name: (sizes[name], digest) for name, digest in found}
    if len(local) < len(paths):
        with suppress(SourceError):
            states = list_source(root).states.items()
            contents |= {url: (state.size, f"{state.size} {state.tag}") for url, state in states}
    digest, size, unreadable = hashlib.blake2b(digest_size=8), 0, 0
    for path in paths:
        file_size, content = contents.get(path, (0, ""))
        name = names[path].removeprefix(root).lstrip("/")
        digest.update(name.encode("utf-8", "surrogateescape") + b"\0" + (content or "unreadable").encode())
        size += file_size
        unreadable += not content
    return Inputs(len(paths), size, unreadable, digest.hexdigest())


def provenance(ledger: pd.DataFrame, **parameters: Any) -> None:
    """Show the provenance of a report: versions, code, parameters, input files with their fingerprint, and time.

    The `ledger` is that of the files that were read, with source and status. If one of the notebook's `parameters`
    names a dataset, the fingerprint is that of its files, not of the logs.
    """
    used = ledger.loc[ledger["status"] != "skipped", "source"].tolist()
    files = set(used)
    given = [name for value in parameters.values() for name in (value if isinstance(value, list) else [value])]
    for root, members in filter(None, (dataset_files(name) for name in given if isinstance(name, str))):
        files = {path for path in files if not path.startswith(f"{root}/")}.union(members)
    inputs = describe_inputs(files)
    unreadable = f", {inputs.unreadable:,} of them unreadable" if inputs.unreadable else ""
    rows = [
        ("made", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")),
        *package_versions().items(),
        ("code of evalkit", code_version()),
        *(
            (f"parameter {name}", "…" if is_secret_name(name) and value else redacted(repr(value)))
            for name, value in parameters.items()
        ),
        ("input files", f"{len(used)} read, {len(ledger)} seen"),
        ("size of the input", f"{inputs.size:,} bytes in {counted_noun(inputs.count, 'file')}{unreadable}"),
        ("fingerprint of the input", inputs.fingerprint),
    ]
    show_table(pd.DataFrame(rows, columns=["what", "value"]), caption="Provenance")
