"""Which kind of log a file holds, told by its first bytes, so that an error can say what a folder really holds."""

import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from evalkit.io import SourceError, is_url, read_files

HEAD = 65_536  # bytes of a file that are looked at
MOST = 200  # files that are looked at


class Kind(NamedTuple):
    """A kind of log: what it is called, how its files are recognised, and the command that reads them."""

    name: str
    title: str
    pattern: re.Pattern[bytes]
    command: str = ""


_INSPECT = rb'\APK.{0,200}?(?:_journal/|header\.json)|\A\s*\{\s*"version".{0,80}"status".{0,80}"eval"'
_TRACE = rb'"event_history"|"session_time_steps"|"session_metadata"'
_BENCHMARK = rb'"achievement_collect_wood"|"episode_return".*"progression"|"progression".*"episode_return"'
_AGENT_LOG = rb'"turns"\s*:|"role"\s*:\s*"(?:system|assistant|user)"'
_DEFINITIONS = rb'"goal"\s*:.*"agent_count"\s*:|"agent_count"\s*:.*"goal"\s*:'
_STEPS = rb'"execution_history"|"function_name"\s*:|"step_index"\s*:|\ASQLite format 3'

# the first that fits counts: the more particular ones stand in front
KINDS = tuple(
    Kind(name, title, re.compile(pattern, re.DOTALL), command)
    for name, title, pattern, command in (
        ("inspect", "inspect_ai log", _INSPECT, ""),
        ("crafter", "Crafter session trace", _TRACE, "evalkit crafter"),
        ("crafter", "Crafter benchmark file", _BENCHMARK, ""),
        ("mindcraft", "Mindcraft agent log", _AGENT_LOG, "evalkit mindcraft"),
        ("mindcraft", "Mindcraft task definition file", _DEFINITIONS, ""),
        ("steps", "execution history", _STEPS, "evalkit steps"),
    )
)


def recognise(head: bytes) -> Kind | None:
    """Tell the kind of a log by its first bytes; None for any other file."""
    return next((kind for kind in KINDS if kind.pattern.search(head)), None)


def nothing_used(source: str, files: Sequence[str], wanted: str) -> SourceError:
    """Make the error of a source of which no file could be used.

    Parameters
    ----------
    source : str
        What the user named.
    files : sequence of str
        All files that were seen.
    wanted : str
        Title of what was looked for, such as ``Mindcraft agent log``.

    Returns
    -------
    SourceError
        It says how many files there are, what they look like by their content, and which command reads those.
    """
    if not files:
        return SourceError(f"{source}: no {wanted} in it: there is no file")
    looks = Counter(kind for kind in map(recognise, _heads(files)) if kind and kind.title != wanted).most_common()
    n = f"{len(files)} file" + "s" * (len(files) != 1)
    if not looks:
        return SourceError(f"{source}: no {wanted} could be read in it ({n}, broken or of no kind that evalkit knows)")
    what = ", ".join(f"{count} {_look_like(kind.title, count)}" for kind, count in looks)
    commands = list(dict.fromkeys(f"`{kind.command}`" for kind, _ in looks if kind.command))
    hint = f"; {' and '.join(commands)} read{'s' * (len(commands) == 1)} those" if commands else ""
    sample = f"of the first {MOST} " * (len(files) > MOST)
    return SourceError(f"{source}: no {wanted} could be read in it ({n}; {sample}{what}){hint}")


def _look_like(title: str, count: int) -> str:
    if count == 1:
        return f"looks like {'an' if title[0] in 'aeio' else 'a'} {title}"
    plural = f"{title[:-1]}ies" if title.endswith("y") else f"{title}s"
    return f"look like {plural}"


def _heads(files: Iterable[str]) -> Iterable[bytes]:
    """Give the first bytes of files; what can't be read, or is no regular file, is left out."""
    for path in list(files)[:MOST]:
        if is_url(path):
            ((_, data),) = read_files([path])
            if not isinstance(data, OSError):
                yield data[:HEAD]
            continue
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                continue
            with open(path, "rb") as file:
                yield file.read(HEAD)
        except (OSError, ValueError):
            continue
