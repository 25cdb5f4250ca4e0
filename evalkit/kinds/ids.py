"""Compute ids of runs, and find the runs that ids from another computer, or from before a move, refer to."""

import hashlib
from collections.abc import Iterable

import pandas as pd

from evalkit.io.paths import absolute, common_folder
from evalkit.kinds.kind import Records

_PLACE = 10  # length of the beginning of an id, which depends on the kind, the absolute path and the parts


def run_ids(
    kind: str,
    sources: Iterable[str],
    *parts: Iterable[object],
    records: Records | None = None,
    sizes: Iterable[int] | None = None,
) -> list[str]:
    """Return stable ids of runs, such as ``m-3f9a51c07e21b04d``.

    An id begins with the first letter of the kind. The next 8 digits depend on the absolute path of the run and on its
    `parts`, such as its repetition. The last 8 digits depend on the parts, the path relative to the common folder of
    all files, and the size of the run's files in bytes, so they do not change if all files are moved together.
    """
    sources = list(sources)
    path_of = {source: absolute(source) for source in set(sources)}  # a file may contain thousands of runs
    folders = {file[: file.rfind("/") + 1] for file in records.listing.files} if records else set()
    top = common_folder(map(absolute, folders))
    if sizes is None:
        files = records.files.select(["source", "size"]) if records else None
        size_of = dict(zip(*files.to_pydict().values(), strict=True)) if files else {}
        sizes = [size_of.get(source, 0) for source in sources]
    ids = []
    for source, size, *part in zip(sources, sizes, *parts, strict=True):
        path = path_of[source]
        place = _digest(path, *part)
        content = _digest(f"{path}/".removeprefix(f"{top}/"), size, *part)
        ids.append(f"{kind[0]}-{place}{content}")
    return ids


def wherever(run_id: str) -> str:
    """Return the part of an id that does not depend on the location of the files; a short id is returned unchanged."""
    return run_id[:1] + run_id[_PLACE:] if len(run_id) > _PLACE else run_id


def _here(run_id: str) -> str:
    """Return the part of an id that depends on the absolute path."""
    return run_id[:_PLACE]


def find_runs(ids: pd.Series, known: pd.Series) -> pd.Series:
    """Return for each id the `known` id of the same run; missing if there is none.

    Ids belong to the same run if the absolute paths are equal, even if the file has grown, or if the files were moved
    together unchanged. Matches of moved files are ignored if fewer than a quarter of the remaining ids match, because
    these are probably other files, some of them identical.
    """
    found = ids.where(ids.isin(known))
    for part in (_here, wherever):
        keys = known.map(part)
        is_unique = ~keys.duplicated(keep=False)
        missing = ids[found.isna()]
        fits = missing.fillna("").map(part).map(known[is_unique].set_axis(keys[is_unique]))
        if part is _here or 4 * missing[fits.notna()].nunique() >= missing.nunique():
            found = found.fillna(fits)
    return found.astype("object")


def _digest(*keys: object) -> str:
    """Return the first 8 of the 12 hexadecimal digits of a digest, all of which earlier versions used."""
    identity = "\0".join(map(str, keys)).encode(errors="surrogatepass")
    return hashlib.blake2b(identity, digest_size=6).hexdigest()[: _PLACE - 2]
