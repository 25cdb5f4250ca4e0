"""File names of reports: readable, and safe on every system."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

LONGEST = 120  # bytes; suffixes such as ".by_task.csv" are added to it, and file systems allow 255

_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


def file_name(values: Iterable[Any]) -> str:
    """Return a file name for values, without suffix; ``defaults`` if there are none but empty texts.

    Characters that are not allowed in a file name become ``_``, as in ``meta-llama_Llama-3-8B``; of a path only the
    last part is used. So different values may have the same name. A value without any valid character, or with a name
    that some system reserves, gets a hash of six hexadecimal digits.
    """
    values = [value for value in values if value != ""]
    name = "-".join(map(_part, values))
    if len(name.encode()) > LONGEST:
        name = f"{name.encode()[: LONGEST - 7].decode(errors='ignore')}-{mark(repr(values))}"
    return name or "defaults"


def mark(text: str) -> str:
    """Hash a text to six hexadecimal digits."""
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=3).hexdigest()


def _part(value: Any) -> str:
    text = str(value)
    shown = text.rstrip("/").rsplit("/", 1)[-1] if text.startswith(("/", "./", "../", "~/")) else text
    shown = unicodedata.normalize("NFC", shown)
    safe = "".join(c if c.isalnum() or c in "-_.+" else "_" for c in shown)
    safe = re.sub("_+", "_", safe).strip("._-") if safe != text else safe.strip("._-")
    if safe and not _RESERVED.fullmatch(safe):
        return safe
    return f"{safe}-{mark(text)}".lstrip("-")
