"""Detect which kinds of logs a source holds by the first bytes of its files."""

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from evalkit._words import counted_noun
from evalkit.io.decode import beginning
from evalkit.io.frames import Entry, unescape_surrogates
from evalkit.io.paths import SourceError
from evalkit.io.read import read_files
from evalkit.io.sources import Source, list_source, source_names
from evalkit.io.store import read_manifest
from evalkit.kinds.kind import LogKind
from evalkit.kinds.registry import kind_named, kind_names

HEAD = 65_536  # bytes of a file that are examined
MOST = 200  # files that are examined
MOST_CAUSES = 3  # that are named

_BROAD = ("mindcraft",)  # kinds that are tried last: others also hold the mark of their logs, messages with roles
# logs that no kind reads (yet), for error messages
_FOREIGN = {
    "inspect_ai log": re.compile(
        rb'\APK.{0,200}?(?:_journal/|header\.json)|\A\s*\{\s*"version".{0,80}"status".{0,80}"eval"', re.DOTALL
    )
}


class FileType(NamedTuple):
    """The detected type of a file: the kind that reads it (empty if none does), and its title."""

    kind: str
    title: str


def recognise(head: bytes, kinds: Iterable[LogKind] | None = None) -> FileType | None:
    """Return the kind of a log by its first bytes; None for any other file.

    Parameters
    ----------
    head : bytes
    kinds : iterable of LogKind, optional
        The kinds to try, in this order; by default `kinds_to_ask`.
    """
    head = beginning(head)
    for title, pattern in _FOREIGN.items():
        if pattern.search(head):
            return FileType("", title)
    for kind in kinds_to_ask() if kinds is None else kinds:
        if title := kind.recognises(head):
            return FileType(kind.name, title)
    return None


def kinds_to_ask() -> list[LogKind]:
    """Return all kinds, the most specific first; one that can't be imported is left out, with a warning."""
    kinds = []
    for name in sorted(kind_names(), key=lambda name: name in _BROAD):
        try:
            kinds.append(kind_named(name))
        except SourceError as error:
            warnings.warn(str(error), stacklevel=2)
    return kinds


def detect(source: Source) -> dict[FileType, int]:
    """Count the detected types of a source's files, the most frequent first; of many files, `MOST` evenly spread.

    Raises
    ------
    SourceError
        As `list_source`.
    """
    return _types_in(list_source(source).files)


def kind_of_source(source: Source) -> LogKind:
    """Return the kind that most files of a source look like, or that of a dataset; a warning names the others."""
    (kind, read), *others = _kinds_in(source)
    if others:
        left = " and ".join(f"{files} (--kind {other.name})" for other, files in others)
        some = f"; {MOST} of the files were looked at" * (len(list_source(source).files) > MOST)
        warnings.warn(f"{_name_of(source)}: read as {kind.name} ({read}); left out: {left}{some}", stacklevel=3)
    return kind


def kinds_of_source(source: Source) -> list[LogKind]:
    """Return the kinds that read a source, that of most files first: that of a dataset, else what files look like."""
    return [kind for kind, _ in _kinds_in(source)]


def _kinds_in(source: Source) -> list[tuple[LogKind, str]]:
    """Return the kinds of a source, and how many files look like it; SourceError if none do.

    Other files of a kind, such as definitions of tasks, count only where there are no logs of any kind.
    """
    named = source_names(source)
    if manifest := next(filter(None, map(read_manifest, named)), None):
        return [(kind_named(manifest.about["kind"]), "")]
    files = list_source(named).files
    if not files:
        raise SourceError(f"{_name_of(named)}: there is no file in it; name a folder of logs, or samples:mindcraft")
    types = _types_in(files)
    found = {seen: kind_named(seen.kind) for seen in types if seen.kind}
    is_log = {seen: seen.title == kind.title for seen, kind in found.items()}
    first = {kind.name: seen for seen, kind in reversed(found.items()) if is_log[seen] or not any(is_log.values())}
    if first:
        return [(kind, counted_noun(types[seen], seen.title)) for seen, kind in found.items() if seen in first.values()]
    what = ", ".join(f"{count} {_look_like(seen.title, count)}" for seen, count in types.items())
    hint = f"if there are some, name their kind: --kind {' or '.join(kind_names())}"
    text = f"no log of a kind that evalkit knows ({counted_noun(len(files), 'file')}{'; ' * bool(what)}{what})"
    raise SourceError(f"{_name_of(named)}: {text}; {hint}")


def describe_source(source: Source) -> str:
    """Describe what the files of a source look like, and which command reads them."""
    listing = list_source(source)
    types = _types_in(listing.files)
    of = f", of which {MOST} were looked at" * (len(listing.files) > MOST)
    lines = [f"{_name_of(source)}: {len(listing.files)} file{'s' * (len(listing.files) != 1)}{of}"]
    for seen, count in types.items():
        command = f": evalkit {seen.kind}" if seen.kind else " (no command reads those)"
        lines.append(f"  {count} {_look_like(seen.title, count)}{command}")
    if not types:
        lines.append("  none of a kind that evalkit knows")
    return "\n".join(lines)


def nothing_used(
    source: Source, entries: Sequence[Entry], wanted: str, pattern: str = "*", *, recursive: bool = True
) -> SourceError:
    """Return the error for a source without usable files.

    Parameters
    ----------
    source : str, path, or several of them
        As given by the user.
    entries : sequence of Entry
        The ledger of the files that were read.
    wanted : str
        Title of the logs wanted, such as ``Mindcraft agent log``.
    pattern, recursive
        How the files were chosen.

    Returns
    -------
    SourceError
        It says how many files there are (those that don't match the pattern, if none does), what they look like by
        their content, which command reads those, and the causes if all files are broken or there is only one.
    """
    named = _name_of(source)
    files = [unescape_surrogates(entry.source) for entry in entries]
    others = files or list_source(source, recursive=recursive).files
    if not others:
        hint = "name a folder of logs" if recursive else "folders below are read without --no-recursive"
        return SourceError(f"{named}: no {wanted} in it: there is no file; {hint}")
    types = {seen: count for seen, count in _types_in(others).items() if seen.title != wanted or not files}
    n = f"{len(others)} {'other ' * (not files)}file{'s' * (len(others) != 1)}"
    if types:
        what = ", ".join(f"{count} {_look_like(seen.title, count)}" for seen, count in types.items())
        text = f"{n}; {f'of {MOST} that were looked at, ' * (len(others) > MOST)}{what}"
    else:
        text = f"{n}, broken or of no kind that evalkit knows" if files else n
    commands = list(dict.fromkeys(f"`evalkit {seen.kind}`" for seen in types if seen.kind and seen.title != wanted))
    hint = "`evalkit detect FOLDER` tells what a folder holds" if files else "--pattern GLOB takes others"
    hint = f"{' and '.join(commands)} read{'s' * (len(commands) == 1)} those" if commands else hint
    if not files:
        return SourceError(f"{named}: no file matches {pattern} ({text}); {hint}")
    causes = list(dict.fromkeys(entry.reason for entry in entries))[:MOST_CAUSES]
    because = len(entries) == 1 or all(entry.status == "failed" for entry in entries)
    why = f"; {hint}" * bool(commands or not because) + f": {'; '.join(causes)}" * because
    return SourceError(f"{named}: no {wanted} could be read in it ({text}){why}")


def _name_of(source: Source) -> str:
    return ", ".join(source_names(source))


def _types_in(files: Sequence[str]) -> dict[FileType, int]:
    """Count the types of `MOST` files, evenly spread; those that only the first files of folders show come last."""
    kinds = kinds_to_ask()
    folders: dict[str, str] = {}
    for file in files if len(files) > MOST else ():
        folders.setdefault(file.rpartition("/")[0], file)
    counts = [Counter[FileType](), Counter[FileType]()]
    for counted, some in zip(counts, (files, list(folders.values())), strict=True):
        step = max(1, len(some) / MOST)
        chosen = [some[int(i * step)] for i in range(min(MOST, len(some)))]
        heads = (data for _, data in read_files(chosen, HEAD) if not isinstance(data, OSError))
        counted.update(seen for head in heads if (seen := recognise(head, kinds)))
    spread, firsts = (sorted(counted.items(), key=lambda item: (-item[1], item[0])) for counted in counts)
    return {**dict(spread), **{seen: n for seen, n in firsts if seen not in counts[0]}}


def _look_like(title: str, count: int) -> str:
    if count == 1:
        return f"looks like {'an' if title[0] in 'aeio' else 'a'} {title}"
    plural = f"{title[:-1]}ies" if title.endswith("y") else f"{title}s"
    return f"look like {plural}"
