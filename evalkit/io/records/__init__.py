"""The store of records: what the files of a source say, kept so that a file is parsed once."""

from evalkit.io.records.manifest import MANIFEST, StoreError, dataset_files, read_manifest
from evalkit.io.records.store import FILES, FOLDERS, SOURCE, RecordStore

__all__ = ["FILES", "FOLDERS", "MANIFEST", "SOURCE", "RecordStore", "StoreError", "dataset_files", "read_manifest"]
