"""Every door through which others' text or files come in: ``{}`` stands for what is given."""

from functools import partial

from click.testing import CliRunner

import evalkit
from evalkit import crafter, mindcraft, steps
from evalkit.cli import main
from evalkit.crafter import benchmark
from evalkit.io import read_file, write_frame
from evalkit.kinds.detection import describe_source
from evalkit.kinds.follow import Following
from evalkit.reports import plan

KINDS = ("mindcraft", "crafter", "steps")
READ = {  # what is given is a file or folder to read
    **{kind: (kind, "{}") for kind in KINDS},
    **{f"{kind} --list": (kind, "{}", "--list", "all") for kind in KINDS},
    **{f"collect {kind}": ("collect", kind, "{}", "-o", "out") for kind in KINDS},
    **{f"show --kind {kind}": ("show", "{}", "--kind", kind) for kind in KINDS},
    "--tasks": ("mindcraft", "samples:mindcraft/runs", "--tasks", "{}"),
    "--storage-options": ("mindcraft", "samples:mindcraft/runs", "--storage-options", "{}"),
    "collect -o": ("collect", "steps", "samples:steps", "-o", "{}"),
    "show": ("show", "{}"),
    "view": ("view", "{}", "-o", "out"),
    "detect": ("detect", "{}"),
    "compare": ("compare", "{}"),
    "report": ("report", "{}"),
    "zip archive": ("steps", "zip://{}!/"),
    "tar archive": ("steps", "tar://{}!/"),
    "file URL": ("steps", "file://{}"),
}
NAMED = {  # a name, a value or an output
    **{f"{kind} --output": (kind, f"samples:{kind}", "--output", "{}") for kind in KINDS},
    **{f"collect {kind} -o": ("collect", kind, f"samples:{kind}", "-o", "{}/x") for kind in KINDS},
    "--pattern": ("mindcraft", "samples:mindcraft/runs", "--pattern", "{}"),
    "--list": ("mindcraft", "samples:mindcraft/runs", "--list", "{}"),
    "--where": ("crafter", "samples:crafter", "--where", "model_name={}"),
    "show --run": ("show", "samples:mindcraft/runs", "--run", "{}"),
    "show --kind": ("show", "samples:mindcraft/runs", "--kind", "{}"),
    "view -o": ("view", "samples:steps", "-o", "{}/x"),
    "compare --baseline": ("compare", "samples:mindcraft/runs", "--baseline", "{}"),
    "compare --option": ("compare", "samples:mindcraft/runs", "--option", "{}", "{}"),
    "report -p": ("report", "step_evaluation", "-p", "history", "{}"),
    "report, a parameter's name": ("report", "step_evaluation", "-p", "{}", "a"),
    "report --name": ("report", "step_evaluation", "-p", "history", "not there", "--name", "{}"),
    "report -o": ("report", "step_evaluation", "-p", "history", "not there", "-o", "{}"),
    "notebooks": ("notebooks", "{}"),
    "a command": ("{}",),
    "an option": ("mindcraft", "--{}"),
}
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


def run(arguments, given=""):
    """Run a command with what is given; it must end by itself, with a message or a table, not by an exception."""
    result = CliRunner().invoke(main, [argument.replace("{}", str(given)) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.output.strip()
    return result
