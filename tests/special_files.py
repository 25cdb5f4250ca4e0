"""Files that are no regular ones: reading them would wait, or never end."""

import os
import socket


def pipe(path):
    os.mkfifo(path)


def unix_socket(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


def link_to_pipe(path):
    target = path.with_name(".target")
    os.mkfifo(target)
    path.symlink_to(target)


def link_to_device(path):
    path.symlink_to("/dev/zero")


SPECIAL = {make.__name__: make for make in (pipe, unix_socket, link_to_pipe, link_to_device)}
