"""Resolve sources as users name them, such as folders, URLs, globs or sample data, to paths."""

import glob
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import quote

from evalkit.io.paths import (
    INSIDE,
    SourceError,
    StorageOptions,
    has_magic,
    is_url,
    protocol_of,
    refuse_credentials,
)

Source = str | os.PathLike | Iterable[str | os.PathLike]
_SAMPLES = "samples:"
_PARTS = re.compile(r"::|!/|[a-z]+://")
_INNER = re.compile(r"(?P<protocol>zip|tar)://(?P<inner>.*)::(?P<archive>.+)", re.DOTALL)


def source_names(source: Source) -> list[str]:
    """Return the names of a source, which may be one name or several; empty ones are left out."""
    names = [source] if isinstance(source, str | os.PathLike) else source
    return [os.fspath(name) for name in names if os.fspath(name)]


def resolve(source: str | os.PathLike) -> str:
    """Resolve a source's name to a local path or a URL.

    Parameters
    ----------
    source : str or path
        A path, ``~`` allowed, a URL, or ``samples:NAME`` for the sample data that come with the package.

    Returns
    -------
    str

    Raises
    ------
    SourceError
        If the path does not exist (URLs are not checked), or a URL holds credentials.
    """
    text = os.fspath(source)
    if not text:
        raise SourceError("no path was given (the path is empty)")
    if text.startswith(_SAMPLES):
        return _sample(text)
    refuse_credentials(text)
    return _normal_url(text) if is_url(text) else _as_archive(_existing(text))


def _as_archive(path: str) -> str:
    """Return a local archive as a URL of its contents: ``runs.zip`` is ``zip://runs.zip``; any other path as it is."""
    kind = os.path.splitext(path)[1].lower()[1:]
    return f"{kind}://{path}{INSIDE}" if kind in ("zip", "tar") and os.path.isfile(path) else path


def _existing(text: str) -> str:
    try:
        path = Path(text).expanduser()
        there = path.exists()
    except (OSError, ValueError, RuntimeError) as error:  # too long, a NUL byte, the home of an unknown user
        raise SourceError(f"{text}: {getattr(error, 'strerror', None) or error}") from error
    if not there:
        raise SourceError(f"{text}: no such file or folder")
    return str(path)


def shown_paths(sources: Iterable[str]) -> Callable[[str], str]:
    """Return a function that shortens paths in a text for those who are handed a page.

    A path of a source begins with the last part of the source's own path, and so do those above it; the home folder
    becomes ``~``. URLs stay as they are, but for the path of a local archive.

    Parameters
    ----------
    sources : iterable of str
        As given; texts that are none do no harm.
    """
    names: dict[str, str] = {}
    for source in sources:
        text = os.path.join(_samples(), source.removeprefix(_SAMPLES)) if source.startswith(_SAMPLES) else source
        local = [part for part in _PARTS.split(text) if part.startswith("/")] if is_url(text) else [text]
        for part in (part for part in local if "\0" not in part):
            path = os.path.abspath(os.path.expanduser(_fixed_part(part) if has_magic(part) else part))
            for place in (path, os.path.realpath(path)):
                while place.count("/") > 1:
                    names.setdefault(place, os.path.basename(place))
                    place = os.path.dirname(place)
    home = os.path.expanduser("~").rstrip("/")
    names |= {home: "~"} if home else {}
    names |= {quote(path, safe=""): quote(name, safe="") for path, name in names.items()}
    found = re.compile(rf"(?<![\w.~-])(?:{'|'.join(map(re.escape, sorted(names, key=len, reverse=True)))})(?![\w-])")
    return lambda text: found.sub(lambda match: names[match[0]], text) if names else text


def own_sources(*sources: str | list[str]) -> tuple[str | list[str], ...]:
    """Drop sample data as soon as one source is the user's own, so that the two never mix.

    Parameters
    ----------
    *sources : str or list of str
        The sources of one notebook or command; ``""`` and ``[]`` stand for none.

    Returns
    -------
    tuple
        The sources as given; if one of them is not sample data, those that are become ``""`` or ``[]``.
    """
    if all(_is_sample_name(name) for source in sources for name in _listed(source)):
        return sources
    return tuple(type(source)() if any(map(_is_sample_name, _listed(source))) else source for source in sources)


def is_sample(source: object) -> bool:
    """Return whether a source names sample data, such as ``samples:crafter``."""
    return any(isinstance(name, str) and _is_sample_name(name) for name in _listed(source))


def _listed(source: object) -> list:
    return [name for name in (source if isinstance(source, list) else [source]) if name]


def _is_sample_name(name: str) -> bool:
    return name.startswith(_SAMPLES)


def read_storage_options(path: str | os.PathLike) -> StorageOptions:
    """Read storage options from a JSON file, which can be readable by its owner only.

    Parameters
    ----------
    path : str or path
        A local file; it holds one object, such as ``{"key": "…", "secret": "…"}`` for S3.

    Returns
    -------
    dict
        Options for fsspec.

    Raises
    ------
    SourceError
        If it does not exist, or holds no JSON object; its contents are not repeated.
    """
    from evalkit.io.read import read_json

    try:
        options = read_json(path)
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror or error}") from None
    except ValueError:
        raise SourceError(f"{path}: not a JSON file") from None
    if not isinstance(options, dict):
        raise SourceError(f"{path}: holds no JSON object")
    return options


def _sample(text: str) -> str:
    root = Path(_samples())
    path = root / text.removeprefix(_SAMPLES)
    if not path.exists() or path.resolve() == root.resolve():
        known = ", ".join(f"samples:{p.name}" for p in sorted(root.iterdir()) if _is_sample_folder(p))
        raise SourceError(f"{text}: no such samples; there are {known}")
    return str(path)


def _samples() -> str:
    """Return the folder of the sample data."""
    from importlib.resources import files as package_files  # its import takes as long as the rest of this module

    return os.path.join(str(package_files("evalkit")), "samples")


def _is_sample_folder(path: Path) -> bool:
    return path.is_dir() and not path.name.startswith(("_", "."))


def _normal_url(url: str) -> str:
    """Normalise a URL to the form of paths here."""
    from urllib.parse import unquote

    if protocol_of(url) in ("file", "local"):
        return _as_archive(_existing(unquote(url.partition("://")[2])))
    if match := _INNER.fullmatch(url):
        archive = _normal_url(match["archive"]) if is_url(match["archive"]) else _existing(match["archive"])
        return f"{match['protocol']}://{archive}{INSIDE}{match['inner'].strip('/')}"
    if protocol_of(url) in ("zip", "tar") and INSIDE not in url:
        return f"{protocol_of(url)}://{_existing(url.partition('://')[2])}{INSIDE}"
    return url


def paths_of(text: str) -> list[str]:
    """Return the files and folders that a name or glob stands for; see `list_source` for names and errors."""
    return expand(text)[1]


def expand(text: str) -> tuple[str | None, list[str]]:
    """Return the files and folders that a name stands for; for a glob also the folder that is searched."""
    refuse_credentials(text)
    if text.startswith(_SAMPLES) and has_magic(text):
        text = os.path.join(_samples(), text.removeprefix(_SAMPLES))
    glob_like = has_magic(text)
    try:
        if glob_like and is_url(text):
            from evalkit.io.remote import glob_remote

            url = _normal_url(text)
            base, paths = _fixed_part(url), glob_remote(url)
        elif glob_like and not os.path.lexists(text):
            text = os.path.expanduser(text)
            base, paths = _fixed_part(text), list(map(_as_archive, sorted(glob.glob(text, recursive=True))))
        else:
            return None, [resolve(text)]
    except OSError as error:
        raise SourceError(f"{text}: {error.strerror or error}") from None
    if not paths:
        raise SourceError(f"{text}: no file matches")
    return base, paths


def _fixed_part(pattern: str) -> str:
    """Return the folder of a glob before its first special character."""
    names = pattern.split("/")
    return "/".join(names[: next(i for i, name in enumerate(names) if has_magic(name))])
