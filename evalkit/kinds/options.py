"""Options of loading logs, for functions, commands and notebooks alike, and those that every kind has."""

from typing import Any, NamedTuple


class Option(NamedTuple):
    """An option; its name is that of the argument."""

    name: str
    type: type | tuple[str, ...]  # of the value, or all values there are
    default: Any
    help: str
    metavar: str = ""
    many: bool = False  # several values; the default is ()
    short: str = ""  # a letter for the command line
    followed: bool = True  # of a view: whether it also applies with --follow


_WHERE = "Only runs with this value, also >=, <=, <, >, !=; may be repeated."
COMMON = (
    Option("rename", str, (), "Read model OLD as NEW; may be repeated.", "OLD=NEW", many=True),
    Option("model", str, "", "The model of runs whose logs name none.", "NAME"),
    Option("where", str, (), _WHERE, "COLUMN=VALUE", many=True),
    Option("cluster", str, "", "Column that stands for the task, where tasks are variants of few.", "COLUMN"),
)
