"""Groups of commands, and options as click takes them."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from evalkit.kinds.registry import BUILT_IN, LogKind, Option, kind_named, kind_names

LISTS = ("failed", "flagged", "all")  # as evalkit.kinds.listing.CHOICES, which would import more
KIND_HELP = "The kind of logs.  [default: told by their content]"


class Group(click.Group):
    """A group whose commands answer a source that can't be used with one line and exit code 2, and Ctrl-C with 130."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Give the names in the order in which the commands stand."""
        return list(self.commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take arguments of which none holds credentials: tables, pages and messages repeat most of them."""
        from evalkit.io.paths import SourceError, refuse_credentials
        from evalkit.io.text import plain

        try:
            for argument in args:
                refuse_credentials(argument)
        except SourceError as error:
            click.echo(f"evalkit: {plain(error)}", err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; errors that a user can mend become one line."""
        from evalkit.io.paths import SourceError
        from evalkit.io.text import plain, warnings_as_lines

        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="replace")  # what a terminal can't show becomes a question mark
        try:
            with warnings_as_lines():
                result = super().invoke(ctx)
            sys.stdout.flush()  # here, where a reader that has left is no error
            return result
        except SourceError as error:
            click.echo(f"evalkit: {plain(error)}", err=True)
            ctx.exit(2)
        except click.UsageError as error:  # of a command; it may repeat arguments, such as names of files
            error.message = plain(error.message)  # type: ignore[misc]  # subclasses add to it what was wrong
            raise
        except KeyboardInterrupt as stopped:
            if sys.stderr.isatty():
                click.echo(err=True)  # ends the line in which the terminal shows ^C
            if str(stopped):
                click.echo(f"evalkit: {stopped}", err=True)
            ctx.exit(130)
        except BrokenPipeError:  # the reader of a pipe has left, as in `evalkit … | head`
            sys.stderr.close()
            ctx.exit(0)


class Kinds(Group):
    """A group with a command for each kind of log, made when it is called."""

    def __init__(self, *args: Any, make: Callable[[LogKind], click.Command], **more: Any) -> None:
        super().__init__(*args, **more)
        self._make = make

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Give the kinds, then the other commands."""
        return [*kind_names(), *self.commands]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Give a command; that of a kind is made now."""
        if name in self.commands or name not in kind_names():
            return super().get_command(ctx, name)
        return self._make(kind_named(name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing a kind of evalkit's own."""
        rows = [(name, _summary_of(name)) for name in kind_names()]
        with formatter.section("Commands"):
            formatter.write_dl(
                rows + [(name, command.get_short_help_str(60)) for name, command in self.commands.items()]
            )


def _summary_of(name: str) -> str:
    """Give the line of a kind in ``evalkit --help``; those of evalkit are not imported for it."""
    from evalkit.io.paths import SourceError
    from evalkit.io.text import plain

    if name in BUILT_IN:
        return BUILT_IN[name][1]
    try:
        return kind_named(name).summary
    except SourceError as error:
        return plain(f"can't be used: {error}")


def click_option(option: Option) -> click.Option:
    """Make an option of click's of an option of ours."""
    name = f"--{option.name.replace('_', '-')}"
    names = [f"-{option.short}", name, option.name] if option.short else [name, option.name]
    if option.type is bool:
        return click.Option(names, is_flag=True, help=option.help)
    ranges = {int: click.IntRange(1), float: click.FloatRange(0)}
    kind = click.Choice(option.type) if isinstance(option.type, tuple) else ranges.get(option.type, option.type)
    shown = bool(option.default) and not option.many
    metavar = option.metavar or None
    more = {"multiple": option.many, "default": option.default, "show_default": shown, "metavar": metavar}
    return click.Option(names, type=kind, help=option.help, **more)


def split(values: dict[str, Any], options: Sequence[Option]) -> dict[str, Any]:
    """Take the values of some options out of those of all."""
    return {option.name: values.pop(option.name) for option in options}


def refuse(where: str, **given: object) -> None:
    """Refuse options that were given and would do nothing."""
    for name in (name for name, value in given.items() if value is not None and value is not False and value != ()):
        raise click.UsageError(f"--{name.replace('_', '-')} does nothing {where}")


def print_paged(text: str) -> None:
    """Print a long text, a page at a time in a terminal."""
    click.echo_via_pager(text) if sys.stdout.isatty() else print(text, end="")


def one_or_many(sources: tuple[str, ...]) -> str | list[str]:
    """Return the one source that is named, or a list of several."""
    return sources[0] if len(sources) == 1 else list(sources)
