"""Where notebooks and params files are: those of the current folder go before those that come with evalkit."""

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
    """Return the folder ``notebooks`` or ``params`` that comes with evalkit, in its package or beside it (checkout)."""
    package = Path(evalkit.__file__).parent
    return package / name if (package / name).is_dir() else package.parent / name


class Places(NamedTuple):
    """Folders of notebooks and of params files, the first that has one wins."""

    notebooks: Sequence[Path]
    params: Sequence[Path]

    @classmethod
    def of(cls, notebooks: str | os.PathLike | None = None, params: str | os.PathLike | None = None) -> "Places":
        """Take the folders that were named; else those of the current folder, then evalkit's own."""
        given = {"notebooks": notebooks, "params": params}
        return cls(*(_own_and_shipped(name) if folder is None else [Path(folder)] for name, folder in given.items()))

    def all_notebooks(self) -> dict[str, Path]:
        """Return every notebook by its name."""
        found = [path for folder in reversed(self.notebooks) for path in sorted(folder.glob(f"*{NOTEBOOK}"))]
        return {path.stem: path for path in found}

    def notebook(self, name: str, what: str = "notebook") -> Path:
        """Find a notebook by its name; `what` is what the error says it could have been.

        Raises
        ------
        SourceError
            Where there is none; it names the nearest, or all there are.
        """
        there = self.all_notebooks()
        if name in there:
            return there[name]
        where = "" if there else f" in {' and '.join(map(str, self.notebooks))}"
        raise SourceError(f"{name}: no such {what}; {nearest(name, sorted(there))}{where}")

    def params_of(self, notebook: str) -> list[Path]:
        """Return the params files of a notebook, from the first folder that has any."""
        return next(filter(None, (_params_files(folder, notebook) for folder in self.params)), [])

    def all_params(self) -> list[Path]:
        """Return every params file of the first folder of params that is there.

        Raises
        ------
        SourceError
            Where there is no such folder, or it holds none.
        """
        folder = next((folder for folder in self.params if folder.is_dir()), self.params[0])
        if files := _params_files(folder):
            return files
        cause = "holds no NOTEBOOK/REPORT.yaml" if folder.is_dir() else "is not there"
        raise SourceError(
            f"{folder}: the folder {cause}; name a folder of logs or a notebook, or say --params DIR (each file in it "
            "is a report, and the folder the file lies in names the notebook)"
        )


def copy_notebooks(folder: str | os.PathLike, names: Iterable[str] = ()) -> list[Path]:
    """Copy notebooks that come with evalkit, to be changed.

    Parameters
    ----------
    folder : path
        Is made where it is not there.
    names : iterable of str
        Which notebooks; none means all.

    Returns
    -------
    list of Path
        The copies.

    Raises
    ------
    SourceError
        For an unknown name, and where a notebook of that name is there already: nothing is copied then.
    """
    check_path(os.fspath(folder))
    place, target = Places([shipped("notebooks")], ()), Path(folder)
    sources = [place.notebook(name) for name in names] or list(place.all_notebooks().values())
    there = [str(target / source.name) for source in sources if (target / source.name).exists()]
    if there:
        raise SourceError(f"{', '.join(there)}: there already, and not overwritten; nothing was copied")
    try:
        target.mkdir(parents=True, exist_ok=True)
        return [Path(shutil.copyfile(source, target / source.name)) for source in sources]
    except OSError as error:
        raise SourceError(f"{error.filename2 or error.filename or target}: {error.strerror}") from error


def _own_and_shipped(name: str) -> list[Path]:
    own, theirs = Path(name), shipped(name)
    return [own] if own.absolute() == theirs else [own, theirs]


def _params_files(params: Path, notebook: str = "*") -> list[Path]:
    return sorted(p for p in params.glob(f"{notebook}/*") if p.suffix in PARAMS_FILES and not p.name.startswith("."))
