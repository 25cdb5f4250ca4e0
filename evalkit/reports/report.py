"""A report: its notebook and parameters, the job of making it, and the record of what was made."""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from evalkit.io.paths import SourceError, check_path, is_secret_name
from evalkit.io.sources import is_sample, shown_paths, source_names
from evalkit.io.store import collected_from
from evalkit.reports.notebooks import Notebook
from evalkit.reports.parameters import REQUIRED, texts_of

_LONGEST = 120  # bytes; suffixes and hashes are added to it, and file systems allow 255
_SECRET_HINT = (
    "a value of this name would stand on the page, in its file's name, the index and the manifest; set an environment "
    "variable, and read that in the notebook"
)

Record = dict[str, Any]  # of a report that was made or failed, as `Job.record` makes it


@dataclass(frozen=True)
class Report:
    """A notebook with parameters."""

    notebook: Notebook
    name: str
    parameters: dict[str, Any]  # given ones; the others have the notebook's defaults
    params_file: str = ""
    is_named: bool = False  # the user chose the name

    @property
    def key(self) -> str:
        """Name of the report within the output folder: ``notebook/report``."""
        return f"{self.notebook.name}/{self.name}"

    @property
    def all_parameters(self) -> dict[str, Any]:
        """The parameters with the notebook's defaults."""
        return {name: p.default for name, p in self.notebook.parameters.items()} | self.parameters

    @property
    def shown(self) -> Callable[[str], str]:
        """A function that shortens paths in a text for those who are handed the page."""
        given = texts_of(self.all_parameters)
        return shown_paths([*given, *(place for text in given for place in collected_from(text))])

    @property
    def sources(self) -> list[str]:
        """The sources of the report: the values of its first parameter whose default is a sample."""
        named = (name for name, parameter in self.notebook.parameters.items() if is_sample(parameter.default))
        return source_names(self.all_parameters.get(next(named, ""), ""))

    def marked(self) -> "Report":
        """Return the report with a hash of its parameters behind its name."""
        return replace(self, name=f"{self.name}-{short_hash(repr(self.parameters))}")


class Failure(NamedTuple):
    """Why a report failed, and in which cell (None if in no cell)."""

    error: str
    cell: int | None


class Job(NamedTuple):
    """A report to be made, and how."""

    report: Report
    output: Path
    why: str
    stamp: dict[str, Any]
    code: bool
    evidence: bool  # whether runs get pages
    timeout: float  # seconds

    def record(self, **fields: Any) -> Record:
        """Return the report's record with these fields; by default, that of a failed one without a page."""
        report = self.report
        blank: Record = {
            "key": report.key,
            "notebook": report.notebook.name,
            "name": report.name,
            "title": report.notebook.title,
            "question": report.notebook.settings.get("question", ""),
            "order": report.notebook.order,
            "params_file": report.params_file,
            "parameters": report.parameters,
            "status": "failed",  # or made
            "why": self.why,  # it was made
            "error": "",
            "cell": None,  # that it failed in
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": 0.0,
            "headline": None,
            "findings": [],  # text, section
            "sources": report.sources,  # folders or files of the report's logs
            "tables": [],  # name, file (relative to the page), rows
            "figures": [],  # files of named figures, relative to the page
            "page": "",  # relative to the output folder
            "page_bytes": 0,
            "executed": "",
            "stamp": self.stamp,  # of its inputs, see `evalkit.reports.records.stamp_of`
            "previous": None,  # headline and time of the page it replaced
        }
        return blank | fields


def refuse_secrets(name: str, value: Any) -> None:
    """Raise SourceError for secrets, by their names or in a URL: pages, file names and records would show them."""
    if is_secret_name(name) and value and value is not True and value is not REQUIRED:
        raise SourceError(f"{name}: {_SECRET_HINT}")
    for text in texts_of(value):
        check_path(text)
    for key, item in value.items() if isinstance(value, dict) else ():
        refuse_secrets(key, item)


def file_name(values: Iterable[Any]) -> str:
    """Return a file name for values, without suffix, ``defaults`` if all are empty.

    Other characters become ``_``, as in ``meta-llama_Llama-3-8B``; of a path only the last part is used. So different
    values may have the same name. A value without any valid character gets a hash of six hexadecimal digits.
    """
    parts = []
    for text in filter(None, map(str, values)):
        is_path = text.startswith(("/", "./", "../", "~/"))
        shown = unicodedata.normalize("NFC", text.rstrip("/").rsplit("/", 1)[-1] if is_path else text)
        safe = re.sub(r"[^\w.+-]+", "_", shown).strip("._-")
        parts.append(safe or short_hash(text))
    name = "-".join(parts)
    if len(name.encode()) > _LONGEST:
        name = f"{name.encode()[: _LONGEST - 7].decode(errors='ignore')}-{short_hash(name)}"
    return name or "defaults"


def short_hash(text: str) -> str:
    """Hash a text to six hexadecimal digits."""
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=3).hexdigest()
