"""What the commands share: where they print, how they show progress and how they end."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.segment import Segment
from rich.text import Text

from evenhand.core.progress import listening
from evenhand.errors import showable

DATA_FILE = "A CSV, Parquet or JSON file (a glob in quotes), or an Excel, Stata, SPSS, Feather or R file."
FINE, BROKEN, BAD_INPUT, UNDECIDED, BUG, INTERRUPTED = 0, 1, 2, 3, 70, 130


class _Console(Console):
    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        """Let all text pass `showable` on its way to the terminal; styles and cursor moves are Rich's own."""
        return super()._render_buffer(
            part if part.control else Segment(showable(part.text), part.style) for part in buffer
        )

    def on_broken_pipe(self) -> None:
        """Leave it to `main`: that nobody reads on is no failure."""
        raise BrokenPipeError


# Names and values come from data: nothing in them is markup, an emoji code or a number to colour.
out = _Console(highlight=False, emoji=False)
err = _Console(stderr=True, highlight=False, emoji=False)


def print_line(start: str, value: str = "") -> None:
    """Print a line as it is, with the value in bold; long lines are not broken."""
    out.print(Text.assemble(start, (value, "bold")), soft_wrap=True)


def print_error(message: str) -> None:
    """Print a line about what went wrong to standard error."""
    err.print(Text(message), soft_wrap=True)


@contextmanager
def progress(quiet: bool) -> Iterator[None]:
    """Show each step of an audit on the terminal while it runs; nothing stays behind."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task("Starting", total=None)
        with listening(lambda description: bar.update(task, description=description)):
            yield
