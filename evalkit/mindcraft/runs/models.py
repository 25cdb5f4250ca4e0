"""Find which model ran: neither log nor folder name holds it, so several sources are tried, best first."""

import os
import re
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from evalkit.io import SourceError, absolute, is_url
from evalkit.mindcraft.format import NO_RESULTS, UNKNOWN, Results
from evalkit.mindcraft.runs.layout import TaskFolder, is_experiment_name, parent
from evalkit.mindcraft.tasks.facts import type_of

_TYPE_FOLDERS = ("cooking", "crafting", "construction", "techtree")  # no models
_FIELDS = ("model_name", "task_id", "task_type", "suite", "experiment")


class Named(NamedTuple):
    """A run's model, the source of the name, its experiment, and other fields of the path and the results file."""

    model_name: str
    model_source: str  # layout, results, s3_path, profile, parent_folder or unknown
    experiment_folder: str
    experiment: str
    fields: Mapping[str, str]  # of the path: task_id, task_type, suite
    results: Results
    fits_layout: bool


class ModelNames:
    """Finds the name of every run's model; a layout, as in `load`, is matched below the folder that was loaded."""

    def __init__(self, root: str, layout: str | None = None) -> None:
        self._root = absolute(root)
        self._above = 0 if is_url(root) else self._root.rstrip(os.sep).count(os.sep)  # parts of a path above the root
        self._results: dict[str, Results] = {}
        self._profiles: dict[str, set[str]] = {}
        self._layout = compile_layout(layout) if layout else None
        self._known: dict[tuple, Named] = {}

    def add(self, source: str, results: Results, profile_model: str | None) -> None:
        """Add a results file or a profile, which applies to the runs in its folder and in those just below."""
        folder = os.path.dirname(absolute(source))
        if any(value is not None for value in results):
            known = zip(self._results.get(folder, results), results, strict=True)
            self._results[folder] = Results._make(new if was is None else was for was, new in known)
        if profile_model is not None:
            self._profiles.setdefault(folder, set()).add(profile_model)

    def name(self, run: TaskFolder) -> Named:
        """Return a run's model: stated layout, results file, S3-like path, profiles, parent folder, else unknown.

        An S3-like path that begins above the loaded folder may be a coincidence: profiles come first, and the task's
        type must not be another one.
        """
        if self._layout is not None or run.path in self._results or run.path in self._profiles:
            return self._name(run)
        experiment = _experiment_of(run)
        named_type = s3_fields(experiment).get("task_type", "")
        key = (experiment, run.flat, named_type and type_of(run.task_id, None, named_type))
        known = self._known.get(key)  # there may be many runs of an experiment
        if known is None:
            known = self._known[key] = self._name(run)
        return known

    def _name(self, run: TaskFolder) -> Named:
        experiment = _experiment_of(run)
        match = self._match_layout(run)
        fields = match.groupdict() if match else {}
        s3, s3_above = s3_fields(experiment, self._above), s3_fields(experiment)
        named_type = s3_above.get("task_type", "")
        if type_of(run.task_id, None, named_type) != type_of("", None, named_type):
            s3_above = {}
        places = dict.fromkeys((run.path, experiment))  # the same folder in the flat layout
        results = next((self._results[path] for path in places if path in self._results), NO_RESULTS)
        profiles = next((self._profiles[path] for path in places if path in self._profiles), set())
        model_folder = "" if run.flat else self._model_folder(experiment)
        sources = {
            "layout": fields.get("model_name"),
            "results": results.model_name,
            "s3_path": s3.get("model_name"),
            "profile": " + ".join(sorted(profiles)),
            "s3_path above": s3_above.get("model_name"),
            "parent_folder": os.path.basename(model_folder),
            UNKNOWN: UNKNOWN,
        }
        source, model = next((source, model) for source, model in sources.items() if model)
        if source == "s3_path above":
            source, s3 = "s3_path", s3_above
        if match and "experiment" in fields:
            experiment = match.string[: match.end("experiment")]
        elif os.path.basename(model_folder) == model:  # arranged by hand: models are side by side in an experiment
            experiment = os.path.dirname(model_folder)
        fields = {**s3, **fields}
        name = fields.get("experiment") or os.path.basename(experiment)
        fits = self._layout is None or match is not None
        # one string for all runs of an experiment
        return Named(sys.intern(model), source, sys.intern(experiment), sys.intern(name), fields, results, fits)

    def _model_folder(self, path: str) -> str:
        """Return the folder that names the model, from a task's parent on: this one, if it is in the source.

        Task types and experiments are no models; the folder above a task type is one, even above the source.
        """
        below, above = "", False
        while (name := os.path.basename(path)) in _TYPE_FOLDERS or is_experiment_name(name):
            if not name:
                return ""
            below, above, path = name, True, os.path.dirname(path)
        in_source = f"{path}/".startswith(f"{self._root.rstrip('/')}/")
        return path if below in _TYPE_FOLDERS or (in_source and not above) else ""

    def _match_layout(self, run: TaskFolder) -> re.Match | None:
        if self._layout is None:
            return None
        whole_path, last_parts = self._layout
        path = os.path.join(run.path, run.task_id if run.flat else "").replace(os.sep, "/").rstrip("/")
        return whole_path.match(path, len(self._root.rstrip(os.sep)) + 1) or last_parts.search(path)


def _experiment_of(run: TaskFolder) -> str:
    return run.path if run.flat else parent(run.path)


def compile_layout(layout: str) -> tuple[re.Pattern, re.Pattern]:
    """Compile a layout such as ``{model_name}/{task_id}`` to patterns for a run's path.

    The first is for the whole path below the loaded folder, where a model's name may hold ``/``; the second for the
    last parts of a path, even if they are above the loaded folder. Unknown or repeated fields are a SourceError.
    """
    pieces = re.split(r"\{(\w*)\}", layout.strip("/"))
    fields = pieces[1::2]
    wrong = [field for field in fields if field not in _FIELDS] or [f for f in fields if fields.count(f) > 1]
    if wrong or not fields:
        known = ", ".join(f"{{{field}}}" for field in _FIELDS)
        raise SourceError(f"layout {layout!r}: use each of {known} at most once, and at least one")

    def pattern(model: str) -> str:
        named = [f"(?P<{p}>{model if p == 'model_name' else '[^/]+'})" for p in fields]
        return "".join(re.escape(text) + (named[i] if i < len(named) else "") for i, text in enumerate(pieces[::2]))

    return re.compile(rf"{pattern('.+?')}\Z"), re.compile(rf"/{pattern('[^/]+')}\Z")


@lru_cache(maxsize=4096)
def s3_fields(experiment: str, above: int = 0) -> dict[str, str]:
    """Match the end of an experiment's path with ``{task_type}/{model}/{suite}/{experiment}``."""
    parts = experiment.split(os.sep)
    for i in range(len(parts) - 4, above - 1, -1):
        if parts[i] in _TYPE_FOLDERS and "experiments" not in parts[i:]:
            model, (suite, experiment) = "/".join(parts[i + 1 : -2]), parts[-2:]
            return {"task_type": parts[i], "model_name": model, "suite": suite, "experiment": experiment}
    return {}
