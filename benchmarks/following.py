"""How often a model is called ahead at some look while runs come in, though all are equal: a study of coverage.

    python -m benchmarks.following --samples 1000

Workers in parallel run two models of the same rates on the same tasks. One is quick where it succeeds and slow where it
fails, the other the reverse, so that the runs that have ended are no fair sample at any time but the last. A look
follows the end of every tenth run. Beside `evalkit.kinds.follow.Counted` stands what counted before: every run that has
ended, in the order of the starts.
"""

import heapq
from itertools import chain, product

import click
import numpy as np
import pandas as pd

from evalkit.kinds.follow import Counted
from evalkit.stats import difference_sequence

QUICK, SLOW, WORKERS, EVERY = 1.0, 10.0, 20, 10
JOBS = {  # in which order the workers take up the runs of (model, task)
    "a task by both": lambda n, rng: [(m, t) for t in range(n) for m in "ab"],
    "shuffled": lambda n, rng: [(m, int(t)) for m, t in rng.permutation(list(product("ab", range(n))))],
    "one model, then the other": lambda n, rng: [(m, t) for m in "ab" for t in range(n)],
    "the other follows in the same worker": lambda n, rng: [("a", t) for t in range(n)],
}


def following(samples: int, rng: np.random.Generator, tasks: tuple[int, ...] = (40, 120)) -> list[dict]:
    """Return the share of experiments in which a model is ahead at any look, in percent, before and now."""
    rows = []
    for (jobs, order), n, rate in product(JOBS.items(), tasks, (0.5, 0.2)):
        found = np.array([_ahead(_schedule(order(n, rng), n, rate, rng)) for _ in range(max(samples // 5, 20))])
        before, now, counted = found.mean(axis=0)
        row = {"workers take up": jobs, "tasks": n, "rate": rate, "ended runs, any look": f"{100 * before:.1f}"}
        rows.append(row | {"runs by start, any look": f"{100 * now:.1f}", "tasks counted half-way": f"{counted:.0f}"})
    return rows


def _schedule(jobs: list[tuple[str, int]], n: int, rate: float, rng: np.random.Generator) -> pd.DataFrame:
    """Run the jobs in parallel; tasks differ in difficulty, and the models are equal on each."""
    rates = rng.beta(2 * rate, 2 * (1 - rate), n)
    follows = len(jobs) == n
    workers, rows, queue = [0.0] * WORKERS, [], list(reversed(jobs))
    while queue:
        start = heapq.heappop(workers) + rng.exponential(0.05)
        job = queue.pop()
        for model, task in (job, ("b", job[1])) if follows else (job,):
            success = rng.random() < rates[task]
            end = start + rng.exponential(QUICK if success == (model == "a") else SLOW)
            rows.append((f"{model}{task}", model, task, start, end, float(success)))
            start = end
        heapq.heappush(workers, start)
    return pd.DataFrame(rows, columns=["run_id", "model_name", "task", "started", "ended", "value"])


def _ahead(runs: pd.DataFrame) -> tuple[bool, bool, int]:
    """Return whether a model is ahead at any look, by what has ended and by what counts; and what counts half-way."""
    counted, before, half = Counted(), False, 0
    looks = np.sort(runs["ended"])[EVERY - 1 :: EVERY]
    for number, now in enumerate(chain(looks, [np.inf])):
        seen = runs[runs["started"] <= now]
        counted.see(seen.assign(running=seen["ended"] > now))
        values = counted.values("a", "b")  # they only get more, so the last look decides for all
        if number == len(looks) // 2:
            half = len(values[0])
        ended = seen[seen["ended"] <= now].sort_values("started")
        own = {model: group.set_index("task")["value"] for model, group in ended.groupby("model_name")}
        if len(own) == 2 and not before:
            shared = own["a"].index.intersection(own["b"].index, sort=False)
            before = bool(difference_sequence(own["a"][shared], own["b"][shared])["decided"].any())
    return before, bool(difference_sequence(*values)["decided"].any()), half


@click.command()
@click.option("--samples", default=1000, show_default=True, help="A fifth of them in each cell.")
@click.option("--seed", default=0, show_default=True)
def main(samples: int, seed: int) -> None:
    """Print the table."""
    print(pd.DataFrame(following(samples, np.random.default_rng(seed))).to_string(index=False))


if __name__ == "__main__":
    main()
