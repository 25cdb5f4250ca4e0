"""The store of records: the parsed contents of a source's files, so that each file is parsed only once."""

from evalkit.io.records.manifest import MANIFEST, StoreError, dataset_files, read_manifest
from evalkit.io.records.store import FILES, FOLDERS, SOURCE, RecordStore

__all__ = ["FILES", "FOLDERS", "MANIFEST", "SOURCE", "RecordStore", "StoreError", "dataset_files", "read_manifest"]
