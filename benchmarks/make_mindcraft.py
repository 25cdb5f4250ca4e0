"""Generate Mindcraft task runs of real size: ``python benchmarks/make_mindcraft.py FOLDER [--tasks N]``.

The logs resemble real ones. They are JSON with an indent of 2. Three quarters of the turns are a line of chat or the
short answer of a command (about 90 characters). The rest are long: lists of items, crafting plans, code, talk. Two of
five models write emoji. Backslashes are 3 % of the bytes; in four real logs with few lists, they are 1 to 1.5 %.
"""

import argparse
import json
import random
from pathlib import Path

ITEMS = ("wheat", "bread", "oak_log", "coal", "iron_ingot", "baked_potato", "crafting_table", "stick", "cobblestone")
SAYINGS = (
    "Hey, do you want to collaborate and make some bread together?",
    "Got it! Here's what I have.",
    "I'm having trouble giving you the item. Maybe you can come closer and try again?",
    "Hmm, seems something went wrong. Let me try that again.",
    "Great! Now we can craft it. Can you look for more coal while I wait at the furnace?",
    "On my way!",
    "Let's split the work: I collect the wheat and you go and find some eggs and sugar near the river.",
)
COMMANDS = (
    '!givePlayer("{agent}", "{item}", {n})',
    '!collectBlocks("{item}", {n})',
    '!craftRecipe("{item}", {n})',
    '!goToPlayer("{agent}", 3)',
    "!inventory",
    "!craftable",
)
ANSWERS = (
    "Code output:\nYou have reached {agent}.\n70\nDiscarded {n} {item}.\n{agent} received {n} {item}.\n",
    "Code output:\nSuccessfully crafted {item}, you now have {n} {item}.\n",
    "Invalid item type: {item}s.",
    "Recent behaviors log: \n\n",
    "Code output:\nCollected {n} {item}.\n",
)
LONG = (  # role, beginning, line, end of line
    ("system", "\nNEARBY_BLOCKS\n", "- {item}: {n}", "\n"),
    ("system", "You need to craft:\n", "Craft {n} {item} -> {n} of what you are still missing", "\n"),
    ("assistant", "I will write code. !newAction(`", '    await skills.collectBlock(bot, "{item}", {n});', "\n"),
    ("user", "Jill_1: (FROM OTHER BOT)", "{say}", " "),
)
EMOJI = ("🎉", "👍", "🍞", "⛏️")


def short_turn(rng: random.Random, emoji: bool) -> dict[str, str]:
    """Return a line of chat, from the agent or another agent, or the answer of a command."""
    words = {"agent": rng.choice(("Andy_0", "Jill_1")), "item": rng.choice(ITEMS), "n": rng.randint(1, 9)}
    role = rng.choice(("assistant", "system", "user"))
    if role == "system":
        return {"role": role, "content": rng.choice(ANSWERS).format(**words)}
    text = rng.choice(SAYINGS)
    if rng.random() < 0.6:
        text += " " + rng.choice(COMMANDS).format(**words)
    if emoji and rng.random() < 0.2:
        text += " " + rng.choice(EMOJI)
    return {"role": role, "content": text if role == "assistant" else f"Jill_1: (FROM OTHER BOT){text}"}


def long_turn(rng: random.Random) -> dict[str, str]:
    """Return a turn of 0.5 to 4 kB: a list of blocks, a crafting plan, code or talk."""
    size = rng.randint(500, 4000)
    role, head, line, end = rng.choice(LONG)
    text = head
    while len(text) < size:
        text += line.format(item=rng.choice(ITEMS), n=rng.randint(1, 64), say=rng.choice(SAYINGS)) + end
    return {"role": role, "content": text}


def make_turns(rng: random.Random, size: int, emoji: bool) -> list[dict[str, str]]:
    """Return turns of about `size` bytes in total."""
    turns, written = [], 0
    while written < size:
        turn = long_turn(rng) if rng.random() < 0.25 else short_turn(rng, emoji)
        turns.append(turn)
        written += len(turn["content"]) + 70  # for the JSON around the text
    return turns


def make_runs(folder: Path, models: int = 5, tasks: int = 400, seed: int = 1, longest: int = 58_000) -> int:
    """Write runs of 2 or 3 agents as ``model/task/agent_0.json``, 10 to 60 kB each, and return the number of bytes."""
    rng = random.Random(seed)
    pools = [[make_turns(rng, rng.randint(9_000, longest), emoji) for _ in range(60)] for emoji in (False, True)]
    written = 0
    for model in range(models):
        for task in range(tasks):
            run = folder / f"model-{model}" / f"multiagent_cooking_1_bread_{task}_cake"
            run.mkdir(parents=True, exist_ok=True)
            for agent in range(rng.randint(2, 3)):
                turns = list(rng.choice(pools[model % 5 > 2]))
                rng.shuffle(turns)
                if agent == 0:
                    turns.append({"role": "system", "content": f"Task ended with score : {rng.randint(0, 1)}"})
                log = {
                    "memory": "We met at the farm. Jill_1 has the wheat, I have the coal.",
                    "turns": turns,
                    "self_prompting_state": 0,
                    "self_prompt": None,
                    "taskStart": 1_757_845_200_000 + model * 10_000_000 + task * 1000 + agent,
                    "last_sender": "Jill_1",
                }
                data = json.dumps(log, ensure_ascii=False, indent=2).encode()
                (run / f"agent_{agent}.json").write_bytes(data)
                written += len(data)
    return written


def main() -> None:
    """Generate runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", type=int, default=5)
    parser.add_argument("--tasks", type=int, default=400)
    arguments = parser.parse_args()
    written = make_runs(arguments.folder, arguments.models, arguments.tasks)
    print(f"{written / 1e6:.0f} MB in {arguments.folder}")


if __name__ == "__main__":
    main()
