"""The `evenhand` command."""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated

import typer

from evenhand._version import __version__
from evenhand.cli import audit, data, init, power, study
from evenhand.cli.console import BAD_INPUT, BUG, INTERRUPTED, print_error
from evenhand.errors import EvenhandError

app = typer.Typer(
    name="evenhand",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Audit decision systems for fairness, with statistics you can defend.\n\n"
    "Start with `evenhand demo`, then `evenhand init DATA` and `evenhand audit audit.toml` on your own data.",
    epilog="Exit codes: 0 fine · 1 a --check threshold is broken · 2 bad input · "
    "3 undecided with --strict · 130 stopped.",
)
app.command()(data.demo)
app.command()(init.init)
app.command()(audit.audit)
app.command()(power.power)
app.add_typer(data.app, name="data")
app.add_typer(study.app, name="study")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"evenhand {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    del version


def main(arguments: list[str] | None = None) -> None:
    """Run the command and leave with its exit code; errors are told in a sentence, not in a traceback."""
    _print_any_text()
    try:
        code = app(args=arguments, prog_name="evenhand", standalone_mode=False)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
    except EvenhandError as error:
        print_error(f"Error: {error}")
        sys.exit(BAD_INPUT)
    except (KeyboardInterrupt, typer.Abort):
        print_error("Stopped.")
        sys.exit(INTERRUPTED)
    except typer.TyperException as error:
        _show_usage(error)
        sys.exit(BAD_INPUT)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:
        if "KeyboardInterrupt" in str(error):  # an engine was stopped and told it in its own words
            print_error("Stopped.")
            sys.exit(INTERRUPTED)
        if os.environ.get("EVENHAND_DEBUG"):
            raise
        print_error(f"evenhand stopped on an error of its own: {type(error).__name__}: {error}")
        print_error("Please report it; EVENHAND_DEBUG=1 shows where it happened.")
        sys.exit(BUG)
    sys.exit(code if isinstance(code, int) else 0)


def _print_any_text() -> None:
    """Let a terminal that lacks a character show a question mark instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _show_usage(error: typer.TyperException) -> None:
    """Show a wrong option or argument as Typer does, with the command's usage line."""
    told = io.StringIO()
    show = getattr(error, "show", None)
    if show is not None:
        show(told)  # not to the terminal: it repeats what was typed
    print_error(told.getvalue().rstrip("\n") or f"Error: {error}")


if __name__ == "__main__":
    main()
