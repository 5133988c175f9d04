"""What the researcher's desk knows: who is logged in, the numbers of the study, and what is done with it."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.requests import Request

from evenhand.stats.types import IntArray
from evenhand.study.responses import Responses
from evenhand.study.server.estimates import Estimator, LiveEstimates, Snapshot
from evenhand.study.server.limits import address_of
from evenhand.study.server.passwords import is_right
from evenhand.study.store.records import Action, Counts, PageCounts, Session

if TYPE_CHECKING:
    from evenhand.study.flow.design import Design
    from evenhand.study.server.app import AppContext
    from evenhand.study.store import Study

FAILED_LOGIN, UNKNOWN_NAME = "failed to log in", "(unknown name)"
NAME_ATTEMPTS, ADDRESS_ATTEMPTS, ATTEMPT_SECONDS = 20, 10, 15 * 60
_FRESH = 1.0
"""Seconds for which counts are not counted again, however many dashboards are open."""


@dataclass(frozen=True)
class DeskNumbers:
    """The numbers of the dashboard at one moment; `names` are the names of the pages."""

    closed: bool
    counts: Counts
    pages: tuple[PageCounts, ...]
    names: tuple[str, ...]
    snapshot: Snapshot

    def as_json(self) -> dict[str, Any]:
        """Return the numbers as JSON has them; `stamp` changes when any of them does."""
        held: dict[str, Any] = {
            "closed": self.closed,
            "answers": self.counts.answers,
            "last_answer": self.counts.last_answer,
            "conditions": [asdict(one) for one in self.counts.conditions],
            "pages": [_page(page, name) for page, name in zip(self.pages, self.names, strict=True)],
            "checks": [asdict(one) for one in self.counts.checks],
            "estimates_of": self.snapshot.answers,
            "estimates": [asdict(series.now) for series in self.snapshot.series],
        }
        stamp = hashlib.sha256(json.dumps(held, sort_keys=True, default=str).encode()).hexdigest()[:16]
        return {"stamp": stamp, **held}


class Desk:
    """The desk of one study.

    Parameters
    ----------
    context : the study.
    estimate : what is estimated from the answers; None for nothing.
    """

    def __init__(self, context: AppContext, estimate: Estimator | None) -> None:
        self._context, self.study = context, context.study
        self._names = page_names(context.design)
        self._live = None if estimate is None else LiveEstimates(estimate, self._read)
        self._lock, self._counted = threading.Lock(), 0.0
        self._counts: tuple[bool, Counts, Hashable] | None = None

    def session(self, request: Request) -> Session | None:
        """Return the session of a researcher who is logged in."""
        cookie = self._context.security.desk(request)
        return self.study.session(cookie.token) if cookie is not None and cookie.token else None

    def login(self, name: str, password: str, request: Request) -> str | None:
        """Return the token of a new session, or None where name or password is wrong.

        Raises
        ------
        Throttled : after too many attempts. They are counted in the database before the password is looked at, so that
            several servers and restarts do not add attempts.
        """
        limits = self._limits(name, request)
        for key, limit in limits:
            if self.study.note_attempt(key, limit=limit, window=ATTEMPT_SECONDS) < 0:
                raise Throttled
        stored = self.study.password_hash(name)
        if not is_right(stored, password):
            # A name that is not known may be a password in the wrong field. It is logged too: the work is the same.
            self.study.log(name if stored is not None else UNKNOWN_NAME, FAILED_LOGIN)
            return None
        for key, _ in limits:
            self.study.forget_attempts(key)
        token = self.study.open_session(name)
        self.study.log(name, "logged in")
        return token

    def _limits(self, name: str, request: Request) -> list[tuple[str, int]]:
        """Return what attempts are counted by, and how many are allowed: the address first, then the name.

        What the address may not try does not count for the name, so one address cannot lock a name. Many addresses
        can; therefore a browser in which somebody logged in under this name before has a count of its own.
        """
        device = self._context.security.device(request)
        if device is not None and device.name.casefold() == name.casefold():
            return [(f"device:{device.key}", NAME_ATTEMPTS)]
        client = request.client
        address = address_of((client.host, client.port) if client else None)
        return [(f"address:{address}", ADDRESS_ATTEMPTS), (f"name:{name.casefold()}", NAME_ATTEMPTS)]

    def done(self, most: int) -> list[tuple[Action, int]]:
        """Return what was done, the newest first; failed logins in a row are one, with how many they were."""
        found: list[tuple[Action, int]] = []
        for one in self.study.actions(10 * most):
            last = found[-1][0] if found else None
            if last is not None and last.action == one.action == FAILED_LOGIN and last.researcher == one.researcher:
                found[-1] = (last, found[-1][1] + 1)
            else:
                found.append((one, 1))
        return found[:most]

    def numbers(self) -> DeskNumbers:
        """Return the numbers as of now, at most a second old; the estimates are those that are known."""
        closed, counts, version = self._count()
        snapshot = Snapshot(0, ()) if self._live is None else self._live.latest(version)
        pages = {page.index: page for page in counts.pages}
        names = [*self._names, *(f"page {at + 1}" for at in range(len(self._names), len(pages)))]
        shown = tuple(pages.get(at, PageCounts(at, 0, 0, None)) for at in range(len(names)))
        return DeskNumbers(closed, counts, shown, tuple(names), snapshot)

    def changed(self) -> None:
        """Count and estimate anew, since answers were taken back or the study was closed."""
        self._counted = 0.0
        if self._live is not None:
            self._live.forget()

    def wait(self, seconds: float) -> None:
        """Wait for the estimates that are being computed."""
        if self._live is not None:
            self._live.wait(seconds)

    def close(self) -> None:
        """Stop what runs beside the pages."""
        if self._live is not None:
            self._live.close()

    def _count(self) -> tuple[bool, Counts, Hashable]:
        with self._lock:
            if self._counts is None or monotonic() - self._counted > _FRESH:
                self._counts = (self.study.closed, self.study.counts(), self.study.version())
                self._counted = monotonic()
            return self._counts

    def _read(self) -> tuple[Responses, IntArray]:
        responses = self.study.responses()
        return responses, arrivals(self.study, responses)


class Throttled(Exception):  # noqa: N818
    """Too many attempts to log in."""


def arrivals(study: Study, responses: Responses) -> IntArray:
    """Return the answers of responses in the order in which they were saved last."""
    saved = study.saved_at()
    subject = responses.answers.get("subject", np.full(len(responses.person), None))
    who = responses.people["participant"][responses.person]
    keys = zip(who.tolist(), responses.answers["item"].tolist(), subject.tolist(), strict=True)
    return np.argsort([saved.get(key, np.inf) for key in keys], kind="stable")


def page_names(design: Design) -> tuple[str, ...]:
    """Return what the pages of the study are called on the dashboard, by the plan of the first person."""
    names, pairs = [], 0
    for step in design.plan(next(iter(design.conditions)), 0).steps:
        pairs = pairs % 4 + 1 if step.kind == "pair" else pairs
        pair, check = f"set {step.position}, pair {pairs}", f"check {step.check}"
        numbered = {"pair": pair, "case": f"case {step.position}", "check": check}
        names.append(numbered.get(step.kind, step.kind))
    return tuple(names)


def _page(page: PageCounts, name: str) -> dict[str, Any]:
    times = page.times
    return {
        "page": page.index + 1,
        "name": name,
        "waiting": page.waiting,
        "dropped": page.dropped,
        "answers": times.answers if times else 0,
        "lower": times.lower if times else None,
        "median": times.median if times else None,
        "upper": times.upper if times else None,
    }


def total(counts: Sequence[Any], name: str) -> int:
    """Return the sum of one count over conditions."""
    return sum(getattr(one, name) for one in counts)
