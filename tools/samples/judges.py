"""Generate the samples of judges: made-up runs with short transcripts, hand labels, and the verdicts of four judges.

    python -m tools.samples.judges

Runs, labels and verdicts are drawn with the probabilities below. They do not come from people or models. The result is
the same every time.
"""

import csv
import json
import random
from pathlib import Path
from typing import Any

from evalkit.labels.answers import COLUMNS

ROOT = Path(__file__).parents[2] / "evalkit/samples/judges"
QUESTION = "Did the agent verify its fix?"
MODELS = {"alder-large": (0.75, 0.7), "birch-70b": (0.55, 0.5), "cedar-8b": (0.3, 0.35)}  # success, verifying
TASKS = 80
JUDGES = {"judge-a": (0.88, 0.9), "judge-b": (0.55, 0.94), "judge-c": (0.9, 0.35)}  # sensitivity, specificity
PEOPLE = {"ann": (60, 0.0), "bob": (25, 0.12)}  # number of labels, and share of differing answers
BUGS = ("drops the last column", "fails on an empty file", "counts a day twice", "ignores the time zone")
CHECKS = ("$ python -m pytest -q\n3 passed", "$ python check.py\nok", "$ make test\nall tests passed")


def main() -> None:
    """Write the sample files."""
    rng = random.Random(7)
    ROOT.mkdir(parents=True, exist_ok=True)
    truth: dict[str, int] = {}
    with (ROOT / "runs.jsonl").open("w") as file:
        for model, (success, verifying) in MODELS.items():
            for task in range(TASKS):
                run = f"{model}-{task:02}"
                truth[run] = int(rng.random() < verifying)
                solved = int(rng.random() < success)
                messages = conversation(rng, truth[run])
                row = {"run_id": run, "model": model, "task": f"bug-{task:02}", "solved": solved, "messages": messages}
                file.write(json.dumps(row) + "\n")
    with (ROOT / "verdicts.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["run_id", "judge", "label"])
        for judge, (sensitivity, specificity) in JUDGES.items():
            for run, true in truth.items():
                said = rng.random() < (sensitivity if true else 1 - specificity)
                writer.writerow([run, judge, "yes" if said else "no"])
    sample = rng.sample(list(truth), len(truth))
    with (ROOT / "labels.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for person, (number, others) in PEOPLE.items():
            for place, run in enumerate(sample[:number]):
                label = truth[run] if rng.random() >= others else 1 - truth[run]
                when = f"2026-09-14T{9 + place // 60:02}:{place % 60:02}:00Z"
                writer.writerow([run, "", QUESTION, label, person, when, ""])


def conversation(rng: random.Random, verified: int) -> list[dict[str, Any]]:
    """Return the messages of a run in which the agent verified its fix or did not."""
    bug = rng.choice(BUGS)
    messages = [
        {"role": "user", "content": f"The report {bug}. Please mend it."},
        {"role": "assistant", "content": "I read report.py, and found the line."},
        {"role": "assistant", "content": "I changed the line."},
    ]
    if verified:
        command, _, result = rng.choice(CHECKS).partition("\n")
        messages += [{"role": "assistant", "content": command}, {"role": "user", "content": result}]
    return [*messages, {"role": "assistant", "content": "The report is correct now."}]


if __name__ == "__main__":
    main()
