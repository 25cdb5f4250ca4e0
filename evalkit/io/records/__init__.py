"""The store of records: what the files of a source say, kept so that a file is parsed once."""

from evalkit.io.records.store import (
    FILES,
    FOLDERS,
    MANIFEST,
    SOURCE,
    RecordStore,
    StoreError,
    dataset_files,
    read_manifest,
)

__all__ = ["FILES", "FOLDERS", "MANIFEST", "SOURCE", "RecordStore", "StoreError", "dataset_files", "read_manifest"]
