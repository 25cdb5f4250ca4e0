"""The logs that `load` returns: frames, the ledger of files, and transcripts of runs."""

import shlex
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pandas as pd

from evalkit._html import render
from evalkit._text import counted_noun, listed, sentence
from evalkit.io.frames import summarise
from evalkit.io.paths import SourceError, StorageOptions, storage
from evalkit.io.secrets import masked
from evalkit.kinds.ids import find_runs
from evalkit.kinds.kind import Assembled, LogKind
from evalkit.kinds.runs import UNKNOWN
from evalkit.kinds.transcript import run_facts, transcript_of, turns_frame
from evalkit.kinds.turns import Transcript

MOST_MODELS, MOST_REASONS = 10, 5  # maximum numbers of models, and of reasons for unused files, in the summary


class Logs:
    """The result of `load`: frames by name, the first with one row per run, and the ledger of files.

    Each frame is an attribute, such as ``logs.agents``, and an item, such as ``logs["agents"]``. Some frames are built
    from the files of the runs on first access: ``turns``, if the kind has transcripts, and frames that the kind adds.
    `dir` lists them, too. `mindcraft.load`, `crafter.load` and the like return a subclass, whose attributes type
    checkers know; use items for the frames of any kind.

    Attributes
    ----------
    kind : LogKind
    sources : list of str
        The sources that were loaded together, as given; `source` joins them into one text.
    runs : DataFrame
        The first frame, with one row per run.
    turns : DataFrame
        One row per turn of all runs, with the columns `evalkit.kinds.transcript.TURNS`. A run whose file can no longer
        be read has no rows, and a warning names it.
    ledger : DataFrame
        One row per file of the sources: source, status, reason.
    chosen : Notes
        Choices that evalkit made because logs do not: columns, scorers, conditions. Every command prints them.
    storage_options : mapping, optional
        Options that were used to read remote files.
    """

    turns: pd.DataFrame  # built on first access

    def __init__(
        self,
        kind: LogKind,
        sources: Sequence[str],
        assembled: Assembled,
        ledger: pd.DataFrame,
        storage_options: StorageOptions = None,
    ) -> None:
        self.kind = kind
        self.sources = list(sources)
        self.source = ", ".join(sources)
        self.runs = assembled.frames[kind.runs]
        self.ledger = ledger
        self.chosen = assembled.chosen
        self.storage_options = storage_options
        self._frames = dict(assembled.frames)
        self._lazy = dict(assembled.lazy)
        if kind.transcript is not None and "turns" not in self._frames:
            self._lazy.setdefault("turns", partial(turns_frame, self))
        vars(self).update(assembled.frames, **assembled.attributes)

    if not TYPE_CHECKING:  # type checkers refuse an attribute that the class does not declare

        def __getattr__(self, name):
            """Build a frame on first access."""
            make = vars(self).get("_lazy", {}).get(name)
            if make is None:
                raise AttributeError(f"{name!r}: these logs have {', '.join(dir(self))}")
            with storage(self.storage_options):
                vars(self)[name] = make()
            return vars(self)[name]

    def __getitem__(self, name: str) -> pd.DataFrame:
        """Return a frame by name. Raises KeyError if these logs have no such frame."""
        if name not in self._frames and name not in self._lazy and name != "ledger":
            raise KeyError(f"{name!r}: the frames are {', '.join([*self._frames, *self._lazy, 'ledger'])}")
        frame: pd.DataFrame = getattr(self, name)
        return frame

    def __dir__(self) -> list[str]:
        return [name for name in sorted({"show", *vars(self), *vars(self).get("_lazy", ())}) if name[0] != "_"]

    def __iter__(self) -> Iterator[pd.DataFrame]:
        """Return the frames in order, then the ledger: ``episodes, events, achievements, ledger = load(…)``."""
        return iter([*self._frames.values(), self.ledger])

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(table)} {name}" for name, table in self._frames.items())
        text = f"<{self.kind.name} logs from {self.source}: {counts}; {summarise(self.ledger['status'])}>"
        return "\n".join([*map(sentence, self.chosen.only("no_model").notes), text])

    def _repr_html_(self) -> str:
        """Return a small table for notebooks: models, frames and files, and why some files were not used."""
        models = self.runs["model_name"].fillna(UNKNOWN).value_counts()
        named = [f"{model} ({counted_noun(runs, 'run')})" for model, runs in models.items()]
        lines = [("source", self.source), ("models", listed(named, MOST_MODELS, "{} more models"))]
        for name, table in self._frames.items():
            lines.append((name, f"{counted_noun(len(table), 'row')}, {counted_noun(table.shape[1], 'column')}"))
        if self.chosen:
            lines.append(("chosen", str(self.chosen)))
        lines.append(("ledger", summarise(self.ledger["status"])))
        others = self.ledger[self.ledger["status"] != "used"].groupby(["status", "reason"])["source"]
        reasons = others.agg(["first", "size"]).nlargest(MOST_REASONS, "size").itertuples()
        lines += [(status, f"{counted_noun(n, 'file')}, as {path}: {why}") for (status, why), path, n in reasons]
        return render("logs.html.j2", kind=self.kind.name, lines=lines)

    def show(self, run_id: str = "", *, mask: bool = True) -> Transcript:
        """Return the transcript of a run. The beginning of its id is enough; a single run needs no id.

        Known forms of credentials are masked. Raises SourceError if there is no such run, if there are several, or if
        one of the run's files can't be read.
        """
        ids = self.runs["run_id"]
        if ids.empty:
            raise SourceError(f"{self.source}: no run was found; the ledger lists the files")
        found = self.runs[ids == run_id] if (ids == run_id).any() else self.runs[ids.str.startswith(run_id)]
        if found.empty:  # an id from before the log grew or moved
            found = self.runs[ids.isin(find_runs(pd.Series([run_id]), ids))]
        if len(found) != 1:
            several = f"{len(found):,} runs begin with {run_id!r}" if run_id else f"which of {len(found):,} runs?"
            what = f"no run {run_id!r}" if found.empty else several
            raise SourceError(f"{self.source}: {what}; `evalkit show {shlex.quote(self.source)} --list all` lists them")
        run = {str(name): value for name, value in found.iloc[0].items()}
        with storage(self.storage_options):
            files = self.kind.run_files(self, run)
            made = transcript_of(self.kind, files, mask=mask)
        facts = [f"{name} {text}" for name, text in run_facts(self.kind, run, files)]
        return made._replace(facts=[*(map(masked, facts) if mask else facts), *made.facts])
