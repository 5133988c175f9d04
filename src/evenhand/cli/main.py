"""The `evenhand` command."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, NoReturn, TextIO

import typer

from evenhand._version import __version__
from evenhand.cli import adverse_impact, audit, commands, init, report, study
from evenhand.cli.console import BAD_INPUT, BUG, INTERRUPTED, print_error
from evenhand.errors import ConfigError, DataError, EvenhandError, brief

_JSON_ERRORS = "--json-errors"
_YEAR_10000 = 253_402_300_800  # in seconds since 1970

app = typer.Typer(
    name="evenhand",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Audit decision systems for fairness, with statistics you can defend.\n\n"
    "Start with `evenhand demo`, then `evenhand init DATA` and `evenhand audit audit.toml` on your own data.",
    epilog="Exit codes: 0 success · 1 a --check threshold is broken · 2 bad input · "
    "3 undecided with --strict · 130 stopped.",
)
app.command()(commands.demo)
app.command()(init.init)
app.command()(audit.audit)
app.command()(adverse_impact.adverse_impact)
app.command()(report.report)
app.command()(report.compare)
app.command()(report.plan)
app.command()(report.verify)
app.command()(report.pack)
app.command()(commands.doctor)
app.command()(commands.power)
app.command()(commands.replicate)
app.add_typer(commands.data_app, name="data")
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
    json_errors: Annotated[
        bool,
        typer.Option(_JSON_ERRORS, help="Print errors as one line of JSON, for programs; works anywhere on the line."),
    ] = False,
) -> None:
    del version, json_errors


def main(arguments: list[str] | None = None) -> None:
    """Run the command and exit with its code; print errors as sentences without a traceback."""
    _open_streams()
    words = sys.argv[1:] if arguments is None else arguments
    tell = _print_error_json if _JSON_ERRORS in words else _print_error_text
    try:
        code = _run([word for word in words if word != _JSON_ERRORS])
        sys.stdout.flush()
        sys.exit(code)
    except (EvenhandError, typer.TyperException) as error:
        _fail(tell, error, BAD_INPUT)
    except (KeyboardInterrupt, typer.Abort) as error:
        _fail(tell, error, INTERRUPTED)
    except BrokenPipeError:
        _discard(sys.stdout)
        sys.exit(0)
    except OSError as error:
        _fail(tell, _of_system(error), BAD_INPUT)
    except Exception as error:
        if "KeyboardInterrupt" in str(error):  # an engine was interrupted and raised its own error
            _fail(tell, KeyboardInterrupt(), INTERRUPTED)
        if os.environ.get("EVENHAND_DEBUG"):
            raise
        _fail(tell, error, BUG)


def _fail(tell: Callable[[BaseException, int], None], error: BaseException, code: int) -> NoReturn:
    """Print an error and exit with its code, even if printing fails."""
    for stream, write in ((sys.stdout, sys.stdout.flush), (sys.stderr, lambda: tell(error, code))):
        try:
            write()
        except OSError:
            _discard(stream)
    sys.exit(code)


def _of_system(error: OSError) -> ConfigError:
    """Return an operating system error as a `ConfigError`."""
    why = error.strerror or error
    if error.filename is None:
        return ConfigError("the output cannot be written: {why}.", why=why)
    return ConfigError("{file} cannot be used: {why}.", file=brief(os.fspath(error.filename)), why=why)


def _discard(stream: TextIO) -> None:
    """Redirect a stream to the null device, so that a failed flush at exit does not change the exit code."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(words: list[str]) -> int:
    """Run the named command and return its exit code."""
    _require_date()
    try:
        code = app(args=words, prog_name="evenhand", standalone_mode=False)
    except typer.TyperException as error:
        if "unexpected extra argument" in str(error):
            error.message += "; put commas between several values of an option, as in --groups race,sex."
        raise
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0


def _require_date() -> None:
    """Raise if SOURCE_DATE_EPOCH is invalid, because NumPy and fonts would fail on it."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "0")
    if not given.strip().isdecimal() or int(given) >= _YEAR_10000:
        raise ConfigError(
            "the environment variable SOURCE_DATE_EPOCH must be a number of seconds since 1970; got {given!r}.",
            given=given,
        )


def _open_streams() -> None:
    """Reopen closed standard streams on the null device; print "?" for characters the terminal lacks."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            try:
                os.fstat(number)
            except OSError:
                os.open(os.devnull, os.O_RDWR)  # the lowest free number
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 open to the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _print_error_text(error: BaseException, code: int) -> None:
    """Print an error as a sentence; print invalid options in Typer's style, with the usage line."""
    if code == INTERRUPTED:
        print_error("Stopped.")
    elif code == BUG:
        print_error(f"evenhand stopped on an error of its own: {type(error).__name__}: {error}")
        print_error("Please report it; EVENHAND_DEBUG=1 shows where it happened.")
    elif isinstance(error, typer.TyperException) and hasattr(error, "show"):
        output = io.StringIO()
        error.show(output)  # not on a terminal: it repeats the input
        print_error(output.getvalue().rstrip("\n"))
    else:
        print_error(f"Error: {error}")


def _print_error_json(error: BaseException, code: int) -> None:
    """Write an error as one line of JSON to standard error."""
    message = getattr(error, "format_message", error.__str__)() or "stopped"
    record = {
        "error": "InternalError" if code == BUG else type(error).__name__,
        "message": message,
        "problems": list(error.problems) if isinstance(error, DataError) else [message],
        "exit_code": code,
    }
    typer.echo(json.dumps(record), err=True)


if __name__ == "__main__":
    main()
