"""Label a sample of runs or turns: the next unit, its transcript, and the file of labels."""

import getpass
import os
from typing import Any

from evalkit.io import SourceError, masked, storage
from evalkit.kinds import Logs, Transcript, find_runs, transcript_of
from evalkit.labels.answers import COLUMNS, append_answer, read_labels
from evalkit.labels.blind import blinded
from evalkit.labels.sample import Unit, draw, units_in

ANSWERS = {"yes": "1", "no": "0", "undecided": ""}  # labels by name


class Session:
    """Label runs or turns one by one; each label is on disk before the next unit is shown.

    Parameters
    ----------
    logs : Logs
    question : str
        A question whose answer is yes or no.
    output : path
        The file of labels. New labels are appended to an existing file, which several people may share.
    who : str
        Name of the person who labels; by default the user's name.
    number : int
        Number of units to label, including units that this person has already labelled.
    turns : bool
        Whether to label turns instead of runs.
    seed : int
        Seed of the random order; people with the same seed label the same units.

    Attributes
    ----------
    done : int
        Number of units of the sample that this person has labelled.
    left : list of Unit
        Remaining units, in the order in which they are shown.
    """

    def __init__(
        self,
        logs: Logs,
        question: str,
        output: str | os.PathLike,
        *,
        who: str = "",
        number: int = 60,
        turns: bool = False,
        seed: int = 0,
    ) -> None:
        if not question.strip():
            raise SourceError("ask a question that yes or no answers: --question TEXT")
        if logs.kind.transcript is None:
            raise SourceError(f"{logs.kind.name} logs can't be shown turn by turn, so they can't be labelled here")
        self.question = question
        self.path = os.fspath(output)
        self.who = who.strip() or getpass.getuser()
        self._logs = logs
        units = draw(logs, turns=turns, seed=seed).head(number)
        self._task_of = dict(zip(units["run_id"], units["task"], strict=True))
        labelled: set[Unit] = set()
        if os.path.exists(self.path) and os.path.getsize(self.path):
            with open(self.path, encoding="utf-8-sig", errors="replace") as file:
                if file.readline().strip() != ",".join(COLUMNS):
                    raise SourceError(
                        f"{self.path}: labels can't be added, as its columns are not {', '.join(COLUMNS)}"
                    )
            rows = read_labels(self.path).rows
            own = rows[rows["who"].eq(self.who) & rows["question"].eq(question)]
            labelled = set(units_in(own.assign(run_id=find_runs(own["run_id"], logs.runs["run_id"]))))
        sample = units_in(units)
        self.total = len(sample)
        self.left = [unit for unit in sample if unit not in labelled]

    @property
    def done(self) -> int:
        """Number of units of the sample that this person has labelled."""
        return self.total - len(self.left)

    def transcript(self, unit: Unit) -> Transcript:
        """Return the transcript of a unit without model and outcome; SourceError if it can't be read."""
        runs = self._logs.runs
        run: dict[Any, Any] = runs[runs["run_id"] == unit.run_id].to_dict("records")[0]
        with storage(self._logs.storage_options):
            made = transcript_of(self._logs.kind, self._logs.kind.run_files(self._logs, run))
        title = f"{self.done + 1} of {self.total}"
        if unit.turn is not None:
            title += f", turn {unit.turn}"
            made = made._replace(turns=made.turns[: unit.turn])
        task = self._task_of[unit.run_id]
        names = runs["model_name"].dropna().unique()
        return blinded(made, names, title, "" if task == unit.run_id else masked(task))

    def save(self, label: str, note: str = "") -> None:
        """Save the label of the first remaining unit, and continue with the next."""
        append_answer(self.path, self.left[0], self.question, label, self.who, note)
        del self.left[0]

    def put_off(self) -> None:
        """Move the first remaining unit to the end."""
        self.left.append(self.left.pop(0))
