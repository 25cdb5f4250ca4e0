"""A dataset: tables of Parquet files in a folder, local or behind a URL, and a list of the files that count.

    DATASET/evalkit-dataset.json               what was collected, and the list of the parts
    DATASET/TABLE/000012.parquet               a part of a table
    DATASET/TABLE/model_name=NAME/000012.parquet   the same where the table is split by model

Parts are never changed. An edit writes new ones, then the list, which is what makes them count, then removes those that
are not listed any more. So whoever stops in between leaves a whole dataset behind, the one from before the edit.
"""

import json
import os
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from evalkit.io.files import SourceError, read_files
from evalkit.io.frames import Column, as_named, frame
from evalkit.io.manifest import LAYOUT, MANIFEST, PART, Part, read_manifest
from evalkit.io.output import remove_files, unfinished, write_bytes
from evalkit.io.paths import absolute, is_url
from evalkit.io.sources import list_source
from evalkit.io.storage import FileMark

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

LONGEST_NAME = 150  # characters of a folder's name; longer names of models are cut there, not in the manifest
PIECE = 10_000  # rows that are made Python objects at a time
PART_ROWS = 100_000  # a part that has as many is not joined with new rows any more


class Dataset:
    """Tables that can be read whole, and edited by the `source` that their rows come from.

    Attributes
    ----------
    path : str
        Folder or URL.
    columns : mapping of str to sequence of Column
        The columns of each table; one with `model_name` is split by model.
    about : dict
        What was collected, `ABOUT` at least.
    parts : list of Part
    """

    def __init__(
        self,
        path: str,
        columns: Mapping[str, Sequence[Column]],
        about: dict[str, Any],
        parts: Iterable[Part] = (),
        number: int = 0,
    ) -> None:
        self.path, self.columns, self.about, self.parts, self._number = path, columns, about, list(parts), number

    @property
    def manifest(self) -> str:
        """The path of the file that lists the parts."""
        return f"{self.path}/{MANIFEST}"

    def read(self, table: str, columns: Collection[str] = ()) -> "pd.DataFrame":
        """Read a table, or some of its columns.

        Raises
        ------
        SourceError
            Where a part can't be read.
        """
        import pandas as pd
        import pyarrow as pa

        from evalkit.io.parquet import to_frame

        names = [column.name for column in self.columns[table] if not columns or column.name in columns]
        parts = [part for part in self.parts if part.table == table]
        if not parts:
            return frame([], self.columns[table])[names]
        found = list(self._tables(parts, [name for name in names if name != "model_name"]))
        rows = to_frame(pa.concat_tables(found))
        if "model_name" in names:
            names_of = zip((pa.scalar(part.model, pa.large_string()) for part in parts), found, strict=True)
            models = pa.chunked_array([pa.repeat(model, len(rows)) for model, rows in names_of])
            rows["model_name"] = pd.Series(models.to_pandas(), dtype="str")
        return rows[names]

    def pieces(self, table: str) -> "Iterator[pd.DataFrame]":
        """Read a table piece by piece, without the models: of `PIECE` rows at most, in no order.

        Raises
        ------
        SourceError
            Where a part can't be read.
        """
        from evalkit.io.parquet import to_frame

        for rows in self._tables([part for part in self.parts if part.table == table]):
            yield from (to_frame(rows.slice(at, PIECE)) for at in range(0, len(rows), PIECE))

    def add(self, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rows to a table."""
        from evalkit.io.parquet import to_table

        new = frame(rows, self.columns[table])
        if "model_name" not in new:
            self._join(table, None, to_table(new))
            return
        for model, group in new.groupby("model_name"):
            self._join(table, model, to_table(group.drop(columns="model_name").reset_index(drop=True)))

    def drop(self, sources: Collection[str], tables: Collection[str]) -> None:
        """Drop the rows of some sources from some tables."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not sources:
            return
        gone = pa.array(sorted(sources), pa.large_string())
        touched = [part for part in self.parts if part.table in tables]
        for part, rows in zip(touched, self._tables(touched), strict=True):
            kept = rows.filter(pc.invert(pc.is_in(rows["source"], gone)))
            if len(kept) < len(rows):
                self.parts.remove(part)
                self._write(part.table, part.model, kept)

    def rename(self, table: str, models: Callable[[list[str]], list[str]]) -> None:
        """Move rows whose model is not the one that `models` gives for their source."""
        import pyarrow as pa
        import pyarrow.compute as pc

        parts = [part for part in self.parts if part.table == table]
        moved: dict[str, list[pa.Table]] = {}  # all of them first: joining takes parts in that may be still to come
        for part, rows in zip(parts, self._tables(parts), strict=True):
            names = pa.array(models(rows["source"].to_pylist()), pa.large_string())
            if set(names.to_pylist()) != {part.model}:
                self.parts.remove(part)
                for model in set(names.to_pylist()):
                    moved.setdefault(model, []).append(rows.filter(pc.equal(names, model)))
        for model in sorted(moved):
            self._join(table, model, pa.concat_tables(moved[model]))

    def commit(self, **about: Any) -> None:
        """Make all edits count, with these changes to `about`."""
        self.about |= about
        content = {"layout": LAYOUT, **self.about, "number": self._number, "parts": self.parts}
        write_bytes(json.dumps(content, indent=1).encode(), self.manifest)
        self.sweep()

    def sweep(self) -> None:
        """Remove former parts, and what an edit that was stopped has left; nothing else, and nothing behind a link."""
        listing, live = list_source(self.path), {part.number for part in self.parts}
        root = min(listing.folders, key=len)
        real = root if is_url(root) else os.path.realpath(root)
        for file in listing.files:
            name = file.removeprefix(f"{root}/")
            found = PART.fullmatch(name)
            former = found and found["table"] in self.columns and int(found["number"]) not in live
            if former and (is_url(file) or os.path.realpath(file) == f"{real}/{name}"):
                remove_files([file])
        for folder in () if is_url(root) else listing.folders:
            if os.path.realpath(folder) == folder.replace(root, real, 1):
                remove_files(unfinished(folder))

    def _join(self, table: str, model: str | None, rows: "pa.Table") -> None:
        import pyarrow as pa

        # parts that are no bigger join the new one: there are never many small ones, and no row is copied often
        small, total = [], len(rows)
        for part in sorted(self.parts, key=lambda part: part.rows):
            if (part.table, part.model) == (table, model) and part.rows <= min(total, PART_ROWS):
                small.append(part)
                total += part.rows
        rows = pa.concat_tables([*self._tables(small), rows])
        self.parts = [part for part in self.parts if part not in small]
        self._write(table, model, rows)

    def _write(self, table: str, model: str | None, rows: "pa.Table") -> None:
        if not len(rows):
            return
        from evalkit.io.parquet import write_table

        self._number += 1
        folder = table if model is None else f"{table}/model_name={quote(model, safe='')[:LONGEST_NAME]}"
        part = Part(table, model, f"{folder}/{self._number:06}.parquet", len(rows))
        write_bytes(write_table(rows), f"{self.path}/{part.file}")
        self.parts.append(part)

    def _tables(self, parts: list[Part], columns: list[str] | None = None) -> "Iterator[pa.Table]":
        from evalkit.io.parquet import read_table

        for file, data in read_files(f"{self.path}/{part.file}" for part in parts):
            try:
                if isinstance(data, OSError):
                    raise data
                yield read_table(data, columns)
            except FileNotFoundError:
                raise SourceError(f"{file}: is gone; it was collected again just now, or somebody removed it") from None
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or error
                raise SourceError(f"{file}: {reason}; remove the dataset and collect it again") from error


def open_dataset(path: Any, kind: str, columns: Mapping[str, Sequence[Column]]) -> Dataset | None:
    """Open the dataset that a source is; None where it is something else.

    Parameters
    ----------
    path : str, path, or anything else a reader takes as its source
    kind : str
        What it must hold, such as ``mindcraft``.
    columns : mapping of str to sequence of Column
        Of its tables.

    Raises
    ------
    SourceError
        Where it holds another kind of logs, its list can't be read, it was written by another evalkit, or it is one of
        several sources.
    """
    if isinstance(path, (list, tuple)) and len(path) == 1:
        path = path[0]
    elif isinstance(path, (list, tuple)):
        local = [one for one in path if isinstance(one, (str, os.PathLike)) and not is_url(one)]
        if found := [one for one in local if os.path.exists(os.path.join(os.path.expanduser(one), MANIFEST))]:
            raise SourceError(f"{os.fspath(found[0])}: a dataset, which is read by itself, not beside other sources")
    found = read_manifest(path) if isinstance(path, (str, os.PathLike)) else None
    if found is None:
        return None
    folder, about, parts, number = found
    if about.get("kind") != kind:
        raise SourceError(f"{folder}: a dataset of {about.get('kind')} logs, not of {kind} logs")
    return Dataset(absolute(folder), columns, about, parts, number)


def open_to_read(path: Any, kind: str, columns: Mapping[str, Sequence[Column]]) -> Dataset | None:
    """Open a dataset as `open_dataset` does, and warn where files may be missing, or be read otherwise by now."""
    made = open_dataset(path, kind, columns)
    if made is None:
        return None
    from evalkit.io.versions import code_version  # slow to import, and most sources are no datasets

    if not made.about["complete"]:
        text = "collecting was stopped, or still goes on; files may be missing until it is done"
        warnings.warn(f"{made.path}: {text}", stacklevel=4)
    elif made.about["code"] != code_version("io", kind):
        text = f"collected by another evalkit ({made.about['code']}); collect again, and logs are read as they are now"
        warnings.warn(f"{made.path}: {text}", stacklevel=4)
    return made


def in_order(rows: "pd.DataFrame") -> "pd.DataFrame":
    """Sort rows by their source, as the files of a folder are listed."""
    if not rows["source"].str.contains("\\ud", regex=False).any():
        return rows.sort_values("source", kind="stable", ignore_index=True)
    names = list(map(as_named, rows["source"]))  # a text column can't hold them
    return rows.iloc[sorted(range(len(names)), key=names.__getitem__)].reset_index(drop=True)


def marks_of(files: "pd.DataFrame") -> dict[str, FileMark]:
    """Read the marks of a dataset's files."""
    marks = map(FileMark, *(files[name].tolist() for name in FileMark._fields))
    return dict(zip(files["source"].tolist(), marks, strict=True))
