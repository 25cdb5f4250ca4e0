"""A judge: a function from a transcript and a rubric to a label, here without any model or provider.

    python examples/judge_runs.py samples:trajectories/harbor verdicts.csv
    evalkit label samples:trajectories/harbor --question "Did the agent test its change?" --output labels.csv
    evalkit judges samples:trajectories/harbor --labels labels.csv --verdicts verdicts.csv

To use a language model, send it `prompt(transcript, rubric)` in `judge` and return whether its answer is yes. evalkit
needs only the file of verdicts, so any client will do; `evalkit judges` then shows how far to trust it.
"""

import csv
import re
import sys

import evalkit
from evalkit.io import SourceError
from evalkit.kinds import Transcript

RUBRIC = "Answer yes if the agent ran tests, or looked at the result, after its last change of a file; else no."
CHANGE = re.compile(r"sed -i|>\s*\w|\bwrite|\bedit|\bmv\b|\bcp\b", re.IGNORECASE)
CHECK = re.compile(r"test|check|verify|diff|\bcat\b|\bls\b", re.IGNORECASE)


def prompt(transcript: Transcript, rubric: str) -> str:
    """Return what a language model would be asked; texts of logs may try to instruct it, so keep them apart."""
    return f"{rubric}\n\n<transcript>\n{transcript.text(last=40, width=2_000)}\n</transcript>\n\nAnswer yes or no."


def judge(transcript: Transcript, rubric: str) -> bool:
    """Label a run by rule: whether a command that checks follows the last one that changes something."""
    commands = [turn.text for turn in transcript.turns if turn.role == "action"]
    changed = [place for place, command in enumerate(commands) if CHANGE.search(command)]
    after = commands[changed[-1] + 1 :] if changed else commands
    return any(CHECK.search(command) for command in after)


def main(source: str, output: str) -> None:
    """Judge every run of a source whose transcript can be read, and write the verdicts."""
    logs = evalkit.load(source)
    with open(output, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["run_id", "judge", "label"])
        for run_id in logs.runs["run_id"]:
            try:
                transcript = logs.show(run_id)
            except SourceError:
                continue  # a run without a verdict
            writer.writerow([run_id, "rule", "yes" if judge(transcript, RUBRIC) else "no"])


if __name__ == "__main__":
    main(*sys.argv[1:])
