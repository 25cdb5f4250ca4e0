"""Generate the Mindcraft samples: made-up models, tasks and runs, in the real formats and wordings.

No model ever reached any of these scores: outcomes are drawn with the probabilities below. Run it with
``python -m tools.samples.mindcraft``. The result is the same every time.
"""

import json
import random
import shutil
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2] / "evalkit/samples/mindcraft"
START = 1_757_845_200_000  # 14 September 2025, epoch milliseconds


class Model(NamedTuple):
    """A made-up model, with its success probability by task type and the layout of its runs on disk."""

    name: str
    cooking: float
    techtree: float
    construction: float
    layout: str  # local, s3, profile or by_hand


MODELS = (
    Model("alder-large", 0.75, 0.62, 0.60, "local"),
    Model("birch-lab/birch-70b", 0.58, 0.45, 0.40, "s3"),
    Model("cedar-8b-sft", 0.35, 0.40, 0.25, "profile"),
    Model("dogwood-8b", 0.12, 0.10, 0.10, "by_hand"),
)
KINDS = {"cooking": "cooking", "techtree": "crafting", "construction": "construction"}  # folder names by task type
LEVELS = ("easy", "medium", "hard")
NAMES = ("Andy", "Jill", "Bob", "Maya", "Omar")
ITEMS = ("bread", "cake", "cookie", "pumpkin_pie", "rabbit_stew", "golden_apple", "baked_potato")
CHAT = (
    "Let's split the work. I will look for {item} first.",
    "I have {n} of what we need for {item}. !inventory",
    'On my way. !goToPlayer("{mate}", 3)',
    'Here is what I can give you. !givePlayer("{mate}", "{item}", 1)',
    "Checking what is near. !nearbyBlocks",
    'I will craft it now. !craftRecipe("{item}", 1)',
    "Good teamwork 🎉, nearly done with {item}.",
)
REPLIES = (
    "Code output:\nYou have reached {mate}.\n",
    "INVENTORY\n- {item}: {n}\n",
    "NEARBY_BLOCKS\n- grass_block\n- oak_log\n",
)


def cooking_tasks() -> dict[str, dict[str, Any]]:
    """Return cooking tasks with 0, 1 and 2 blocked agents, some ids without the suffix, and tasks in Hell's Kitchen."""
    tasks: dict[str, dict[str, Any]] = {}
    pairs = [(ITEMS[i], ITEMS[(i + step) % len(ITEMS)]) for step, i in product((1, 2), range(7))]
    for number, pair in enumerate(pairs[:13]):
        first, second = sorted(pair)
        agents = (2, 2, 3, 2, 4)[number % 5]
        blocked = [str(agent) for agent in range(min(number % 3, agents))]
        suffix = "_blocked_access_" + "_".join(blocked) if blocked and number % 4 else ""
        tasks[f"multiagent_cooking_1_{first}_1_{second}{suffix}"] = {
            "conversation": f"Let's collaborate to make {first} and {second}.",
            "agent_count": agents,
            "target": {first: 1, second: 1},
            "type": "cooking",
            "timeout": 500,
            "blocked_access_to_recipe": blocked,
            "goal": f"Collaborate with other agents to make {first} and {second}.",
            "difficulty_metrics": {"total_recipe_steps": 4 + number % 5, "unique_target_items": 2},
            "difficulty": LEVELS[number % 3],
        }
    for first, second in (("bread", "cake"), ("cookie", "rabbit_stew"), ("baked_potato", "golden_apple")):
        tasks[f"multiagent_cooking_{first}_{second}_hells_kitchen"] = {
            "conversation": "I only have your recipe, and you only have mine.",
            "agent_count": 2,
            "target": [first, second],
            "type": "cooking",
            "task_type": "cooking",
            "timeout": 300,
            "blocked_access_to_recipe": [],
            "goal": {"0": f"Make {first}.", "1": f"Make {second}."},
            "difficulty": "hard",
        }
    return tasks


def crafting_tasks() -> dict[str, dict[str, Any]]:
    """Return crafting tasks with full, partial and no plan, at depths 0 to 2."""
    tasks = {}
    targets = [("pink_wool", 2, 0), ("lime_wool", 2, 1), ("activator_rail", 2, 2), ("crossbow", 3, 0)]
    targets += [("purple_bed", 2, 1), ("cyan_banner", 5, 5), ("shears", 2, 0), ("bookshelf", 1, 0)]
    for number, (target, agents, without) in enumerate(targets):
        plan = "full" if not without else "no" if without == agents else "partial"
        table = "_requires_ctable" * (number % 2)
        tasks[f"multiagent_crafting_{target}_{plan}_plan{table}__depth_{number % 3}"] = {
            "goal": f"Collaborate with other agents to craft a {target}",
            "conversation": f"Let's work together to craft a {target}.",
            "agent_count": agents,
            "target": target,
            "number_of_target": 1,
            "type": "techtree",
            "max_depth": number % 3 + 1,
            "depth": number % 3,
            "timeout": 300,
            "blocked_actions": {str(a): ["!getCraftingPlan"] if a < without else [] for a in range(agents)},
            "missing_items": [],
            "requires_ctable": bool(table),
            "difficulty": LEVELS[number % 3],
        }
    return tasks


def construction_tasks() -> dict[str, dict[str, Any]]:
    """Return construction tasks with different numbers of materials and rooms. Their scores are percentages."""
    return {
        f"materials_{m}_rooms_{r}_window_0_carpet_0_variant_{v}": {
            "type": "construction",
            "goal": "Make a structure with the blueprint below",
            "conversation": "Let's share materials and make a structure with the blueprint",
            "agent_count": 2 + (m == 3),
            "blueprint": {"materials": {}, "levels": []},
            "timeout": 900,
        }
        for m, r, v in ((1, 1, 0), (1, 2, 1), (2, 1, 0), (2, 2, 1), (3, 1, 0), (3, 2, 1))
    }


def conversation(rng: random.Random, names: list[str], agent: int, task: dict[str, Any], turns: int) -> list[dict]:
    """Return the turns of one agent, without the final message."""
    targets = task.get("target") or "stone_bricks"
    item = rng.choice(sorted(targets)) if isinstance(targets, (dict, list)) else targets
    mate = names[(agent + 1) % len(names)]
    words = {"item": item, "mate": mate, "n": rng.randint(1, 4)}
    goal = task["goal"] if isinstance(task["goal"], str) else task["goal"][str(min(agent, 1))]
    out = [{"role": "system", "content": f"You are self-prompting with the goal: '{goal}'. Respond:"}]
    for _ in range(turns):
        out.append({"role": "assistant", "content": rng.choice(CHAT).format(**words)})
        out.append({"role": "system", "content": rng.choice(REPLIES).format(**words)})
        if len(names) > 1:
            out.append({"role": "user", "content": f"{mate}: (FROM OTHER BOT)Working on {item}, how about you?"})
    return out


def log(turns: list[dict], start: int | None) -> dict[str, Any]:
    """Wrap turns in the format of an agent's memory file."""
    return {"memory": "", "turns": turns, "self_prompting_state": 0, "taskStart": start, "last_sender": None}


def score_of(rng: random.Random, model: Model, task: dict[str, Any]) -> str:
    """Draw the score of a run, in the form of its final message."""
    if task["type"] == "construction":
        blocks = round(min(max(rng.gauss(model.construction, 0.3), 0), 1) * 52)
        return f"{blocks / 52 * 100:.15g}"
    chance = getattr(model, task["type"])
    blocked = len(task.get("blocked_access_to_recipe", ()))
    chance *= (1, 0.75, 0.45)[blocked] * (0.7 if isinstance(task.get("target"), list) else 1)
    return str(int(rng.random() < chance))


def run_folder(model: Model, task_type: str, task_id: str) -> Path:
    """Return the folder of a run in the layout of its model."""
    kind = KINDS[task_type]
    folder = {
        "local": f"alder_{kind}_09-14_10-20",
        "s3": f"{kind}/{model.name}/{kind}_tasks/birch_{kind}",
        "profile": f"exp_{kind}_09-16_08-05",
        "by_hand": f"small-models/{model.name}",
    }[model.layout]
    return ROOT / "runs" / folder / task_id


def write_run(
    rng: random.Random, model: Model, task_id: str, task: dict[str, Any], repetition: int, start: int
) -> None:
    """Write the logs of one run."""
    folder = run_folder(model, task["type"], task_id)
    names = [f"{name}_{i}" for i, name in enumerate(NAMES[: task["agent_count"]])]
    score = score_of(rng, model, task)
    final = {"role": "system", "content": f"Task ended with score : {score}"}
    died = {"role": "system", "content": "You died at position x: 12.0, y: 64.0, z: -7.5 in the overworld."}
    by_hand = model.layout == "by_hand"
    silent = rng.random() < 0.04  # the run was cut off before scoring
    for agent, name in enumerate(names):
        turns = conversation(rng, names, agent, task, rng.randint(1, 2))
        if score == "0" and rng.random() < 0.15:
            turns.append(died)
        if not silent and (agent == 0 or rng.random() < 0.7):
            turns.append(final)
        file = folder / (f"agent_{agent}.json" if by_hand else f"{name}_{repetition}.json")
        write_json(file, log(turns, None if by_hand else start + agent))


def write_json(path: Path, value: Any) -> None:
    """Write JSON as the agents do."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=None, ensure_ascii=False), encoding="utf-8")


def write_results(tasks: dict[str, dict[str, dict]]) -> None:
    """Write the results files and profiles that name models."""
    profile = {"name": "Andy", "model": {"api": "made", "model": "cedar-8b-sft"}, "modes": {}}
    for task_type, kind in KINDS.items():
        text = {"total": len(tasks[task_type]), "successful": 0, "exp_name": f"alder_{kind}", "model": "alder-large"}
        text |= {"api": "made", "task_path": f"tasks/{kind}_tasks.json", "task_type": task_type}
        (ROOT / "runs" / f"alder_{kind}_09-14_10-20" / "results.txt").write_text(repr(text), encoding="utf-8")
        write_json(ROOT / "runs" / f"exp_{kind}_09-16_08-05" / "last_profile.json", profile)


def write_special_cases(tasks: dict[str, dict[str, dict]]) -> None:
    """Damage some runs in ways that occur in real runs."""
    cooking, crafting = list(tasks["cooking"]), list(tasks["techtree"])
    alder, birch, cedar, dogwood = MODELS
    # a truncated log, an empty one, and a run whose logs are all unreadable
    broken = run_folder(alder, "cooking", cooking[3])
    (broken / "Jill_1_0.json").write_bytes((broken / "Jill_1_0.json").read_bytes()[:200])
    (run_folder(cedar, "cooking", cooking[4]) / "Andy_0_0.json").write_bytes(b"")
    for file in run_folder(dogwood, "techtree", crafting[1]).glob("*.json"):
        file.write_bytes(file.read_bytes()[:90])
    # a stale copy: the folder of a crashed run contains the log of the previous task
    stale = run_folder(birch, "cooking", cooking[6]) / "Andy_0_0.json"
    stale.write_bytes((run_folder(birch, "cooking", cooking[5]) / "Andy_0_0.json").read_bytes())
    scored = "Task ended with score : "
    for model, task_type, task_id, *finals in (
        (cedar, "cooking", cooking[0], f"{scored}1", f"{scored}0"),
        (birch, "techtree", crafting[2], "Task timeout reached ended with code : 4"),
        (dogwood, "cooking", cooking[1], "Task timeout reached"),
        (alder, "techtree", crafting[0], "Task successful ended with code : 2"),
        (cedar, "techtree", crafting[3], f"{scored}0.85"),
        (dogwood, "techtree", crafting[4], f"{scored}undefined"),
    ):
        name = "agent_0.json" if model is dogwood else "Andy_0_0.json"
        add_turns(run_folder(model, task_type, task_id) / name, *finals)
    add_turns(run_folder(dogwood, "cooking", cooking[2]) / "agent_0.json", "Agent process restarted.", first=False)
    # a task without a definition, and an incomplete run without the log of one agent
    extra = run_folder(alder, "cooking", "multiagent_cooking_1_apple_pie_1_bread")
    write_json(extra / "Andy_0_0.json", log([{"role": "system", "content": f"{scored}1"}], START - 1))
    (run_folder(birch, "cooking", cooking[7]) / "Jill_1_0.json").unlink()
    # a chat message that quotes the final wording, which never counts
    quoted = [{"role": "user", "content": "Jill_1: (FROM OTHER BOT)It says Task ended with score : 1, we are done!"}]
    for file in run_folder(cedar, "cooking", cooking[8]).glob("*.json"):
        write_json(file, log(quoted, START + 77))


def add_turns(path: Path, *finals: str, first: bool = True) -> None:
    """Replace the final messages of a log; with `first` False, insert lines at the beginning instead."""
    data = json.loads(path.read_text(encoding="utf-8"))
    lines = [{"role": "system", "content": text} for text in finals]
    others = [t for t in data["turns"] if not (first and t["content"].startswith("Task "))]
    data["turns"] = others + lines if first else lines + others
    for other in path.parent.glob("*.json") if first else ():
        mate = json.loads(other.read_text(encoding="utf-8"))
        mate["turns"] = [t for t in mate["turns"] if not t["content"].startswith("Task ")]
        write_json(other, mate)
    write_json(path, data)


def main() -> None:
    """Write all samples, replacing existing ones."""
    rng = random.Random(20250914)
    tasks = {"cooking": cooking_tasks(), "techtree": crafting_tasks(), "construction": construction_tasks()}
    shutil.rmtree(ROOT, ignore_errors=True)
    for task_type, kind in KINDS.items():
        write_json(ROOT / "tasks" / f"{kind}_tasks.json", tasks[task_type])
    start = START
    for model in MODELS:
        for task_type, named in tasks.items():
            for number, (task_id, task) in enumerate(named.items()):
                twice = task_type == "cooking" and model.layout in ("local", "s3") and number % 3 == 0
                for repetition in range(1 + twice):
                    start += 600_000
                    write_run(rng, model, task_id, task, repetition, start)
    write_results(tasks)
    write_special_cases(tasks)
    # the same id with a different definition in a second file: only the path in results.txt tells which one applies
    first = next(iter(tasks["cooking"]))
    write_json(ROOT / "tasks" / "three_agents.json", {first: {**tasks["cooking"][first], "agent_count": 3}})


if __name__ == "__main__":
    main()
