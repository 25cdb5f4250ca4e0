"""Detect the kinds of logs in a source from the first bytes of its files."""

import os
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from evalkit._text import counted_noun, listed, plural
from evalkit.io.frames import Entry
from evalkit.io.paths import SourceError
from evalkit.io.read import beginning, read_files
from evalkit.io.sources import Source, list_source, source_names
from evalkit.io.store import read_manifest
from evalkit.kinds.kind import LogKind
from evalkit.kinds.names import DETECTED_LAST, kind_names
from evalkit.kinds.registry import kind_named

HEAD = 65_536  # number of bytes of a file that are examined
MOST = 200  # maximum number of files that are examined
MOST_CAUSES = 3  # maximum number of causes in a message


class FileType(NamedTuple):
    """The type of a file: its kind and title, its format if the kind has formats, and the command that reads it."""

    kind: str
    title: str
    format: str = ""
    reader: str = ""  # a command, or a Python function


def kinds_to_ask() -> list[LogKind]:
    """Return all kinds, the most specific first. Leave out kinds that can't be imported, with a warning."""
    kinds, names = [], kind_names()
    for name in [*(name for name in names if name not in DETECTED_LAST), *DETECTED_LAST]:
        try:
            kinds.append(kind_named(name))
        except SourceError as error:
            warnings.warn(str(error), stacklevel=2)
    return kinds


def recognise(head: bytes, kinds: Iterable[LogKind] | None = None) -> FileType | None:
    """Return the type of a file by its first bytes, from the first kind that recognises it; None if no kind does."""
    head = beginning(head)
    if kinds is None:
        kinds = kinds_to_ask()
    for kind in kinds:
        if found := kind.recognises(head):
            title, form = (found, "") if isinstance(found, str) else found
            return FileType(kind.name, title, form, kind.others.get(title, f"evalkit {kind.name}"))
    return None


def detect(source: Source) -> dict[FileType, int]:
    """Count the detected types of a source's files, the most frequent first.

    Parameters
    ----------
    source : str, path, or several of them
        Folders, files, globs, URLs or a dataset of `collect`.

    Returns
    -------
    dict of FileType to int
        Number of files of each type. Of more than `MOST` files, `MOST` evenly spaced files are counted.

    Examples
    --------
    >>> next(iter(kinds.detect("samples:crafter"))).kind
    'crafter'
    """
    return _types_of(list_source(source).files)


def _types_of(files: Sequence[str]) -> dict[FileType, int]:
    """Count the types of up to `MOST` evenly spaced files, then add types of the first files of each folder."""
    kinds = kinds_to_ask()
    firsts: dict[tuple[str, str], str] = {}  # first file of each folder and file name extension
    if len(files) > MOST:
        for file in files:
            firsts.setdefault((file.rpartition("/")[0], os.path.splitext(file)[1]), file)
    types: dict[FileType, int] = {}
    for asked in (files, list(firsts.values())):
        step = max(1, len(asked) / MOST)
        chosen = [asked[int(i * step)] for i in range(min(MOST, len(asked)))]
        heads = (data for _, data in read_files(chosen, HEAD) if not isinstance(data, OSError))
        counts = Counter(found for head in heads if (found := recognise(head, kinds)))
        most = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        types |= {found: count for found, count in most if found not in types}
    return types


def kind_of_source(source: Source) -> LogKind:
    """Return the kind of a dataset, or the kind that most files of a source look like. Warn about other kinds."""
    kind, *others = kinds_of_source(source)
    if others:
        files = list_source(source).files
        some = f"; {MOST} of the files were looked at" if len(files) > MOST else ""
        names = " or ".join(f"--kind {other.name}" for other in others)
        looks = ", ".join(_texts_of(_types_of(files)))
        warnings.warn(
            f"{_name_of(source)}: read as {kind.name} ({looks}); other commands read the others: {names}{some}",
            stacklevel=3,
        )
    return kind


def kinds_of_source(source: Source) -> list[LogKind]:
    """Return the kind of a dataset, or the kinds that the files of a source look like, the most frequent first.

    Files of a kind that are not logs, such as definitions of tasks, count only if there are no logs of any kind. Raises
    SourceError if no kind recognises a file.
    """
    named = source_names(source)
    if manifest := next(filter(None, map(read_manifest, named)), None):
        return [kind_named(manifest.about["kind"])]
    files = list_source(named).files
    if not files:
        raise SourceError(f"{_name_of(named)}: it contains no file; name a folder of logs, or samples:mindcraft")
    types = _types_of(files)
    kinds = {one.kind: kind_named(one.kind) for one in types}
    logs = [one.kind for one in types if one.title == kinds[one.kind].title]
    if found := dict.fromkeys(logs) or kinds:
        return [kinds[name] for name in found]
    hint = f"if these are logs, name their kind: --kind {' or '.join(kind_names())}"
    if not any(data for _, data in read_files(files, 1)):
        hint = "nothing is in " + ("it" if len(files) == 1 else "any of them")
    raise SourceError(f"{_name_of(named)}: evalkit recognised no logs ({counted_noun(len(files), 'file')}); {hint}")


def describe_source(source: Source) -> str:
    """Describe the types of the files of a source, and which commands read them."""
    files = list_source(source).files
    types = _types_of(files)
    examined = f", of which {MOST} were looked at" if len(files) > MOST else ""
    lines = [f"  {text}: {one.reader}" for text, one in zip(_texts_of(types), types, strict=True)]
    head = f"{_name_of(source)}: {counted_noun(len(files), 'file')}{examined}"
    return "\n".join([head, *(lines or ["  no recognised logs"])])


def nothing_used(
    source: Source, entries: Sequence[Entry], wanted: str, pattern: str = "*", *, recursive: bool = True
) -> SourceError:
    """Return the error for a source without usable files. `entries` are its ledger, `wanted` is the title of a log.

    The message contains the number of files (or of other files, if no file matches the pattern), the types of files,
    the commands that read them, and the most frequent causes.
    """
    files = [entry.source for entry in entries]
    others = files or list_source(source, recursive=recursive).files
    types = _types_of(others)
    foreign = {one: count for one, count in types.items() if one.title != wanted}
    own_readers = {f"evalkit {one.kind}" for one in foreign if kind_named(one.kind).title == wanted}
    describing = [one for one in foreign if one.reader in own_readers]  # files of this kind that are not logs
    text = f"no {wanted} could be read in it" if files else f"no file matches {pattern}"
    n = counted_noun(len(others), "file" if files else "other file")
    if not others:
        text = f"no {wanted} in it: there is no file" + ("" if recursive else "; folders below were not read")
    elif shown := foreign if files else types:
        looks = [
            f"{look}, which only describe{'s' if count == 1 else ''} runs" if one in describing else look
            for look, (one, count) in zip(_texts_of(shown), shown.items(), strict=True)
        ]
        text += f" ({n}; {', '.join(looks)})"
    else:
        text += f" ({n}, broken or of no kind that evalkit knows)" if files and not types else f" ({n})"
    if readers := list(dict.fromkeys(f"`{one.reader}`" for one in foreign if one not in describing)):
        text += f"; {' and '.join(readers)} {'reads' if len(readers) == 1 else 'read'} those"
    elif others and not files:
        text += "; --pattern GLOB takes others"
    causes = Counter(entry.reason for entry in entries if entry.reason)
    if len(causes) == 1:
        title, _, what = next(iter(causes)).rpartition(": ")
        is_stated = title in [f"a {one.title}" for one in foreign]
        text += f", or {what}" if is_stated else f": {next(iter(causes))}"
    elif causes:
        counted = [f"{reason} ({counted_noun(n, 'file')})" for reason, n in causes.most_common()]
        text += f": {listed(counted, MOST_CAUSES)}"
    return SourceError(f"{_name_of(source)}: {text}")


def _name_of(source: Source) -> str:
    return ", ".join(source_names(source)) or "the source is empty"


def _texts_of(types: dict[FileType, int]) -> list[str]:
    """Describe the number of files of each type."""
    texts = []
    for (_, title, form, _), count in types.items():
        one = f"{'an' if title[0] in 'aeio' else 'a'} {title}"
        looks = f"look like {plural(title)}" if count > 1 else f"looks like {one}"
        texts.append(f"{count} {looks} ({form})" if form else f"{count} {looks}")
    return texts
