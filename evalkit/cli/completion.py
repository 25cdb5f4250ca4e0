"""Shell completion: commands and options (by click), kinds, notebooks, and parameters of notebooks."""

from collections.abc import Iterable

import click
from click.shell_completion import CompletionItem, get_completion_class

from evalkit.kinds.registry import kind_names


def script(command: click.Command, shell: str) -> str:
    """Return the completion script of a shell for ``evalkit``."""
    known = get_completion_class(shell)
    if known is None:
        raise click.UsageError(f"no completion for {shell}")
    return known(command, {}, "evalkit", "_EVALKIT_COMPLETE").source()


def complete_kinds(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of a kind of logs."""
    return _starting(kind_names(), incomplete)


def complete_notebooks(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of a notebook."""
    from evalkit.reports.planning.places import Places

    return _starting(Places.of(ctx.params.get("notebooks")).all_notebooks(), incomplete)


def complete_targets(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a target of a report: a notebook, samples, or a file or folder."""
    samples = [f"samples:{name}" for name in kind_names()]
    items = [*complete_notebooks(ctx, parameter, incomplete), *_starting(samples, incomplete)]
    return [*items, CompletionItem(incomplete, type="file")]


def complete_parameters(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of a parameter of the named notebooks, by default of all."""
    from evalkit.reports.parameters import read_notebook
    from evalkit.reports.planning.places import Places

    notebooks = Places.of(ctx.params.get("notebooks")).all_notebooks()
    named = [name for name in ctx.params.get("targets") or () if name in notebooks] or notebooks
    names: dict[str, str] = {}
    for name in named:
        try:
            names |= {p.name: p.type for p in read_notebook(notebooks[name]).parameters.values()}
        except (OSError, ValueError):  # not a notebook: it completes nothing
            continue
    return _starting(names, incomplete)


def _starting(names: Iterable[str], start: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(start)]
