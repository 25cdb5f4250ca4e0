"""The store of records: the parsed contents of a source's files, so that each file is parsed only once."""

from evalkit.io.records.manifest import MANIFEST, StoreError, collected_from, dataset_files, read_manifest
from evalkit.io.records.states import Known, States, known_in, list_again
from evalkit.io.records.store import FILES, FOLDERS, SOURCE, RecordStore

__all__ = [
    "FILES",
    "FOLDERS",
    "MANIFEST",
    "SOURCE",
    "Known",
    "RecordStore",
    "States",
    "StoreError",
    "collected_from",
    "dataset_files",
    "known_in",
    "list_again",
    "read_manifest",
]
