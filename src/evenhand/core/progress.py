"""The progress steps of a run, with their durations."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from html import escape
from importlib import import_module
from time import perf_counter, process_time
from typing import Any

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("evenhand_progress", default=None)
_clock: ContextVar[RunClock | None] = ContextVar("evenhand_clock", default=None)


class RunClock:
    """A clock of the seconds and CPU seconds of each section and step of a run.

    Examples
    --------
    >>> with timed() as clock:
    ...     with clock.timing("parity"):
    ...         step("Counting")
    >>> [(record["section"], record["step"]) for record in clock.records()]
    [('parity', ''), ('parity', 'Counting')]
    """

    def __init__(self) -> None:
        self.started = datetime.now(UTC)
        self._spent: dict[tuple[str, str], list[float]] = {}
        self._now = ("", "")
        self._since = (perf_counter(), process_time())

    @contextmanager
    def timing(self, section: str) -> Iterator[None]:
        """Assign the time of the block, and of the steps within it, to a section."""
        before = self._now
        self._turn(section, "")
        try:
            yield
        finally:
            self._turn(*before)

    def mark(self, description: str) -> None:
        """Assign the time from now on to a step."""
        self._turn(self._now[0], description)

    def _turn(self, section: str, description: str) -> None:
        now = (perf_counter(), process_time())
        spent = self._spent.setdefault(self._now, [0.0, 0.0])
        for position, (later, earlier) in enumerate(zip(now, self._since, strict=True)):
            spent[position] += later - earlier
        self._now, self._since = (section, description), now

    def records(self) -> list[dict[str, Any]]:
        """Return seconds and CPU seconds by section and step, in order of their start."""
        return [
            {"section": section, "step": description, "seconds": round(wall, 3), "cpu": round(cpu, 3)}
            for (section, description), (wall, cpu) in self._spent.items()
            if section
        ]


@contextmanager
def timed() -> Iterator[RunClock]:
    """Run a clock during the block: the running clock, or a new one."""
    running = _clock.get()
    clock = running or RunClock()
    token = _clock.set(clock)
    try:
        yield clock
    finally:
        _clock.reset(token)


def step(description: str, done: str = "") -> None:
    """Report a step and its progress to the clock and the listener, if they exist."""
    clock, listener = _clock.get(), _listener.get()
    if clock is not None:
        clock.mark(description)
    if listener is not None:
        listener(f"{description}: {done}" if done else description)


@contextmanager
def listening(listener: Callable[[str], None]) -> Iterator[None]:
    """Pass every step to `listener` during the block.

    Examples
    --------
    >>> heard = []
    >>> with listening(heard.append):
    ...     step("Counting")
    >>> heard
    ['Counting']
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def shown_in_notebook() -> Iterator[None]:
    """Show the steps below the cell of a Jupyter notebook during the block; elsewhere do nothing."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if _listener.get() is not None or type(shell).__name__ != "ZMQInteractiveShell":
        yield
        return
    display = import_module("IPython.display")
    handle = display.display(display.HTML(""), display_id=True)
    try:
        with listening(lambda text: handle.update(display.HTML(f"<em>{escape(text)} ...</em>"))):
            yield
    finally:
        handle.update(display.HTML(""))
