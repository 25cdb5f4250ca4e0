"""Benchmark the time and memory of scoring Crafter traces, compared with a plain program that uses json.load.

    python -m benchmarks.crafter                                # generated traces with images of realistic size
    python -m benchmarks.crafter --traces ../shared/data/crafter/traces
    python -m benchmarks.crafter --quick                        # takes seconds

Everything runs in one process with a warm disk cache. The programs alternate within each round, and each runs once
untimed and once timed. Each figure is the median over rounds. Times are processor times of the process, so that other
work on the machine does not count. The bound is the time for reading the bytes and searching them once. No reader that
looks at every byte can be faster.
"""

import base64
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import click

from evalkit.crafter import ACHIEVEMENTS, TIERS, WEIGHTS, evaluate_all_traces
from evalkit.crafter.format import TIER_OF

os.environ["EVALKIT_CACHE"] = "off"  # so that every round reads and parses

NEEDLE = b'"event_metadata"'
TURNS = 20
IMAGE, MAP = 64 * 64 * 3, 64 * 64 + 2  # sizes of the image and the map in an observation, in bytes
WORDS = ("move", "up", "to", "the", "tree", "and", "collect", "wood", "for", "a", "table", "then", "make", "pickaxe")


def generate(folder: Path, count: int, turns: int = TURNS) -> None:
    """Write traces that resemble traces of agents with images: about 3.5 MB each, four fifths of it images."""
    for number in range(count):
        rng = random.Random(number)
        events, messages = [], []
        status = dict.fromkeys(ACHIEVEMENTS, False)
        for turn in range(turns):
            before, name = observation(rng, status), rng.choice(ACHIEVEMENTS)
            unlocked = turn % 5 == 4 and not status[name]
            status[name] = status[name] or unlocked
            after = observation(rng, status)
            events += turn_events(rng, turn, before, after, name if unlocked else None)
            messages.append({"content": after, "message_type": "observation"})
        config = {
            "metadata_type": "episode_config",
            "data": {"difficulty": "easy", "model_name": f"model-{number % 3}"},
        }
        trace = {"session_id": f"crafter_episode_{number}", "session_metadata": [config]}
        trace |= {"message_history": messages, "event_history": events, "created_at": ""}
        (folder / f"session_{number:04}.json").write_text(json.dumps(trace, indent=2))


def observation(rng: random.Random, status: dict[str, bool]) -> dict:
    """Return a state with an image and a map."""
    return {
        "inventory": {name: rng.randrange(10) for name in (*TIERS["easy"], *TIERS["medium"], "health")},
        "achievements_status": dict(status),
        "player_position": [rng.randrange(64), rng.randrange(64)],
        "num_steps_taken": rng.randrange(1000),
        "semantic_map_text": "\n".join(" ".join(rng.choices(("grass", "tree", "stone"), k=7)) for _ in range(7)),
        "observation_image_base64": base64.b64encode(rng.randbytes(IMAGE)).decode(),
        "observation_image_shape": [64, 64, 3],
        "world_material_map_base64": base64.b64encode(rng.randbytes(MAP)).decode(),
        "world_material_map_shape": [64, 64],
    }


def turn_events(rng: random.Random, turn: int, before: dict, after: dict, unlocked: str | None) -> list[dict]:
    """Return the three events of a turn. Every other turn has an invalid action, which repeats both states."""
    prompt = " ".join(rng.choices(WORDS, k=1200))
    call = {"model": "model", "messages": [{"role": "user", "content": prompt}] * 2}
    invalid = {"hook_name": "invalid_action", "data": {"action": "do", "before_state": before, "after_state": after}}
    named = unlocked and {
        "hook_name": f"{TIER_OF[unlocked]}_achievement",
        "data": {"achievements": [unlocked]},
    }
    observed = {"system_state_before": {"observation": before}, "system_state_after": {"observation": after}}
    shown = {"system_state_before": {"public_state": before}, "system_state_after": {"public_state": after}}
    metadata = {"metadata": {"turn": turn}}
    return [
        {"llm_call_records": [call], **metadata, "event_metadata": []},
        {"actions": [5], **observed, **metadata, "event_metadata": [invalid] if turn % 2 else []},
        {"reward": 0.0, **shown, **metadata, "event_metadata": [named] if named else []},
    ]


def plain_way(folder: Path) -> list[dict]:
    """Score a folder with a plain program: read each file with json.load and count its hooks."""
    results = []
    for path in sorted(folder.glob("*.json")):
        try:
            with open(path) as file:
                events = json.load(file).get("event_history", [])
        except ValueError:
            continue
        counts, trajectory = Counter(), []
        for event in events:
            of_event = Counter()
            for hook in event.get("event_metadata") or []:
                names = (hook.get("data") or {}).get("achievements") or [""]
                for name in names if hook["hook_name"] == "new_achievement" else []:
                    of_event[f"{TIER_OF[name]}_achievement"] += 1
                if hook["hook_name"] in WEIGHTS:
                    of_event[hook["hook_name"]] += len(names)
            counts += of_event
            score = sum(n * WEIGHTS[name] for name, n in of_event.items())
            if of_event:
                trajectory.append("+" if score > 0 else "-" if score < 0 else "0")
        score = sum(n * WEIGHTS[name] for name, n in counts.items())
        results.append({"total_score": score, "counts": dict(counts), "trajectory": "".join(trajectory)})
    return sorted(results, key=lambda result: -result["total_score"])


def bound(folder: Path) -> int:
    """Read the bytes of every file and search them once."""
    count = 0
    for path in sorted(folder.glob("*.json")):
        with open(path, "rb") as file:
            count += file.read().count(NEEDLE)
    return count


WAYS: dict[str, Callable] = {
    "plain way": plain_way,
    "evaluate_all_traces": evaluate_all_traces,
    "bound": bound,
}


def check(folder: Path) -> None:
    """Exit if the two programs don't agree."""
    pairs = zip(plain_way(folder), evaluate_all_traces(folder), strict=True)
    for plain, evalkit in pairs:
        if abs(plain["total_score"] - evalkit["total_score"]) > 1e-9:
            raise SystemExit(f"the ways differ: {plain} {evalkit}")


def measure(folder: Path, rounds: int) -> None:
    """Print the speed, ratio and bound for one folder."""
    check(folder)
    sizes = [path.stat().st_size for path in folder.glob("*.json")]
    size = sum(sizes) / 1e6
    times: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(rounds):
        for name, way in WAYS.items():
            way(folder)  # untimed, so that no program pays for memory that another has just freed
            start = time.process_time()
            way(folder)
            times[name].append(time.process_time() - start)
    print(f"{len(sizes)} files, {size:.1f} MB, {rounds} rounds; bound: one search for {NEEDLE.decode()}")
    print(f"   {'':22} {'MB/s':>8} {'× plain':>8} {'lowest':>8} {'highest':>8}")
    for name, seconds in times.items():
        ratios = [plain / this for plain, this in zip(times["plain way"], seconds, strict=True)]
        spread = f"{min(ratios):>8.2f} {max(ratios):>8.2f}"
        print(f"   {name:22} {size / statistics.median(seconds):>8.0f} {statistics.median(ratios):>8.2f} {spread}")


def measure_memory(counts: list[int], turns: int) -> None:
    """Print the peak memory of a new process for folders of different sizes."""
    print("peak memory of a process, MB")
    print(f"   {'traces':>8}" + "".join(f"{name:>22}" for name in ("nothing", *list(WAYS)[:2])))
    for count in counts:
        with tempfile.TemporaryDirectory() as folder:
            generate(Path(folder), count, turns)
            print(f"   {count:>8}" + "".join(f"{peak(way, folder):>22.1f}" for way in ("nothing", "plain_way", "own")))


def peak(way: str, folder: str) -> float:
    """Return the peak memory of a process that scores a folder, in MB."""
    calls = {"nothing": "", "plain_way": f"plain_way(Path({folder!r}))", "own": f"evaluate_all_traces({folder!r})"}
    code = (
        "from pathlib import Path\n"
        "from evalkit.crafter import evaluate_all_traces; from benchmarks.crafter import plain_way\n"
        f"{calls[way]}\n"  # VmHWM, not ru_maxrss, which a process inherits from its parent
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    root = str(Path(__file__).resolve().parents[1])
    paths = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    out = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        text=True,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    return float(out.stdout) / 1024


@click.command()
@click.option(
    "--traces", type=click.Path(exists=True, file_okay=False), help="A folder of traces, in addition to generated ones."
)
@click.option("--rounds", default=9, show_default=True)
@click.option("--count", default=24, show_default=True, help="Number of generated traces.")
@click.option("--quick", is_flag=True, help="Few and short traces, as a smoke test.")
def main(traces: str | None, rounds: int, count: int, quick: bool) -> None:
    """Measure the scoring of Crafter traces."""
    turns, rounds, count = (2, 2, 3) if quick else (TURNS, rounds, count)
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder), count, turns)
        print("generated traces with images")
        measure(Path(folder), rounds)
    if traces:
        print(f"\n{traces}")
        measure(Path(traces), rounds)
    print()
    measure_memory([2, 4] if quick else [6, 24, 96], turns)


if __name__ == "__main__":
    main()
