"""Options: the record with which a kind declares an option, and the options that every kind has."""

from typing import Any, NamedTuple


class Option(NamedTuple):
    """An option of a command, and the keyword argument of the same name."""

    name: str
    type: type | tuple[str, ...]  # type of the value, or a tuple of all valid values
    default: Any
    help: str
    metavar: str = ""
    many: bool = False  # whether the option takes several values; the default is then ()
    short: str = ""  # a letter or another word for the command line
    followed: bool = True  # for a view: whether it also applies with --follow
    regroups: bool = False  # for a view: whether groups may not be models, so that none is called best
    within: str = ""  # folder inside the source that is the default value, if it exists and can be used


_WHERE = "Only runs with this value, also >=, <=, <, >, !=; may be repeated."
_COMPARE_BY = (
    "Columns to compare by, such as agent,model_name.  [default: the model; with agent and folder if these differ]"
)
COMMON = (
    Option("rename", str, (), "Read model OLD as NEW; may be repeated.", "OLD=NEW", many=True),
    Option("model", str, "", "Model of the runs whose logs name no model.", "NAME"),
    Option("where", str, (), _WHERE, "COLUMN=VALUE", many=True),
    Option("compare_by", str, "", _COMPARE_BY, "COLUMN,..."),
    Option("cluster", str, "", "Column with the family of a task, if tasks are variants of a few.", "COLUMN"),
)
