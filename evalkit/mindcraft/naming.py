"""Which model ran: it stands in neither log nor folder name, so several places are asked, best first."""

import os
import re
import sys
from functools import lru_cache
from typing import NamedTuple

from evalkit.io import SourceError, absolute, is_url
from evalkit.mindcraft.facts import type_of
from evalkit.mindcraft.folders import RunFolder, is_experiment_name
from evalkit.mindcraft.results import Results

UNKNOWN = "unknown"
_TYPE_FOLDERS = ("cooking", "crafting", "construction", "techtree")
_FIELDS = ("model_name", "task_id", "task_type", "suite", "experiment")


class Named(NamedTuple):
    """A run's model, where the name comes from, its experiment's folder, and what else the path says."""

    model_name: str
    model_source: str  # layout, results, s3_path, profile, parent_folder or unknown
    experiment: str
    fields: dict[str, str]


class Naming:
    """Names the model of every run of a source.

    Parameters
    ----------
    root : str
        The folder that was loaded; layouts are matched below it.
    layout : str, optional
        As in `load`.
    """

    def __init__(self, root: str, layout: str | None = None) -> None:
        self._root = absolute(root)
        self._above = 0 if is_url(root) else self._root.rstrip(os.sep).count(os.sep)  # parts of a path above the root
        self._results: dict[str, Results] = {}
        self._profiles: dict[str, set[str]] = {}
        self._layout = compile_layout(layout) if layout else None

    def add_results(self, source: str, results: Results) -> None:
        """Take what a results file says; it speaks of the runs in its folder and in the folders just below."""
        place = os.path.dirname(absolute(source))
        known = zip(self._results.get(place, results), results, strict=True)
        self._results[place] = Results(*(new if was is None else was for was, new in known))

    def add_profile(self, source: str, model: str) -> None:
        """Take the model that an agent profile names; it speaks of the same runs as a results file."""
        self._profiles.setdefault(os.path.dirname(absolute(source)), set()).add(model)

    def results_for(self, run: RunFolder) -> Results | None:
        """Give the results file that speaks of a run."""
        return next((self._results[p] for p in _places(run) if p in self._results), None)

    def name(self, run: RunFolder) -> Named:
        """Name a run's model: stated layout, results file, S3-like path, profiles, parent folder, else unknown.

        Where an S3-like path begins above the loaded folder, chance may be at work: profiles come first, and the task's
        type must not be another one.
        """
        match = self._match_layout(run)
        fields = match.groupdict() if match else {}
        s3, s3_above = s3_fields(_places(run)[-1], self._above), s3_fields(_places(run)[-1])
        kind = s3_above.get("task_type", "")
        if type_of(run.task_id, None, kind) != type_of("", None, kind):
            s3_above = {}
        results = self.results_for(run)
        profiles = next((self._profiles[p] for p in _places(run) if p in self._profiles), set())
        parent = os.path.basename(_places(run)[-1])
        sources = {
            "layout": fields.get("model_name"),
            "results": results and results.model_name,
            "s3_path": s3.get("model_name"),
            "profile": " + ".join(sorted(profiles)),
            "s3_path above": s3_above.get("model_name"),
            "parent_folder": None if run.flat or is_experiment_name(parent) else parent,
            UNKNOWN: UNKNOWN,
        }
        source, model = next((source, model) for source, model in sources.items() if model)
        if source == "s3_path above":
            source, s3 = "s3_path", s3_above
        experiment = _places(run)[-1]
        if "experiment" in fields:
            experiment = match.string[: match.end("experiment")]
        elif parent == model:  # arranged by hand: the models of an experiment lie side by side
            experiment = os.path.dirname(experiment)
        # one string for all runs of an experiment: there may be many
        return Named(sys.intern(model), source, sys.intern(experiment), {**s3, **fields} if fields else s3)

    def fits_layout(self, run: RunFolder) -> bool:
        """Tell whether a run's path fits the layout that was stated, if one was."""
        return self._layout is None or self._match_layout(run) is not None

    def _match_layout(self, run: RunFolder) -> re.Match | None:
        if self._layout is None:
            return None
        whole, last = self._layout
        path = os.path.join(run.place, run.task_id if run.flat else "")
        path = path.replace(os.sep, "/").rstrip("/")
        return whole.match(path, len(self._root.rstrip(os.sep)) + 1) or last.search(path)


def _places(run: RunFolder) -> tuple[str, ...]:
    """Give a run's own folder and its experiment's, the same one in the flat layout."""
    return (run.place,) if run.flat else _with_parent(run.place)


@lru_cache(maxsize=16)  # all that is asked of one run is asked at once
def _with_parent(place: str) -> tuple[str, str]:
    return place, os.path.dirname(place)


def compile_layout(layout: str) -> tuple[re.Pattern, re.Pattern]:
    """Compile a layout such as ``{model_name}/{task_id}`` to patterns for a run's path.

    The first is for the whole path below the loaded folder, where a model's name may hold ``/``; the second for the
    last parts of a path, also where they lie above the loaded folder.

    Raises
    ------
    SourceError
        For unknown or repeated fields, or a layout without any.
    """
    parts = re.split(r"\{(\w*)\}", layout.strip("/"))
    fields = parts[1::2]
    wrong = [field for field in fields if field not in _FIELDS] or [f for f in fields if fields.count(f) > 1]
    if wrong or not fields:
        known = ", ".join(f"{{{field}}}" for field in _FIELDS)
        raise SourceError(f"layout {layout!r}: use each of {known} at most once, and at least one")

    def pattern(model: str) -> str:
        named = [f"(?P<{p}>{model if p == 'model_name' else '[^/]+'})" for p in fields]
        return "".join(re.escape(text) + (named[i] if i < len(named) else "") for i, text in enumerate(parts[::2]))

    return re.compile(rf"{pattern('.+?')}\Z"), re.compile(rf"/{pattern('[^/]+')}\Z")


@lru_cache(maxsize=4096)
def s3_fields(experiment: str, above: int = 0) -> dict[str, str]:
    """Read ``{task_type}/{model}/{suite}/{experiment}`` from an experiment's path, its first parts left out of it."""
    parts = experiment.split(os.sep)
    for i in range(len(parts) - 4, above - 1, -1):
        if parts[i] in _TYPE_FOLDERS and "experiments" not in parts[i:]:
            model, (suite, experiment) = "/".join(parts[i + 1 : -2]), parts[-2:]
            return {"task_type": parts[i], "model_name": model, "suite": suite, "experiment": experiment}
    return {}
