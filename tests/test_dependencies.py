"""What is imported is declared in pyproject.toml, what is declared is imported, and the other lists agree with it."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
OWN = {"evalkit", "tests", "benchmarks", "tools", "examples", "conftest"}
PROVIDED_BY = {"scanpy": "scanpy", "gseapy": "gseapy"}  # modules of packages that tests do not install

# modules that only an extra brings, and the files that may import them
EXTRA_OF = {
    "aiohttp": "http", "crafter": "crafter", "distributed": "distributed", "gseapy": "samples", "langgraph": "workflow",
    "scanpy": "samples",
}  # fmt: skip
# frameworks that tests compare with where they are installed
ORACLES = {"harbor", "inspect_ai", "minisweagent"}
# declared, and used without an import
WITHOUT_IMPORT = {
    "dask": "of distributed",
    "hatchling": "builds the wheel", "import-linter": "the command lint-imports", "jupyterlab": "a command",
    "langgraph-checkpoint-sqlite": "adds a module to langgraph", "mkdocs-material": "a theme of mkdocs",
    "mkdocstrings-python": "a plugin of mkdocs", "nbstripout": "a command", "nbval": "a plugin of pytest",
    "mypy": "a command", "pandas-stubs": "for mypy", "types-psutil": "for mypy", "types-pyyaml": "for mypy",
    "types-tabulate": "for mypy", "types-tqdm": "for mypy",
    "pre-commit": "a command", "pytest-timeout": "a plugin of pytest", "pytest-xdist": "a plugin of pytest",
    "ruff": "a command", "s3fs": "of fsspec",
}  # fmt: skip
NOT_ON_CONDA_FORGE = {"axe-playwright-python", "crafter", "moto", "playwright"}  # moto: without the extra `server`
CONDA_NAMES = {"jupyter-client": "jupyter_client", "matplotlib": "matplotlib-base"}
HEAD = """\
# For conda users: the packages of pyproject.toml from conda-forge, and by pip what conda-forge lacks.
# It is written from there: python -m tests.test_dependencies
name: evalkit
channels:
  - conda-forge
dependencies:
"""


def names(requirements) -> set[str]:
    return {canonicalize_name(Requirement(text).name) for text in requirements} - {"evalkit"}


CORE = names(PROJECT["dependencies"])
EXTRAS = {extra: names(texts) for extra, texts in PROJECT["optional-dependencies"].items()}


def imported(source: str) -> set[str]:
    """The first names of the modules that a text of Python imports."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("importorskip"):
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


def distributions(module: str) -> set[str]:
    """The packages that bring a module."""
    known = {canonicalize_name(name) for name in _all_distributions().get(module, [])}
    return known or {PROVIDED_BY.get(module, canonicalize_name(module))}


_all_distributions = cache(packages_distributions)


def undeclared(folder: str, declared: set[str]) -> Iterator[str]:
    for module, files in modules_of(folder).items():
        also = EXTRAS.get(EXTRA_OF.get(module, ""), set())
        if not distributions(module) & (declared | also):
            yield f"{module}: imported by {', '.join(files[:3])}, declared nowhere"


def test_what_the_package_imports_is_declared():
    assert list(undeclared("evalkit", CORE)) == []


@pytest.mark.parametrize("folder", ["tests", "benchmarks", "examples", "tools"])
def test_what_other_code_imports_is_declared_for_tests(folder):
    assert list(undeclared(folder, CORE.union(*EXTRAS.values()))) == []


def test_what_is_declared_is_imported():
    by_package = set().union(*map(distributions, modules_of("evalkit")))
    assert sorted(CORE - by_package) == []
    everywhere = by_package.union(
        *(distributions(m) for folder in ("tests", "benchmarks", "tools") for m in modules_of(folder))
    )
    assert sorted(set().union(*EXTRAS.values()) - everywhere - WITHOUT_IMPORT.keys()) == []


def test_the_constraints_pin_all_that_is_declared_within_its_bounds():
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pinned = {
        canonicalize_name(name): version for line in lines if "==" in line for name, version in [line.split("==")]
    }
    texts = [
        *PROJECT["dependencies"],
        *(t for e, ts in PROJECT["optional-dependencies"].items() if e != "samples" for t in ts),
    ]
    for requirement in map(Requirement, texts):
        name = canonicalize_name(requirement.name)
        if name != "evalkit":
            assert name in pinned, name
            assert requirement.specifier.contains(pinned[name]), name


def conda_environment() -> str:
    """The text of environment.yml, with what tests need."""
    chosen = re.search(
        r"\[(.*)\]", next(text for text in PROJECT["optional-dependencies"]["test"] if "evalkit[" in text)
    )
    texts = PROJECT["dependencies"] + [
        text for extra in [*chosen[1].split(","), "test"] for text in PROJECT["optional-dependencies"][extra]
    ]
    requirements = sorted((r for r in map(Requirement, texts) if r.name != "evalkit"), key=lambda r: r.name)
    conda = [
        f"{CONDA_NAMES.get(r.name, r.name)}{r.specifier}" for r in requirements if r.name not in NOT_ON_CONDA_FORGE
    ]
    pip = [str(requirement) for requirement in requirements if requirement.name in NOT_ON_CONDA_FORGE]
    lines = [f"python{PROJECT['requires-python']}", "pip", *conda, "pip:"]
    return HEAD + "".join(f"  - {line}\n" for line in lines) + "".join(f"      - {p}\n" for p in [*pip, "--editable ."])


def test_the_conda_environment_is_that_of_the_project():
    text = (ROOT / "environment.yml").read_text("utf-8")
    assert text == conda_environment()
    assert {"jupyterlab>=4.2", "papermill>=2.6", "nbval>=0.11"} < set(yaml.safe_load(text)["dependencies"][:-1])


if __name__ == "__main__":
    (ROOT / "environment.yml").write_text(conda_environment(), "utf-8")
