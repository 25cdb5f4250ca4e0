"""What is imported is declared in pyproject.toml, what is declared is imported, and other lists agree with it."""

import ast
import re
import sys
import tomllib
from datetime import date
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from evalkit import __version__

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]
OPTIONAL = PROJECT["optional-dependencies"]
GROUPS = {
    group: [text for text in texts if isinstance(text, str)] for group, texts in PYPROJECT["dependency-groups"].items()
}
FOLDERS = ("evalkit", "tests", "benchmarks", "examples", "tools")
OWN = {"evalkit", "tests", "benchmarks", "tools", "examples", "conftest"}

# modules that only an extra brings, and the files that may import them
EXTRA_OF = {
    "aiohttp": "http", "crafter": "crafter", "distributed": "distributed", "gseapy": "samples", "ipywidgets": "lab",
    "krippendorff": "labels", "langgraph": "workflow",
    "scanpy": "samples",
}  # fmt: skip
# frameworks that tests compare with where they are installed
ORACLES = {"harbor", "inspect_ai", "minisweagent"}
# declared, and used without an import
WITHOUT_IMPORT = {
    "dask": "of distributed",
    "hatchling": "builds the wheel", "import-linter": "the command lint-imports",
    "itables": "for notebooks of users", "jupyterlab": "a command",
    "langgraph-checkpoint-sqlite": "adds a module to langgraph", "mkdocs-material": "a theme of mkdocs",
    "mkdocstrings-python": "a plugin of mkdocs", "nbstripout": "a command", "nbval": "a plugin of pytest",
    "openpyxl": "of pandas",
    "mypy": "a command", "pandas-stubs": "for mypy", "types-psutil": "for mypy", "types-pyyaml": "for mypy",
    "types-tabulate": "for mypy",
    "pre-commit": "a command", "pytest-timeout": "a plugin of pytest", "pytest-xdist": "a plugin of pytest",
    "ruff": "a command", "s3fs": "of fsspec",
}  # fmt: skip
NOT_ON_CONDA_FORGE = {"axe-playwright-python", "crafter", "moto", "playwright"}  # moto: without the extra `server`
CONDA_NAMES = {"jupyter-client": "jupyter_client", "matplotlib": "matplotlib-base"}
HEAD = """\
# {purpose}: the packages of pyproject.toml from conda-forge, and the ones that conda-forge lacks from PyPI.
# Written by: python -m tests.test_dependencies
name: {name}
channels:
  - conda-forge
dependencies:
"""


def names(requirements) -> set[str]:
    return {canonicalize_name(Requirement(text).name) for text in requirements}


CORE = names(PROJECT["dependencies"])
EXTRAS = {extra: names(texts) for extra, texts in {**OPTIONAL, **GROUPS}.items()}


def called(function: ast.expr) -> str:
    """The name of a function of a module, which may import a module itself; empty for others."""
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return f"{function.value.id}.{function.attr}"
    return ""


def imported(source: str) -> set[str]:
    """The first names of the modules that a text of Python imports."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
        elif isinstance(node, ast.Call) and called(node.func) in ("pytest.importorskip", "lazy_loader.load"):
            found.add(ast.literal_eval(node.args[0]).partition(".")[0])
    return found - OWN - ORACLES - sys.stdlib_module_names


@cache
def modules_of(folder: str) -> dict[str, list[str]]:
    """Every module from elsewhere that the code in a folder imports, with the files that do."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        for module in imported(path.read_text("utf-8")):
            found.setdefault(module, []).append(str(path.relative_to(ROOT)))
    return found


all_distributions = cache(packages_distributions)


def distributions(module: str) -> set[str]:
    """The packages that bring a module."""
    known = {canonicalize_name(name) for name in all_distributions().get(module, [])}
    return known or {canonicalize_name(module)}  # of an extra that tests do not install


@pytest.mark.parametrize("folder", FOLDERS)
def test_what_is_imported_is_declared(folder):
    declared = CORE if folder == "evalkit" else CORE.union(*EXTRAS.values())
    for module, files in modules_of(folder).items():
        also = EXTRAS.get(EXTRA_OF.get(module, ""), set())
        assert distributions(module) & (declared | also), f"{module}: imported by {', '.join(files[:3])}"


def test_what_is_declared_is_imported():
    imports = {folder: set().union(*map(distributions, modules_of(folder))) for folder in FOLDERS}
    assert sorted(CORE - imports["evalkit"]) == []
    assert sorted(set().union(*EXTRAS.values()) - set().union(*imports.values()) - WITHOUT_IMPORT.keys()) == []


def test_the_constraints_pin_all_that_is_declared_within_its_bounds():
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pairs = (line.split("==") for line in lines if "==" in line)
    pinned = {canonicalize_name(name): version for name, version in pairs}
    tested = [text for extra, texts in {**OPTIONAL, **GROUPS}.items() if extra != "samples" for text in texts]
    for requirement in map(Requirement, PROJECT["dependencies"] + tested):
        name = canonicalize_name(requirement.name)
        assert name in pinned, name
        assert requirement.specifier.contains(pinned[name]), name


def conda_environment(name: str, purpose: str, groups: dict[str, list[str]]) -> str:
    """The text of an environment with the core dependencies and groups of others."""
    texts = PROJECT["dependencies"] + [text for group in groups.values() for text in group]
    conda, pip = ["pip"], ["--editable ."]
    for needed in sorted(map(Requirement, texts), key=lambda needed: needed.name):
        if needed.name in NOT_ON_CONDA_FORGE:
            pip.insert(-1, str(needed))
        else:
            conda.append(f"{CONDA_NAMES.get(needed.name, needed.name)}{needed.specifier}")
    lines = [f"  - {name}" for name in [f"python{PROJECT['requires-python']}", *conda, "pip:"]]
    return HEAD.format(name=name, purpose=purpose) + "\n".join([*lines, *(f"      - {name}" for name in pip), ""])


def conda_environments() -> dict[str, str]:
    """The texts of the environments, by file."""
    tested = {**OPTIONAL, "docs": GROUPS["docs"], "test": GROUPS["test"]}
    used = {extra: OPTIONAL[extra] for extra in ("excel", "http", "lab", "s3")}
    return {
        "environment.yml": conda_environment("evalkit", "For users of conda", used),
        "environment-test.yml": conda_environment("evalkit-test", "For users of conda who run the tests", tested),
    }


@pytest.mark.parametrize("file", ["environment.yml", "environment-test.yml"])
def test_the_conda_environments_agree_with_pyproject(file):
    text = (ROOT / file).read_text("utf-8")
    assert text == conda_environments()[file]
    assert {"jupyterlab>=4.2", "papermill>=2.6", "nbval>=0.11"} < set(yaml.safe_load(text)["dependencies"][:-1])


def test_the_version_is_the_same_in_all_files():
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", __version__)
    assert PROJECT["dynamic"] == ["version"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == __version__
    assert isinstance(citation["date-released"], date)
    assert {"cff-version", "message", "title", "authors", "license"} <= citation.keys()
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


if __name__ == "__main__":
    for file, text in conda_environments().items():
        (ROOT / file).write_text(text, "utf-8")
