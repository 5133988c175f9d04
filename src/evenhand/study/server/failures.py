"""What a visitor is told when something fails: one plain sentence in their language, never how it failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Scope

from evenhand.study.server.pages import common_values

if TYPE_CHECKING:
    from evenhand.study.server.app import AppContext

SENTENCES = {
    400: "This request could not be read.",
    401: "Please log in.",
    403: "This was not accepted: the form was open too long or came from another site. Reload it and send it again.",
    404: "There is no such page.",
    405: "This page cannot be used in this way.",
    413: "This is too long.",
    415: "The form was sent in a way that this page does not read.",
    422: "Something in this cannot be stored. Please go back and check it.",
    429: "Too many requests. Please wait a moment and try again.",
    500: "Something went wrong on our side. What was saved before is safe. Please try again.",
}
_WORDS = dict.fromkeys((400, 413, 415, 422), "not_stored") | {
    403: "form_expired",
    404: "not_found",
    405: "not_found",
    429: "slow_down",
    500: "try_again",
}
"""The words of the pages that say the same to participants, in their language."""


def error_response(
    context: AppContext, scope: Scope, status: int, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a plain page, or JSON where JSON was asked for."""
    sentence = SENTENCES.get(status, SENTENCES[500 if status >= 500 else 400])
    if scope["path"].startswith("/api/"):
        return JSONResponse({"error": sentence}, status, headers)
    spec = context.design.spec
    if scope["path"].startswith("/researcher"):
        values = {"language": "en", "study": spec.words(spec.title, "en"), "sentence": sentence}
        response = context.page("error.html", status, **values)
    else:
        visitor = context.security.visitor(Request(scope))
        asked = visitor.language if visitor else None
        language = asked if asked in spec.languages else spec.languages[0]
        values = common_values(context.design, language, _WORDS.get(status, sentence))
        response = context.page("participant/message.html", status, **values, again=True)
    response.headers.update(headers or {})
    return response
