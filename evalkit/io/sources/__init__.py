"""What a user names as a source of logs, and the files it holds."""

from evalkit.io.sources.listing import (
    MISSING,
    SETTLED,
    FolderState,
    KnownFolders,
    Listing,
    Source,
    file_states,
    fits,
    identity_of,
    is_sample,
    list_files,
    list_source,
    own_sources,
    read_storage_options,
    resolve,
    state_of,
)

__all__ = [
    "MISSING",
    "SETTLED",
    "FolderState",
    "KnownFolders",
    "Listing",
    "Source",
    "file_states",
    "fits",
    "identity_of",
    "is_sample",
    "list_files",
    "list_source",
    "own_sources",
    "read_storage_options",
    "resolve",
    "state_of",
]
