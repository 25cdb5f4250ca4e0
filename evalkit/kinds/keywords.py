"""Types of the keyword arguments of `load` and `collect`, for editors and mypy."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypedDict

from evalkit.io.paths import StorageOptions
from evalkit.io.sources import Source
from evalkit.kinds.reading import Progress
from evalkit.kinds.selection import Renames


class RunOptions(TypedDict, total=False):
    """The options of `load` that name, select and compare runs of every kind, as in `evalkit.kinds.options.COMMON`."""

    rename: Renames
    model: str
    where: str | Sequence[str]
    compare_by: str | Sequence[str]
    cluster: str


class JudgeOptions(Protocol):
    """The settings of the judge of steps, an `evalkit.steps.Options`."""

    @property
    def loop_length(self) -> int:
        """Consecutive failures of one call that make a loop."""

    def is_plot(self, function_name: str | None) -> bool:
        """Return whether a function of this name makes plots."""


class KindOptions(RunOptions, total=False):
    """The options of all built-in kinds, which `load` accepts for a kind that it detects or that has a name."""

    # Mindcraft
    tasks: Source | Mapping[str, Any]
    layout: str | None
    scale: Literal["auto", "percent", "fraction"]
    original_mtimes: bool
    # Crafter
    weights: Mapping[str, float]
    counting: Literal["achievement", "hook"]
    # steps
    options: JudgeOptions
    # trajectories
    columns: str | Sequence[str]
    score: str
    outcomes: str | os.PathLike


class FileOptions(TypedDict, total=False):
    """The options of `load` and `collect` on how to read files."""

    recursive: bool
    jobs: int | None
    storage_options: StorageOptions


class ReadOptions(RunOptions, FileOptions, total=False):
    """The options of `load` that every kind of log has, except the pattern of file names."""


class LoadOptions(ReadOptions, total=False):
    """The options of `load` that every kind of log has."""

    pattern: str


class CollectOptions(FileOptions, total=False):
    """The options of `collect`."""

    pattern: str
    progress: Progress
