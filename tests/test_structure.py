"""The shape of the package: few modules to a folder, short files and functions, few floors of imports."""

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "evalkit"
FILES = sorted(PACKAGE.rglob("*.py"))
FOLDERS = sorted({path.parent for path in FILES})
MODULES, LINES, FUNCTION_LINES, FLOORS = 12, 300, 40, 6
MANY_FLOORS = {"evalkit": 7}  # the six of the design, on small helpers of the whole package


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a function without its signature and docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def imported(path: Path) -> set[str]:
    """Give the modules that a file imports when it is itself imported, or from within a function."""
    names = set()
    checking = {id(n) for node in ast.walk(tree(path)) if _only_for_types(node) for n in ast.walk(node)}
    for node in ast.walk(tree(path)):
        if id(node) in checking:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "later":
            names.add(ast.literal_eval(node.args[0]).partition(":")[0])
    return names


def _only_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def floors(folder: Path) -> dict[str, int]:
    """Give the floor of every member of a folder, a module or a folder: one above the highest it imports."""
    package = ".".join(folder.relative_to(ROOT).parts)
    members = {
        path.stem if path.is_file() else path.name: path for path in folder.iterdir() if path.suffix in ("", ".py")
    }
    members = {own: path for own, path in members.items() if not own.startswith("__")}

    def below(own: str) -> set[str]:
        path = members[own]
        files = [path] if path.is_file() else [file for file in path.rglob("*.py") if file.name != "__main__.py"]
        used = set().union(*map(imported, files))
        return {other for other in members if other != own and any(_within(n, f"{package}.{other}") for n in used)}

    @cache
    def floor(own: str) -> int:
        return 1 + max(map(floor, below(own)), default=0)

    return {own: floor(own) for own in members}


def _within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


@pytest.mark.parametrize("folder", FOLDERS, ids=name)
def test_a_folder_holds_few_modules_on_few_floors(folder):
    modules = [path for path in folder.glob("*.py") if not path.name.startswith("__")]
    assert len(modules) <= MODULES
    assert max(floors(folder).values(), default=0) <= MANY_FLOORS.get(name(folder), FLOORS), floors(folder)


@pytest.mark.parametrize("path", FILES, ids=name)
def test_a_file_and_its_functions_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LINES
    functions = [node for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    assert [function.name for function in functions if body_lines(function) > FUNCTION_LINES] == []
