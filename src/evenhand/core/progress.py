"""Progress: audits say what they are doing; whoever shows it (the command line) listens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

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
