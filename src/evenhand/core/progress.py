"""Progress: audits say what they are doing; whoever shows it (the command line, a notebook) listens."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from importlib import import_module
from typing import Any

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("evenhand_progress", default=None)


def step(description: str) -> None:
    """Say what happens next; silent unless somebody listens."""
    listener = _listener.get()
    if listener is not None:
        listener(description)


@contextmanager
def listening(listener: Callable[[str], None]) -> Iterator[None]:
    """Pass every step to `listener` while the block runs.

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
    """Show the steps below the cell of a Jupyter notebook while the block runs; nowhere else, and nothing is left."""
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
