"""Live estimates: what the answers say so far and how it narrowed, computed beside the pages and never in their way."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from time import monotonic

import numpy as np

from evenhand.errors import EvenhandError
from evenhand.stats.types import BoolArray, IntArray
from evenhand.study.responses import Responses
from evenhand.study.store.errors import StoreError

log = logging.getLogger("evenhand.study")
MOST_POINTS = 8
_REST = 4.0
"""A computation is followed by at least this many times its own length of rest, so that it takes a fifth of a core."""
_LEAST_REST = 5.0
_BUDGET = 20.0
"""Seconds after which a computation adds no further point of the past; the next one goes on."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number that the answers give.

    Parameters
    ----------
    label, group : what is estimated, and of whom: a condition, or the groups that are compared.
    value, low, high : the estimate and its interval; None where undefined.
    lower, upper : for what the answers leave open, the smallest and the largest value that they allow.
    n, answers : people and answers behind it.
    status : 'ok', or why there is no number or no interval.
    kind : what kind of number it is; charts of one kind share an axis.
    """

    label: str
    group: str
    value: float | None
    low: float | None
    high: float | None
    lower: float | None
    upper: float | None
    n: int
    answers: int
    status: str
    kind: str = ""


Estimator = Callable[[Responses], list[Estimate]]


@dataclass(frozen=True, slots=True)
class Series:
    """One estimate as answers arrived: `points` are (answers so far, estimate), the last is of all answers."""

    label: str
    group: str
    points: tuple[tuple[int, Estimate], ...]

    @property
    def now(self) -> Estimate:
        """The estimate from all answers."""
        return self.points[-1][1]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is known now: the series as of so many answers, and what keeps them from being there."""

    answers: int
    series: tuple[Series, ...]
    problem: str | None = None


class LiveEstimates:
    """Estimates that are computed in a thread of their own, one computation at a time.

    Parameters
    ----------
    estimate : responses in, estimates out.
    read : reads all responses, and the order in which their answers arrived.
    """

    def __init__(self, estimate: Estimator, read: Callable[[], tuple[Responses, IntArray]]) -> None:
        self._estimate, self._read = estimate, read
        self._known: dict[str, list[Estimate]] = {}
        self._latest = Snapshot(0, ())
        self._done: Hashable = None
        self._due = 0.0
        self._lock, self._stopping = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None

    def latest(self, version: Hashable) -> Snapshot:
        """Return what is known, at once; start a computation where the answers are of another version and it is time.

        Parameters
        ----------
        version : changes whenever an answer is given, changed or taken back.
        """
        with self._lock:
            busy = self._thread is not None and self._thread.is_alive()
            if not busy and not self._stopping.is_set() and version != self._done and monotonic() >= self._due:
                self._thread = threading.Thread(target=self._compute, args=(version,), name="estimates", daemon=True)
                self._thread.start()
            return self._latest

    def wait(self, seconds: float) -> None:
        """Wait for the computation that is under way."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def forget(self) -> None:
        """Drop what is known, since answers were taken back."""
        with self._lock:
            self._done, self._due = None, 0.0

    def close(self) -> None:
        """Stop after the point that is being computed."""
        self._stopping.set()
        self.wait(10.0)

    def _compute(self, asked: Hashable) -> None:
        clock, problem, series = monotonic(), None, self._latest.series
        answers = self._latest.answers
        try:
            responses, order = self._read()
            answers = len(order)
            series = self._series(responses, order, clock)
        except EvenhandError as error:
            problem = str(error)
            if isinstance(error, StoreError):
                log.error("live estimates: %s", problem)  # noqa: TRY400, RUF100
        except Exception as error:  # noqa: BLE001, RUF100
            log.error("live estimates failed: %s", type(error).__name__)  # noqa: TRY400, RUF100
            problem = "The estimates could not be computed; the log says more."
        with self._lock:
            self._latest, self._done = Snapshot(answers, series, problem), asked
            self._due = monotonic() + max(_LEAST_REST, _REST * (monotonic() - clock))

    def _series(self, responses: Responses, order: IntArray, clock: float) -> tuple[Series, ...]:
        """Estimate from all answers, then from the first so many; what was computed before is not done again."""
        found: dict[int, list[Estimate]] = {}
        fresh: dict[str, list[Estimate]] = {}
        for n in sorted(points(len(order)), reverse=True):
            known = first_answers(responses, order, n)
            digest = _digest(known)
            if digest not in self._known and found and (self._stopping.is_set() or monotonic() - clock > _BUDGET):
                continue
            found[n] = fresh[digest] = self._known.get(digest) or self._estimate(known)
        self._known = fresh
        if not found:
            return ()
        names = [(one.label, one.group) for one in found[max(found)]]
        return tuple(
            Series(
                label,
                group,
                tuple((n, one) for n in sorted(found) for one in found[n] if (one.label, one.group) == (label, group)),
            )
            for label, group in names
        )


def points(answers: int) -> list[int]:
    """Return at how many answers estimates are shown: at most eight, evenly, the same ones again as answers arrive.

    The step is 10 times a power of 2, so that half of the points stay when it doubles.

    Examples
    --------
    >>> points(35), points(1000)
    ([10, 20, 30, 35], [160, 320, 480, 640, 800, 960, 1000])
    """
    step = 10
    while answers / step >= MOST_POINTS:
        step *= 2
    return sorted({*range(step, answers + 1, step), answers} - {0})


def first_answers(responses: Responses, order: IntArray, n: int) -> Responses:
    """Return the responses as they were after the first `n` answers; `order` are the answers as they arrived."""
    rows: BoolArray = np.zeros(len(order), dtype=bool)
    rows[order[:n]] = True
    heard = np.zeros(len(responses.people["participant"]), dtype=bool)
    heard[responses.person[rows]] = True
    return replace(responses, answers={name: values[rows] for name, values in responses.answers.items()}).keep(heard)


def _digest(responses: Responses) -> str:
    held = [(name, values.tolist()) for part in (responses.people, responses.answers) for name, values in part.items()]
    return hashlib.sha256(repr(held).encode()).hexdigest()
