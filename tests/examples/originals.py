"""Run the original MineCollab scripts, where they lie beside the checkout, in a process of their own.

Their imports that need the network, and the printer of tables, are replaced; folders are listed in the order of names.
Called as a script it is that process: a JSON list of calls comes in, a list of results goes out.
"""

import contextlib
import glob
import importlib
import io
import json
import os
import shutil
import subprocess
import sys
import types
from pathlib import Path
from typing import Any, ClassVar

SCRIPTS = Path(__file__).parents[3] / "shared/originals/mindcraft"
MODULES = {
    "evaluation": "evaluation_script",
    "crafting": "analyze_crafting_tasks",
    "analyse_results": "analyse_results",
    "cooking": "analyze_cooking_tasks",
    "construction": "analyze_construction_tasks",
}


def call_all(calls: list[tuple], folder: Path) -> list[dict[str, Any]]:
    """Call functions of the scripts: (script, function, arguments).

    Each answer has `result`, `tables` (each a list of rows, the header first), and `error`: the name of an exception.
    """
    (folder / "tasks").mkdir(parents=True)
    for path in SCRIPTS.glob("*.py"):
        shutil.copy(path, folder / "tasks" / path.name)  # they make folders beside their own
    command = [sys.executable, __file__, str(folder / "tasks")]
    done = subprocess.run(command, input=json.dumps(calls), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


class _Table:
    """Keeps what would be printed."""

    made: ClassVar[list["_Table"]] = []

    def __init__(self, names: list | None = None) -> None:
        self.rows = [names] if names else []
        self.made.append(self)

    def add_row(self, row: list) -> None:
        self.rows.append(row)


def _answer(script: str, function: str, arguments: list) -> dict[str, Any]:
    _Table.made = []
    answer: dict[str, Any] = {"error": ""}
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            answer["result"] = getattr(importlib.import_module(MODULES[script]), function)(*arguments)
        except Exception as error:
            answer["error"] = type(error).__name__
    return {**answer, "tables": [table.rows for table in _Table.made]}


def _main() -> None:
    for name in ("boto3", "botocore", "botocore.exceptions", "prettytable"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["botocore.exceptions"].ClientError = OSError
    sys.modules["prettytable"].PrettyTable = _Table
    sys.path.insert(0, sys.argv[1])
    listdir, find = os.listdir, glob.glob
    os.listdir = lambda *args: sorted(listdir(*args))
    glob.glob = lambda *args, **options: sorted(find(*args, **options))
    json.dump([_answer(*call) for call in json.load(sys.stdin)], sys.stdout, default=list)


if __name__ == "__main__":
    _main()
