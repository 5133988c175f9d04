"""Researcher pages for reasons: two raters rate them; everyone else sees agreement and bonuses.

A rater sees one reason at a time, in an order specific to the rater, without its author and the other rater's rating,
and sees nothing else of the study.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from evenhand.core.csv_text import write_csv
from evenhand.errors import count
from evenhand.study.flow.pages import LONGEST_TEXT, read_text
from evenhand.study.ratings import RatedReasons, Rating, Reason
from evenhand.study.server.bonuses import bonus_problem
from evenhand.study.server.researcher import MEDIA, Desk, Fields, as_download, field_of, redirect_to

if TYPE_CHECKING:
    from evenhand.study.server.app import AppContext

_OUT = "out:"
NOTICES = {
    "saved": "Saved. Here is the next one.",
    "all": "You have rated every reason. Thank you.",
    "entered": "The reason was stored. It is rated with the others.",
    "not_entered": "Nothing was stored: there is no such answer of somebody who finished, or it has a reason already.",
    "too_long": f"Nothing was stored: a reason needs some words, at most {LONGEST_TEXT:,} characters.",
}


def router(context: AppContext, desk: Desk) -> APIRouter:
    """Return the routes of the pages for reasons."""
    pages = ReasonPages(context, desk)
    routes = APIRouter(prefix="/researcher/reasons", include_in_schema=False)
    routes.add_api_route("", pages.overview, methods=["GET"])
    routes.add_api_route("/rate", pages.show, methods=["GET"])
    routes.add_api_route("/rate", pages.rate, methods=["POST"])
    routes.add_api_route("/enter", pages.enter, methods=["POST"])
    routes.add_api_route("/ratings.csv", pages.export, methods=["GET"])
    return routes


class ReasonPages:
    """The pages for reasons of one study."""

    def __init__(self, context: AppContext, desk: Desk) -> None:
        self._context, self._desk, self._study = context, desk, context.study
        self._spec, self._settings = context.design.spec, context.design.spec.rationales
        self._lock = threading.Lock()
        self._version: Hashable = None
        self._known = RatedReasons((), (), self._settings)

    def _rated(self) -> RatedReasons:
        """Return the reasons and their ratings; agreement is recomputed only if answers or ratings changed."""
        version, ratings = self._study.results.version(), self._study.ratings.all()
        with self._lock:
            if self._version != version:
                self._known = RatedReasons.of(self._study.results.responses(), ratings, self._settings)
            elif self._known.ratings != ratings:
                self._known = replace(self._known, ratings=ratings)
            self._version = version
            return self._known

    def overview(self, request: Request, done: str = "") -> Response:
        """Show rating progress, agreement and due bonuses; raters see only their own progress."""
        session, cookie = self._desk.login(request)
        if session is None or cookie is None:
            return redirect_to("/researcher/login")
        rated, raters = self._rated(), self._settings.raters
        if self._desk.is_rater(session):
            values = {"name": session.name, "notice": NOTICES.get(done, "")}
            progress = {"rated": len(rated.by(session.name)), "total": len(rated.reasons)}
            return self._desk.page("rater.html", cookie, 200, **values, **progress)
        paid = [bonus for bonus in self._spec.payment.bonuses if bonus.by == "reasons"]
        return self._desk.page(
            "reasons.html",
            cookie,
            200,
            name=session.name,
            notice=NOTICES.get(done, ""),
            settings=self._settings,
            raters=[(rater, len(rated.by(rater))) for rater in raters],
            known=self._study.researchers.names(),
            total=len(rated.reasons),
            both=rated.by_both if raters else 0,
            agreement=rated.agreement,
            bonuses=[(bonus, bonus_problem(bonus, rated)) for bonus in paid],
            kind=self._spec.kind,
            limit=LONGEST_TEXT,
            count=count,
        )

    def show(self, request: Request, after: str = "", change: str = "", done: str = "") -> Response:
        """Show this rater's next unrated reason, or an already rated one to change."""
        session, cookie = self._desk.login(request)
        if session is None or cookie is None:
            return redirect_to("/researcher/login")
        if not self._desk.is_rater(session):
            return redirect_to("/researcher/reasons")
        rated = self._rated()
        mine, order = rated.by(session.name), _order(rated.reasons, session.name, self._spec.seed)
        reason = _by_id(order, change) if change else _next(order, mine, after)
        if reason is None:
            return redirect_to("/researcher/reasons?done=all" if order and not change else "/researcher/reasons")
        given = mine.get((reason.participant, reason.step))
        place = order.index(reason)
        return self._desk.page(
            "rate.html",
            cookie,
            200,
            name=session.name,
            notice=NOTICES["saved"] if done == "saved" else "",
            reason=reason,
            number=place + 1,
            total=len(order),
            rated=len(mine),
            settings=self._settings,
            given="" if given is None else _value(given, self._settings.leave_out),
            before=order[place - 1].id if place else "",
            missing=done == "missing",
        )

    def rate(self, request: Request, fields: Fields) -> Response:
        """Store a rating."""
        session, _ = self._desk.form(request, fields, rater=True)
        wanted = field_of(fields, "reason")
        reason = _by_id(self._rated().reasons, wanted)
        if reason is None:
            return redirect_to("/researcher/reasons")
        given = self._read(field_of(fields, "rating"))
        if given is None:
            return redirect_to(f"/researcher/reasons/rate?change={reason.id}&done=missing")
        self._study.ratings.rate(Rating(reason.participant, reason.step, session.name, *given))
        return redirect_to(f"/researcher/reasons/rate?after={reason.id}&done=saved")

    def _read(self, text: str) -> tuple[int | None, str | None] | None:
        """Return the score, or the reason for leaving it out; None if the text is neither."""
        points = {str(number): number for number in range(1, len(self._settings.scale) + 1)}
        reasons = {f"{_OUT}{number}": why for number, why in enumerate(self._settings.leave_out, 1)}
        if text in points:
            return points[text], None
        return (None, reasons[text]) if text in reasons else None

    def enter(self, request: Request, fields: Fields) -> Response:
        """Store a reason that a participant gave outside the study pages, for example in an interview."""
        session, _ = self._desk.form(request, fields)
        who, item, subject = (field_of(fields, name).strip()[:200] for name in ("who", "item", "subject"))
        text = read_text(field_of(fields, "text"))
        if text is None or len(text) > LONGEST_TEXT:
            return redirect_to("/researcher/reasons?done=too_long")
        step = f"pair:{item}/{subject}" if self._spec.kind == "effort" else f"case:{item}"
        if not (who.isprintable() and step.isprintable() and self._study.ratings.enter(who, step, text)):
            return redirect_to("/researcher/reasons?done=not_entered")
        self._study.researchers.log(session.name, "entered a reason", f"{who}, {step}")
        return redirect_to("/researcher/reasons?done=entered")

    def export(self, request: Request) -> Response:
        """Return the ratings as a CSV file."""
        session = self._desk.require(request)
        rated = self._rated()
        self._study.researchers.log(session.name, "exported the ratings", count(len(rated.ratings), "rating"))
        content = write_csv(rated.columns()).encode()
        return as_download(content, f"{self._spec.name}-ratings.csv", MEDIA["csv"])


def _by_id(reasons: Iterable[Reason], wanted: str) -> Reason | None:
    return next((one for one in reasons if one.id == wanted), None)


def _order(reasons: Sequence[Reason], rater: str, seed: int) -> list[Reason]:
    """Return the reasons in a rater-specific random order, so that one person's reasons are not adjacent."""
    return sorted(reasons, key=lambda one: hashlib.sha256(f"{seed}/{rater}/{one.id}".encode()).digest())


def _next(order: Sequence[Reason], mine: Mapping[tuple[str, str], Rating], after: str) -> Reason | None:
    """Return the first unrated reason after the reason `after`, wrapping around to the start."""
    start = next((place + 1 for place, one in enumerate(order) if one.id == after), 0)
    return next((one for one in (*order[start:], *order[:start]) if (one.participant, one.step) not in mine), None)


def _value(rating: Rating, leave_out: Sequence[str]) -> str:
    if rating.score is not None:
        return str(rating.score)
    return f"{_OUT}{leave_out.index(rating.left_out) + 1}" if rating.left_out in leave_out else ""
