"""Groups of commands, and conversion of options to those of click."""

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from evalkit.kinds.options import COMMON, Option
from evalkit.kinds.registry import BUILT_IN, kind_named, kind_names

if TYPE_CHECKING:  # commands are listed without it
    from evalkit.kinds.kind import LogKind

LISTS = ("failed", "flagged", "all")  # as evalkit.kinds.terminal.Which, which would import more
COUNT, POSITIVE = click.IntRange(1), click.FloatRange(0, min_open=True)
KIND_HELP = "The kind of logs.  [default: detected from their content]"


unmasked = click.option(
    "--no-mask", "mask", is_flag=True, flag_value=False, default=True,
    help="Show API keys and tokens that logs hold; by default they are masked.",
)  # fmt: skip


class Group(click.Group):
    """A group whose commands print one line and exit with 2 for an unusable source, and with 130 for Ctrl-C."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of commands in order of definition."""
        return list(self.commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse arguments, and refuse credentials: tables, pages and messages repeat most arguments."""
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
        """Run the command; errors that a user can fix become one line."""
        from evalkit.io.paths import SourceError
        from evalkit.io.text import plain, warnings_as_lines

        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="replace")  # characters that a terminal can't show become question marks
        try:
            with warnings_as_lines():
                result = super().invoke(ctx)
            sys.stdout.flush()  # here, where a closed pipe is not an error
            return result
        except SourceError as error:
            click.echo(f"evalkit: {plain(error)}", err=True)
            ctx.exit(2)
        except click.UsageError as error:  # of a command; it may repeat arguments, such as file names
            raise click.UsageError(plain(error.format_message()), error.ctx) from None
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
    """A group with a command for each kind of log, created on demand."""

    def __init__(self, *args: Any, make: "Callable[[LogKind], click.Command]", **more: Any) -> None:
        super().__init__(*args, **more)
        self._make = make

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the kinds, then the other commands."""
        return [*kind_names(), *self.commands]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return a command; that of a kind is created now."""
        if name in self.commands or name not in kind_names():
            return super().get_command(ctx, name)
        return self._make(kind_named(name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing evalkit's own kinds."""
        rows = [(name, _summary_of(name)) for name in kind_names()]
        rows += [(name, command.get_short_help_str(60)) for name, command in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _summary_of(name: str) -> str:
    """Return the line of a kind in ``evalkit --help``, without importing evalkit's own kinds."""
    from evalkit.io.paths import SourceError
    from evalkit.io.text import plain

    if name in BUILT_IN:
        return BUILT_IN[name][1]
    try:
        kind = kind_named(name)
        return kind.command.summary or kind.title
    except SourceError as error:
        return plain(f"can't be used: {error}")


def click_option(option: Option) -> click.Option:
    """Convert an option to one of click."""
    name = f"--{option.name.replace('_', '-')}"
    names = [f"-{option.short}", name, option.name] if option.short else [name, option.name]
    if option.type is bool:
        return click.Option(names, is_flag=True, help=option.help)
    ranges = {int: COUNT, float: click.FloatRange(0)}
    kind = click.Choice(option.type) if isinstance(option.type, tuple) else ranges.get(option.type, option.type)
    shown = {"default": option.default, "show_default": bool(option.default) and not option.many}
    metavar = option.metavar or None
    return click.Option(names, type=kind, help=option.help, multiple=option.many, metavar=metavar, **shown)


def common_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that every kind has to a command."""
    for option in reversed(COMMON):
        command.__click_params__ = [*getattr(command, "__click_params__", ()), click_option(option)]  # type: ignore[attr-defined]
    return command


def split(values: dict[str, Any], options: Sequence[Option]) -> dict[str, Any]:
    """Pop the values of some options from those of all."""
    return {option.name: values.pop(option.name) for option in options}


def refuse(where: str, **given: object) -> None:
    """Raise UsageError for given options that would have no effect."""
    for name, value in given.items():
        if value is not None and value is not False and value != ():
            raise click.UsageError(f"--{name.replace('_', '-')} does nothing {where}")


def print_paged(text: str) -> None:
    """Print a long text, through a pager in a terminal."""
    click.echo_via_pager(text) if sys.stdout.isatty() else print(text, end="")


def one_or_many(sources: tuple[str, ...]) -> str | list[str]:
    """Return a single source as it is, several as a list."""
    return sources[0] if len(sources) == 1 else list(sources)
