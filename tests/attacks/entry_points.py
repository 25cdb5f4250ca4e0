"""Every command and function that takes text or files from users; ``{}`` is replaced by what is tested."""

from functools import partial

from click.testing import CliRunner

import evalkit
from evalkit import crafter, mindcraft, steps
from evalkit.cli import main
from evalkit.crafter import benchmark
from evalkit.display.follow import Following
from evalkit.io import read_file, write_frame
from evalkit.kinds.detection import describe_source
from evalkit.reports import plan

KINDS = ("mindcraft", "crafter", "steps")


def of_kinds(*lines: str) -> list[str]:
    """Give command lines for each kind, whose name stands for ``KIND``."""
    return [line.replace("KIND", kind) for line in lines for kind in KINDS]


READ = [  # what is given is a file or folder to read
    *of_kinds("KIND {}", "KIND {} --list all", "collect KIND {} -o out", "show {} --kind KIND"),
    "mindcraft samples:mindcraft/runs --tasks {}",
    "mindcraft samples:mindcraft/runs --storage-options {}",
    "collect steps samples:steps -o {}",
    "show {}",
    "view {} -o out",
    "detect {}",
    "compare {}",
    "report {}",
    "steps zip://{}!/",
    "steps tar://{}!/",
    "steps file://{}",
]
VALUES = [  # a value
    "crafter samples:crafter --where model_name={}",
    "show samples:mindcraft/runs --run {}",
    "compare samples:mindcraft/runs --baseline {}",
    "report step_evaluation -p {} a",
]
NAMED = [  # a name, a value or an output
    *of_kinds("KIND samples:KIND --output {}", "collect KIND samples:KIND -o {}/x"),
    *VALUES,
    "mindcraft samples:mindcraft/runs --pattern {}",
    "mindcraft samples:mindcraft/runs --list {}",
    "show samples:mindcraft/runs --kind {}",
    "view samples:steps -o {}/x",
    "compare samples:mindcraft/runs --option {} {}",
    "report step_evaluation -p history {}",
    "report step_evaluation -p history gone --name {}",
    "report step_evaluation -p history gone -o {}",
    "notebooks {}",
    "{}",
    "mindcraft --{}",
]
READERS = {
    "load": evalkit.load,
    **{f"{module.__name__}.load": module.load for module in (mindcraft, crafter, steps)},
    "tasks": lambda given: mindcraft.load("samples:mindcraft/runs", tasks=given),
    "collect": partial(mindcraft.collect, output="out"),
    "load_task_definitions": mindcraft.load_task_definitions,
    "analyze_agent_log": mindcraft.analyze_agent_log,
    "evaluate_trace": crafter.evaluate_trace,
    "load_runs": benchmark.load_runs,
    "read_file": read_file,
}
FUNCTIONS = READERS | {
    "describe_source": describe_source,
    "Following": lambda given: Following(mindcraft.KIND, given, {}).look().text,
    "write_frame": lambda given: write_frame(benchmark.reference_scores(), f"{given}.csv"),
    "plan": lambda given: plan(["step_evaluation"], values={"history": given}),
    "provenance": lambda given: evalkit.provenance(given),
}


def run(line, given=""):
    """Run a command with what is given; it must end by itself, with a message or a table, not by an exception."""
    result = CliRunner().invoke(main, [word.replace("{}", str(given)) for word in line.split()])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.output.strip()
    return result
