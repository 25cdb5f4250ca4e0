"""Ids of runs."""

import hashlib
from collections.abc import Iterable
from functools import partial


def run_ids(kind: str, *keys: Iterable[object]) -> list[str]:
    """Return stable ids of runs, as in ``m-3f9a51c07e21``, made of what identifies each: its path, its repetition, …

    They begin with the first letter of the kind.
    """
    ids = []
    for key in zip(*map(partial(map, str), keys), strict=True):
        identity = "\0".join(key).encode(errors="surrogatepass")
        ids.append(f"{kind[0]}-{hashlib.blake2b(identity, digest_size=6).hexdigest()}")
    return ids
