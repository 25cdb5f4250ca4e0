"""What the user chose: notebooks and params files, by name or path, or all of them."""

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

PARAMS_FILES = (".yaml", ".yml")


class Target(NamedTuple):
    """A notebook, and the params file its values come from, if any."""

    notebook: Path
    params_file: Path | None = None

    @property
    def where(self) -> str:
        """What a fault of this choice is reported for."""
        return str(self.params_file or self.notebook)


def find_targets(
    targets: Iterable[str], params: Path, notebooks: Path, *, once: bool = False
) -> tuple[list[Target], list[str]]:
    """Find the notebooks and params files that are meant.

    Parameters
    ----------
    targets : iterable of str
        Names or paths of notebooks, and params files; none means every params file of `params`.
    params, notebooks : Path
    once : bool
        Take a notebook that is named by itself, without its params files.

    Returns
    -------
    choices : list of Target
    faults : list of str
        What was not found.
    """
    faults: list[str] = []
    targets = list(targets)
    if not targets:
        targets = [str(file) for file in _params_files(params)]
        if not targets:
            cause = "holds no NOTEBOOK/REPORT.yaml" if params.is_dir() else "is not there"
            faults.append(
                f"{params}: the folder {cause}; name a notebook, or say --params DIR (each file in it is a report, "
                "and the folder the file lies in names the notebook)"
            )
    choices = []
    for target in targets:
        path = Path(target)
        if path.suffix in PARAMS_FILES:
            choices += _of_file(path, notebooks, faults)
        else:
            notebook = path if path.suffix == ".ipynb" else _find(target, notebooks, faults)
            files = [] if once or not notebook else _params_files(params, notebook.stem)
            choices += [Target(notebook, file) for file in files or (None,)] if notebook else []
    return choices, faults


def _of_file(path: Path, notebooks: Path, faults: list[str]) -> list[Target]:
    if not path.is_file():
        faults.append(f"{path}: no such params file")
        return []
    notebook = _find(path.resolve().parent.name, notebooks, faults, f"{path}: ")
    return [Target(notebook, path)] if notebook else []


def _params_files(params: Path, notebook: str = "*") -> list[Path]:
    return sorted(p for p in params.glob(f"{notebook}/*") if p.suffix in PARAMS_FILES and not p.name.startswith("."))


def _find(name: str, notebooks: Path, faults: list[str], where: str = "") -> Path | None:
    path = notebooks / f"{name}.ipynb"
    if path.is_file():
        return path
    if not notebooks.is_dir():
        faults.append(
            f"{where}{notebooks}: no such folder; the notebooks come with a checkout of evalkit: "
            "run this in the checkout, or say --notebooks DIR, or name a notebook by its path"
        )
        return None
    there = sorted(p.stem for p in notebooks.glob("*.ipynb"))
    near = difflib.get_close_matches(name, there, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(there) or 'none'}"
    faults.append(f"{where}{path}: no such notebook; {hint}")
    return None
