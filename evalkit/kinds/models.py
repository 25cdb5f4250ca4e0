"""Names of models: renamed as the user says, or given where logs have none."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from evalkit._names import nearest
from evalkit.io.paths import SourceError
from evalkit.kinds.kind import Assembled

if TYPE_CHECKING:
    import pandas as pd

UNKNOWN = "unknown"
STATED = "stated"  # the source of a name that the user gave
Renames = Mapping[str, str] | Sequence[str]


def renames_of(rename: Renames, model: str = "") -> dict[str, str]:
    """Return new names by old ones, from a mapping or texts ``OLD=NEW``; `model` is the new name of ``unknown``."""
    texts = [rename] if isinstance(rename, str) else rename
    pairs = texts.items() if isinstance(texts, Mapping) else [text.partition("=")[::2] for text in texts]
    for old, new in pairs:
        if not (old and new):
            raise SourceError(f"rename {f'{old}={new}'!r}: write OLD=NEW, the model's name and the one to read it as")
    return {**({UNKNOWN: model} if model else {}), **dict(pairs)}


def rename_models(assembled: Assembled, renames: Mapping[str, str], models: Sequence[str] = ()) -> Assembled:
    """Rename the models of all frames, also of those built later, and keep only those of `models`, if any are named.

    An old name that no run has is a warning: of an experiment that goes on, its runs may be still to come.
    """
    names = next(iter(assembled.frames.values()))["model_name"].fillna(UNKNOWN)
    old, new = sorted(set(names)), sorted(set(names.replace(renames)))
    for name in renames.keys() - {UNKNOWN, *old}:
        warnings.warn(f"--rename {name}={renames[name]}: no run of model {name!r}; {nearest(name, old)}", stacklevel=3)
    if missing := [name for name in models if name not in new]:
        raise SourceError(f"no runs of model {missing[0]!r}; {nearest(missing[0], new)}")
    frames = {name: _renamed(frame, renames, models) for name, frame in assembled.frames.items()}
    lazy = {name: partial(_renamed, make, renames, models) for name, make in assembled.lazy.items()}
    return assembled._replace(frames=frames, lazy=lazy)


def _renamed(
    frame: "pd.DataFrame | Callable[[], pd.DataFrame]", renames: Mapping[str, str], models: Sequence[str]
) -> "pd.DataFrame":
    frame = frame() if callable(frame) else frame
    if "model_name" not in frame:
        return frame
    old = frame["model_name"].fillna(UNKNOWN)
    changed = {"model_name": old.replace(renames).astype(frame["model_name"].dtype)}
    if "copied_model" in frame:
        changed["copied_model"] = frame["copied_model"].replace(renames)
    if "model_source" in frame:
        changed["model_source"] = frame["model_source"].mask(old.eq(UNKNOWN) & old.isin(renames), STATED)
    frame = frame.assign(**changed)
    return frame[frame["model_name"].isin(models)].reset_index(drop=True) if models else frame
