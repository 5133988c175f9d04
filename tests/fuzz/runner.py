"""Blocks of cases: every block is a target, a seed and so many cases, and gives the same cases again."""

from __future__ import annotations

import os
import signal
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from time import process_time
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed
from hypothesis import settings as hypothesis_settings

from .audits import AUDITS, Target
from .commands import CLI
from .others import OTHERS
from .sources import SPREAD

CASES = 10
"""Cases of a block."""
LIMIT = 60
"""Seconds of processor time after which a case has failed."""

TARGETS: dict[str, Target] = {**AUDITS, **OTHERS, **CLI, **SPREAD}
ROUND = tuple(name for name, target in TARGETS.items() for _ in range(2 * target.turns))
"""The targets of one round: 100 blocks, which are 1,000 cases."""


def target_of(block: int) -> str:
    """Return the target of a block."""
    return ROUND[block % len(ROUND)]


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Fail where what is within takes longer, all threads together."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"took more than {seconds} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def run_block(block: int, cases: int = CASES, *, shrink: bool = True) -> dict[str, Any]:
    """Run the cases of a block; return what became of them, with the smallest failing case where one failed."""
    name, outcomes = target_of(block), Counter[str]()
    target, number, began = TARGETS[name], count(), process_time()
    phases = (Phase.generate, Phase.shrink) if shrink else (Phase.generate,)
    failure = None
    with tempfile.TemporaryDirectory() as place:

        @seed(block)
        @hypothesis_settings(
            max_examples=cases,
            phases=phases,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            print_blob=False,
        )
        @given(target.draw)
        def check(case: Any) -> None:
            folder = Path(place) / str(next(number))
            folder.mkdir()
            try:
                with limited(LIMIT):
                    outcomes[target.outcome(case, folder)] += 1
            except BaseException:
                outcomes["failed"] += 1
                raise

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                check()
        except Exception as error:
            failure = told(error)
    return {
        "block": block,
        "target": name,
        **outcomes,
        "seconds": round(process_time() - began, 3),
        **({"failure": failure} if failure else {}),
    }


def told(error: BaseException) -> str:
    """Return an error with the case that led to it, and the line of ours that raised it."""
    ours = [line for line in traceback.extract_tb(error.__traceback__) if f"{os.sep}evenhand{os.sep}" in line.filename]
    at = f" at {ours[-1].filename.partition('src/')[2]}:{ours[-1].lineno}" if ours else ""
    notes = "\n".join(getattr(error, "__notes__", ()))
    return f"{type(error).__name__}: {error}{at}\n{notes}"
