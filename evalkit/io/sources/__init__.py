"""Sources of logs as users name them, and their files."""

from evalkit.io.sources.listing import (
    MISSING,
    SETTLED,
    FolderState,
    KnownFolders,
    Listing,
    fits,
    identity_of,
    list_files,
    list_source,
    state_of,
)
from evalkit.io.sources.naming import (
    Source,
    is_sample,
    own_sources,
    paths_of,
    read_storage_options,
    resolve,
    shown_paths,
    source_names,
)

__all__ = [
    "MISSING",
    "SETTLED",
    "FolderState",
    "KnownFolders",
    "Listing",
    "Source",
    "fits",
    "identity_of",
    "is_sample",
    "list_files",
    "list_source",
    "own_sources",
    "paths_of",
    "read_storage_options",
    "resolve",
    "shown_paths",
    "source_names",
    "state_of",
]
