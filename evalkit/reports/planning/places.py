"""Locate notebooks and params files: those of the current folder take precedence over evalkit's own."""

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import evalkit
from evalkit._names import nearest
from evalkit.io.paths import SourceError
from evalkit.io.write import check_path

PARAMS_FILES = (".yaml", ".yml")
NOTEBOOK = ".ipynb"


def shipped(name: str) -> Path:
    """Return evalkit's own folder ``notebooks`` or ``params``, in its package or beside it (checkout)."""
    package = Path(evalkit.__file__).parent
    return package / name if (package / name).is_dir() else package.parent / name


class Places(NamedTuple):
    """Folders of notebooks and of params files, in order of precedence."""

    notebooks: Sequence[Path]
    params: Sequence[Path]

    @classmethod
    def of(cls, notebooks: str | os.PathLike | None = None, params: str | os.PathLike | None = None) -> "Places":
        """Return the given folders; by default those of the current folder, then evalkit's own."""
        given = {"notebooks": notebooks, "params": params}
        return cls(*(_local_and_shipped(name) if folder is None else [Path(folder)] for name, folder in given.items()))

    def all_notebooks(self) -> dict[str, Path]:
        """Return every notebook by its name."""
        paths = [path for folder in reversed(self.notebooks) for path in sorted(folder.glob(f"*{NOTEBOOK}"))]
        return {path.stem: path for path in paths}

    def notebook(self, name: str, what: str = "notebook") -> Path:
        """Find a notebook by its name; the error calls it a `what`."""
        known = self.all_notebooks()
        if name in known:
            return known[name]
        where = "" if known else f" in {' and '.join(map(str, self.notebooks))}"
        raise SourceError(f"{name}: no such {what}; {nearest(name, sorted(known))}{where}")

    def params_of(self, notebook: str) -> list[Path]:
        """Return the params files of a notebook, from the first folder that has any."""
        return next(filter(None, (_params_files(folder, notebook) for folder in self.params)), [])

    def all_params(self) -> list[Path]:
        """Return every params file of the first folder of params that exists."""
        folder = next((folder for folder in self.params if folder.is_dir()), self.params[0])
        if files := _params_files(folder):
            return files
        cause = "holds no NOTEBOOK/REPORT.yaml" if folder.is_dir() else "is not there"
        raise SourceError(
            f"{folder}: the folder {cause}; name a folder of logs or a notebook, or say --params DIR (each file in it "
            "is a report, and the folder the file lies in names the notebook)"
        )


def copy_notebooks(folder: str | os.PathLike, names: Iterable[str] = ()) -> list[Path]:
    """Copy evalkit's own notebooks into a folder for editing."""
    check_path(os.fspath(folder))
    place, target = Places([shipped("notebooks")], ()), Path(folder)
    sources = [place.notebook(name) for name in names] or list(place.all_notebooks().values())
    existing = [str(target / source.name) for source in sources if (target / source.name).exists()]
    if existing:
        raise SourceError(f"{', '.join(existing)}: there already, and not overwritten; nothing was copied")
    try:
        target.mkdir(parents=True, exist_ok=True)
        return [Path(shutil.copyfile(source, target / source.name)) for source in sources]
    except OSError as error:
        raise SourceError(f"{error.filename2 or error.filename or target}: {error.strerror}") from error


def _local_and_shipped(name: str) -> list[Path]:
    local, packaged = Path(name), shipped(name)
    return [local] if local.absolute() == packaged else [local, packaged]


def _params_files(params: Path, notebook: str = "*") -> list[Path]:
    return sorted(p for p in params.glob(f"{notebook}/*") if p.suffix in PARAMS_FILES and not p.name.startswith("."))
