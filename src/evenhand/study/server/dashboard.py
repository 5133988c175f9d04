"""The dashboard's numbers: current counts, and live estimates computed in the background.

Live estimates are the estimates from the answers so far and their history; computing them never delays a page.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from evenhand.core.findings import without_kind
from evenhand.errors import EvenhandError
from evenhand.messages import Message
from evenhand.stats.types import BoolArray, IntArray
from evenhand.study.responses import Responses
from evenhand.study.store import Counts, PageCounts, StoreError

if TYPE_CHECKING:
    from evenhand.study.flow.design import Design
    from evenhand.study.store import Study

log = logging.getLogger("evenhand.study")
MOST_POINTS = 8
_FRESH = 1.0
"""Seconds for which counts are cached, however many dashboards are open."""
_REST = 4.0
"""After a computation, pause at least this many times its duration, so that it uses at most a fifth of a core."""
_LEAST_REST = 5.0
_BUDGET = 20.0
"""Seconds after which a computation adds no further historical points; the next computation continues."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """An estimate from the answers.

    Parameters
    ----------
    label, group : the estimated quantity, and the condition or the compared groups.
    value, low, high : the estimate and its interval; None if undefined.
    lower, upper : for a partially identified quantity, its smallest and largest possible value.
    n, answers : number of people and of answers used.
    status : 'ok', or why the value or the interval is undefined.
    kind : kind of quantity; charts of one kind share an axis.
    """

    label: str
    group: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    lower: float | None = None
    upper: float | None = None
    n: int = 0
    answers: int = 0
    status: Message
    kind: str = ""

    @property
    def why(self) -> Message:
        """Why the value or the interval is undefined."""
        return without_kind(self.status)


Estimator = Callable[[Responses], list[Estimate]]


@dataclass(frozen=True, slots=True)
class Series:
    """The history of one estimate: `points` are pairs (number of answers, estimate), the last from all answers."""

    label: str
    group: str
    points: tuple[tuple[int, Estimate], ...]

    @property
    def now(self) -> Estimate:
        """The estimate from all answers."""
        return self.points[-1][1]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The latest estimates: number of answers, series, and the reason if they could not be computed."""

    answers: int
    series: tuple[Series, ...]
    problem: str | None = None


@dataclass(frozen=True)
class DashboardState:
    """The numbers of the dashboard at one moment; `names` are the names of the pages."""

    closed: bool
    counts: Counts
    pages: tuple[PageCounts, ...]
    names: tuple[str, ...]
    snapshot: Snapshot

    @property
    def stamp(self) -> str:
        """A hash that changes when any of the numbers does."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:16]


class Dashboard:
    """The dashboard's numbers of one study, computed on request.

    Parameters
    ----------
    design, study : the study.
    estimate : function that computes the estimates; None for no estimates.
    """

    def __init__(self, design: Design, study: Study, estimate: Estimator | None) -> None:
        self._study, self._names = study, page_names(design)
        self._live = None if estimate is None else LiveEstimates(estimate, self._read)
        self._lock, self._counted = threading.Lock(), 0.0
        self._counts: tuple[bool, Counts, Hashable] | None = None

    def state(self) -> DashboardState:
        """Return the current numbers, at most a second old, with the latest available estimates."""
        closed, counts, version = self._count()
        snapshot = Snapshot(0, ()) if self._live is None else self._live.latest(version)
        pages = {page.index: page for page in counts.pages}
        names = [*self._names, *(f"page {index + 1}" for index in range(len(self._names), len(pages)))]
        shown = tuple(pages.get(index, PageCounts(index, 0, 0, None)) for index in range(len(names)))
        return DashboardState(closed, counts, shown, tuple(names), snapshot)

    def changed(self) -> None:
        """Recompute counts and estimates, because answers were withdrawn or the study was closed."""
        self._counted = 0.0
        if self._live is not None:
            self._live.forget()

    def wait(self, seconds: float) -> None:
        """Wait for the running computation of estimates."""
        if self._live is not None:
            self._live.wait(seconds)

    def close(self) -> None:
        """Stop the background computation."""
        if self._live is not None:
            self._live.close()

    def _count(self) -> tuple[bool, Counts, Hashable]:
        with self._lock:
            if self._counts is None or monotonic() - self._counted > _FRESH:
                self._counts = (self._study.closed, self._study.results.counts(), self._study.results.version())
                self._counted = monotonic()
            return self._counts

    def _read(self) -> tuple[Responses, IntArray]:
        responses = self._study.results.responses()
        return responses, arrivals(self._study, responses)


class LiveEstimates:
    """Estimates computed in a background thread, one computation at a time.

    Parameters
    ----------
    estimate : function from responses to estimates.
    read : function that returns all responses and the order in which their answers arrived.
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
        """Return the latest estimates at once; start a computation if the answers changed and the pause is over.

        Parameters
        ----------
        version : a value that changes whenever an answer is added, changed or withdrawn.
        """
        with self._lock:
            busy = self._thread is not None and self._thread.is_alive()
            if not busy and not self._stopping.is_set() and version != self._done and monotonic() >= self._due:
                self._thread = threading.Thread(target=self._compute, args=(version,), name="estimates", daemon=True)
                self._thread.start()
            return self._latest

    def wait(self, seconds: float) -> None:
        """Wait for the running computation."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def forget(self) -> None:
        """Mark the estimates as outdated, because answers were withdrawn."""
        with self._lock:
            self._done, self._due = None, 0.0

    def close(self) -> None:
        """Stop after the estimate being computed."""
        self._stopping.set()
        self.wait(10.0)

    def _compute(self, asked: Hashable) -> None:
        clock, problem, answers, series = monotonic(), None, self._latest.answers, self._latest.series
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
        """Estimate from all answers and from the first n answers, reusing earlier results."""
        estimates: dict[int, list[Estimate]] = {}
        fresh: dict[str, list[Estimate]] = {}
        for n in sorted(points(len(order)), reverse=True):
            known = first_answers(responses, order, n)
            digest = _digest(known)
            late = self._stopping.is_set() or monotonic() - clock > _BUDGET
            if digest not in self._known and estimates and late:
                continue
            estimates[n] = fresh[digest] = self._known.get(digest) or self._estimate(known)
        self._known = fresh
        return _as_series(estimates)


def _as_series(estimates: dict[int, list[Estimate]]) -> tuple[Series, ...]:
    """Return the estimates by number of answers as one series per label and group."""
    if not estimates:
        return ()
    points_of: dict[tuple[str, str], list[tuple[int, Estimate]]] = {
        (now.label, now.group): [] for now in estimates[max(estimates)]
    }
    for n in sorted(estimates):
        for estimate in estimates[n]:
            if (estimate.label, estimate.group) in points_of:
                points_of[estimate.label, estimate.group].append((n, estimate))
    return tuple(Series(label, group, tuple(shown)) for (label, group), shown in points_of.items())


def points(answers: int) -> list[int]:
    """Return the numbers of answers at which estimates are shown: at most eight, evenly spaced and stable.

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
    """Return the responses as of the first `n` answers; `order` sorts the answers by arrival."""
    rows: BoolArray = np.zeros(len(order), dtype=bool)
    rows[order[:n]] = True
    heard = np.zeros(len(responses.people["participant"]), dtype=bool)
    heard[responses.person[rows]] = True
    return replace(responses, answers={name: values[rows] for name, values in responses.answers.items()}).keep(heard)


def _digest(responses: Responses) -> str:
    held = [(name, values.tolist()) for part in (responses.people, responses.answers) for name, values in part.items()]
    return hashlib.sha256(repr(held).encode()).hexdigest()


def arrivals(study: Study, responses: Responses) -> IntArray:
    """Return the order in which the answers were last saved."""
    saved = study.results.saved_at()
    subject = responses.answers.get("subject", np.full(len(responses.person), None))
    who = responses.people["participant"][responses.person]
    keys = zip(who.tolist(), responses.answers["item"].tolist(), subject.tolist(), strict=True)
    return np.argsort([saved.get(key, np.inf) for key in keys], kind="stable")


def page_names(design: Design) -> tuple[str, ...]:
    """Return the dashboard's names of the study's pages, from the first participant's plan."""
    names, pairs = [], 0
    for step in design.plan(next(iter(design.conditions)), 0).steps:
        pairs = pairs % 4 + 1 if step.kind == "pair" else pairs
        pair, case, check = f"set {step.position}, pair {pairs}", f"case {step.position}", f"check {step.check}"
        names.append({"pair": pair, "case": case, "check": check}.get(step.kind, step.kind))
    return tuple(names)
