"""Generate Mindcraft task runs of real size: ``python benchmarks/make_mindcraft.py FOLDER [--tasks N]``."""

import argparse
import json
import random
from pathlib import Path

WORDS = ("collect", "the", "wheat", "then", "craft", "bread", "near", "table", "while", "you", "look", "for", "coal")


def make_turns(rng: random.Random, size: int) -> list[dict[str, str]]:
    """Make turns of about `size` bytes in all, a fifth of them with an emoji."""
    turns, written = [], 0
    while written < size:
        role = rng.choice(("assistant", "system", "user"))
        text = " ".join(rng.choices(WORDS, k=rng.randint(40, 400)))
        if role == "assistant":
            text += ' !givePlayer("Jill_1", "bread", 1)'
        if role == "system":
            text = "Code output:\n" + "\n".join(f"- {word}: {i}" for i, word in enumerate(text.split()))
        if rng.random() < 0.2:
            text += " 🎉"
        turns.append({"role": role, "content": text})
        written += len(text)
    return turns


def make_runs(folder: Path, models: int = 5, tasks: int = 400, seed: int = 1) -> int:
    """Write runs of 2 or 3 agents, logs of 10 to 60 kB, as ``model/task/agent_0.json``; return the bytes written."""
    rng = random.Random(seed)
    pool = [make_turns(rng, rng.randint(9_000, 58_000)) for _ in range(60)]
    written = 0
    for model in range(models):
        for task in range(tasks):
            run = folder / f"model-{model}" / f"multiagent_cooking_1_bread_{task}_cake"
            run.mkdir(parents=True, exist_ok=True)
            for agent in range(rng.randint(2, 3)):
                turns = list(rng.choice(pool))
                rng.shuffle(turns)
                if agent == 0:
                    turns.append({"role": "system", "content": f"Task ended with score : {rng.randint(0, 1)}"})
                start = 1_757_845_200_000 + model * 10_000_000 + task * 1000 + agent
                log = {"memory": "we met at the farm", "turns": turns, "taskStart": start, "last_sender": None}
                data = json.dumps(log, ensure_ascii=False).encode()
                (run / f"agent_{agent}.json").write_bytes(data)
                written += len(data)
    return written


def main() -> None:
    """Generate as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", type=int, default=5)
    parser.add_argument("--tasks", type=int, default=400)
    arguments = parser.parse_args()
    written = make_runs(arguments.folder, arguments.models, arguments.tasks)
    print(f"{written / 1e6:.0f} MB in {arguments.folder}")


if __name__ == "__main__":
    main()
