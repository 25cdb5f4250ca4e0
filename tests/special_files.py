"""Files that are no regular ones: reading them would wait, or never end."""

import os
import stat


def pipe(path):
    os.mkfifo(path)


def socket(path):
    os.mknod(path, stat.S_IFSOCK | 0o600)


def link_to_device(path):
    path.symlink_to("/dev/zero")


def link_to_endless_file(path):
    """Link to a regular file of no size; reading it would take hours (Linux)."""
    path.symlink_to("/proc/self/pagemap")


SPECIAL = {make.__name__: make for make in (pipe, socket, link_to_device)}
