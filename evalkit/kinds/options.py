"""Options: how a kind declares its own, and the ones that every kind has."""

from typing import Any, NamedTuple


class Option(NamedTuple):
    """An option, named like the argument."""

    name: str
    type: type | tuple[str, ...]  # of the value, or all values there are
    default: Any
    help: str
    metavar: str = ""
    many: bool = False  # several values; the default is ()
    short: str = ""  # a letter, or another word, for the command line
    followed: bool = True  # of a view: whether it also applies with --follow
    regroups: bool = False  # of a view: whether it asks for other groups than models, none of which is called the best
    within: str = ""  # the folder in a source that the option names by default, if the folder is there and can be used


_WHERE = "Only runs with this value, also >=, <=, <, >, !=; may be repeated."
_COMPARE_BY = "Columns to compare by, such as agent,model_name.  [default: the model; with the agent if these differ]"
COMMON = (
    Option("rename", str, (), "Read model OLD as NEW; may be repeated.", "OLD=NEW", many=True),
    Option("model", str, "", "Model of the runs whose logs name no model.", "NAME"),
    Option("where", str, (), _WHERE, "COLUMN=VALUE", many=True),
    Option("compare_by", str, "", _COMPARE_BY, "COLUMN,..."),
    Option("cluster", str, "", "Column with the family of a task, if tasks are variants of a few.", "COLUMN"),
)
