"""Benchmark reports of very many runs from a dataset: elapsed and processor time, largest page, and peak memory.

    python -m benchmarks.load                                # 100,000 runs, 20,000 episodes, 50,000 steps
    python -m benchmarks.load --share 0.01 --share 0.1 --share 1 --only mindcraft
    python -m benchmarks.load --keep /tmp/data               # generates the data once

For each kind, the benchmark generates small logs, collects them into a dataset, and makes a report with every notebook
of the kind. The store is empty before each batch. Processor time is the sum over all processes, so that other work on
the machine counts little. Memory is the largest resident set of any process of the batch.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import click

from evalkit.crafter import ACHIEVEMENTS
from evalkit.crafter.format import TIER_OF

MODELS = 10
RUN = """
import resource, subprocess, sys
done = subprocess.run([sys.executable, "-m", "evalkit", *sys.argv[1:]], capture_output=True, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
sys.exit(done.stdout + done.stderr if done.returncode else 0)
"""  # run in a separate process, because RUSAGE_CHILDREN covers all children that a process has waited for
TASKS = (
    "multiagent_cooking_{}_bread",
    "multiagent_crafting_{}_chest_full_plan__depth_0",
    "materials_1_rooms_1_window_0_carpet_0_variant_{}",
)


def mindcraft_runs(n: int) -> Iterator[tuple[str, object]]:
    """Yield runs of two agents with logs of about 300 bytes. Later models succeed more often."""
    rng = random.Random(0)
    for i in range(n):
        model, number = divmod(i, max(n // MODELS, 1))
        score = float(rng.random() < 0.3 + 0.04 * model)
        folder = f"exp/model-{model:03}/{TASKS[number % len(TASKS)].format(number)}"
        for agent in ("Andy_0", "Jill_1"):
            turns = [
                {"role": "user", "content": f"hi from {agent}, {model} {number}"},
                {"role": "assistant", "content": '!collectBlocks("wheat", 1)'},
                {"role": "system", "content": f"Task ended with score : {score}"},
            ]
            yield f"{folder}/{agent}_0.json", {"name": agent, "turns": turns}


def crafter_episodes(n: int) -> Iterator[tuple[str, object]]:
    """Yield episodes of three turns, with up to three achievements and some invalid actions."""
    rng = random.Random(0)
    for i in range(n):
        status, events = dict.fromkeys(ACHIEVEMENTS, False), []
        for turn in range(3):
            hooks, name = [], rng.choice(ACHIEVEMENTS[: 2 + i % MODELS])
            if not status[name]:
                status[name] = True
                hooks.append({"hook_name": f"{TIER_OF[name]}_achievement", "data": {"achievements": [name]}})
            if rng.random() < 0.2:
                hooks.append({"hook_name": "invalid_action", "data": {"action": "do"}})
            about = {"turn": turn, "action_names": ["noop", "do"]}
            events.append({"actions": [0, 5], "metadata": about, "event_metadata": hooks})
        state = {"public_state": {"achievements_status": status}}
        events.append({"metadata": {"turn": 2}, "event_metadata": [], "system_state_after": state})
        config = {"difficulty": ("easy", "hard")[i % 2], "model_name": f"model-{i % MODELS:03}", "seed": i // MODELS}
        metadata = [{"metadata_type": "episode_config", "data": config}]
        trace = {"session_id": f"crafter_episode_{i}", "session_metadata": metadata, "event_history": events}
        yield f"{i // 1000:03}/session_{i:06}.json", trace


def step_histories(n: int) -> Iterator[tuple[str, object]]:
    """Yield histories of ten steps. Three quarters of the steps succeed, a tenth of which have no result."""
    rng = random.Random(0)
    for i in range(max(n // 10, 1)):
        history = []
        for index in range(10):
            success, silent = rng.random() < 0.75, rng.random() < 0.1
            terms = {"go": {"top_terms": ["T cell activation", f"term {index}"], "top_pvalues": [1e-5, 0.01]}}
            step = {"function_name": "perform_enrichment_analyses", "parameters": {"cell_type": f"cell {index}"}}
            record = {"step_index": index, "step": step, "success": success, "result_type": "structured"}
            record |= {"result": {} if silent else terms} if success else {"error": f"no genes of cell {index}"}
            history.append(record)
        yield f"{i // 1000:03}/history_{i:05}.json", {"execution_history": history}


class Load(NamedTuple):
    """The logs of a kind: their maximum number, their unit, and their generator."""

    most: int
    unit: str
    make: Callable[[int], Iterator[tuple[str, object]]]
    notebooks: tuple[str, ...]
    source: str


LOADS = {
    "mindcraft": Load(
        100_000,
        "Mindcraft runs",
        mindcraft_runs,
        ("model_overview", "model_comparison", "cooking_blocked_agents"),
        "runs",
    ),
    "crafter": Load(20_000, "Crafter episodes", crafter_episodes, ("crafter_scores",), "traces"),
    "steps": Load(50_000, "steps", step_histories, ("step_evaluation",), "history"),
}


def make(kind: str, n: int, folder: Path) -> Path:
    """Write logs, collect them into a dataset, and return its path."""
    if not folder.is_dir():
        for name, content in LOADS[kind].make(n):
            path = folder / "logs" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(content))
        evalkit("collect", kind, str(folder / "logs"), "--output", str(folder / "dataset"))
    return folder / "dataset"


def evalkit(*arguments: str) -> tuple[float, float]:
    """Run a command, and return the processor time of its processes in seconds, and their peak memory in MB."""
    done = subprocess.run([sys.executable, "-c", RUN, *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    used, peak = map(float, done.stdout.split())
    return used, peak


def report(kind: str, dataset: Path, work: Path) -> tuple[float, float, float, float]:
    """Make the reports of a dataset. Return elapsed and processor time, size of the largest page, and peak memory."""
    load, output = LOADS[kind], work / "reports"
    os.environ["EVALKIT_CACHE"] = str(work / "store")
    chosen = ["-p", "model", "model-003"] if kind == "mindcraft" else []
    start = time.perf_counter()
    used, peak = evalkit("report", *load.notebooks, "-p", load.source, str(dataset), *chosen, "--output", str(output))
    seconds = time.perf_counter() - start
    return seconds, used, max(page.stat().st_size for page in output.rglob("*.html")) / 1e6, peak


@click.command()
@click.option("--only", "kinds", multiple=True, type=click.Choice(list(LOADS)), default=tuple(LOADS))
@click.option(
    "--share", "shares", multiple=True, default=(1.0,), help="Share of the largest size; repeatable for comparison."
)
@click.option("--keep", type=click.Path(path_type=Path), help="Folder for keeping and reusing logs.")
def main(kinds: tuple[str, ...], shares: tuple[float, ...], keep: Path | None) -> None:
    """Make reports for each kind and size, and print time and memory."""
    print(f"{'logs':24} {'seconds':>8} {'CPU s':>8} {'CPU ms each':>12} {'× first':>8} {'page MB':>8} {'peak MB':>8}")
    with tempfile.TemporaryDirectory() as made:
        for kind in kinds:
            first = None
            for i, share in enumerate(shares):
                n = int(LOADS[kind].most * share)
                dataset = make(kind, n, (keep or Path(made)) / f"{kind}-{n}")
                seconds, used, page, peak = report(kind, dataset, Path(made) / f"{kind}-{i}-work")
                each, what = used / n, f"{n:,} {LOADS[kind].unit}"
                first = first or each
                times = f"{seconds:8.1f} {used:8.1f} {1000 * each:12.3f} {each / first:8.2f}"
                print(f"{what:24} {times} {page:8.2f} {peak:8.0f}", flush=True)


if __name__ == "__main__":
    main()
