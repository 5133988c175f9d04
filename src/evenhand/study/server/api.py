"""The JSON side: drafts of answers as people type, the numbers of the dashboard, and whether the server is well."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from evenhand.study.server.middleware import MOST_FIELDS, is_small_number, read_json
from evenhand.study.server.security import WRITTEN_BY, Logins, VisitorCookie
from evenhand.study.store.participants import enrolment_of
from evenhand.study.store.records import CheckCounts, ConditionCounts

if TYPE_CHECKING:
    from evenhand.study.server.app import AppContext
    from evenhand.study.server.dashboard import Dashboard

_NOT_FORM = ("csrf", "revision")
_TEXT: dict[str, Any] = {"type": "string", "pattern": "^[^\\u0000]*$"}
_REVISION: dict[str, Any] = {"type": "string", "pattern": "^[0-9]{1,9}$"}
_ONE_REVISION = {"type": "array", "items": _REVISION, "minItems": 1, "maxItems": 1}
_FIELDS = {
    "type": "object",
    "maxProperties": MOST_FIELDS,
    "propertyNames": _TEXT,
    "properties": {"revision": {"anyOf": [_REVISION, _ONE_REVISION]}},
    "additionalProperties": {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]},
}
_BODY = {"type": "object", "required": ["fields"], "additionalProperties": False, "properties": {"fields": _FIELDS}}
_DRAFT = {"requestBody": {"required": True, "content": {"application/json": {"schema": _BODY}}}}


class Problem(BaseModel):
    """What went wrong, in one sentence."""

    error: str


class Health(BaseModel):
    """Whether the server reaches its database."""

    status: str


class Kept(BaseModel):
    """Whether a draft was kept; it is not where a newer answer is stored, or the person has finished."""

    kept: bool


class PageNumbers(BaseModel):
    """One page: who is there, who dropped out there, and the seconds it took."""

    page: int
    name: str
    waiting: int
    dropped: int
    answers: int
    lower: float | None
    median: float | None
    upper: float | None


class EstimateNumbers(BaseModel):
    """One live estimate."""

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


class DashboardNumbers(BaseModel):
    """All numbers of the dashboard; `stamp` changes when any of them does."""

    stamp: str = Field(description="Changes when any of the numbers does.")
    closed: bool
    answers: int
    last_answer: datetime | None
    conditions: list[ConditionCounts]
    pages: list[PageNumbers]
    checks: list[CheckCounts]
    estimates_of: int = Field(description="The number of answers that the estimates rest on.")
    estimates: list[EstimateNumbers]


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": Problem} for status in (400, *statuses, 429, 500)}


def router(context: AppContext, dashboard: Dashboard) -> APIRouter:
    """Return the JSON routes."""
    routes = APIRouter(prefix="/api")
    study, design = context.study, context.design
    logins = Logins(study, context.security)

    @routes.get("/health", responses=_problems())
    def health() -> Health:
        """Tell whether the server is well."""
        _ = study.closed
        return Health(status="ok")

    @routes.put("/draft/{index}", responses=_problems(403, 404, 413, 415, 422), openapi_extra=_DRAFT)
    async def draft(request: Request, index: Annotated[int, Path(ge=0, le=100_000)]) -> Kept:
        """Keep what somebody has typed so far; the header X-CSRF-Token must hold the token of their form."""
        visitor = context.security.require_csrf(request)
        fields, revision = _fields_of(await read_json(request))
        typed = {name: value for name, value in fields.items() if name not in _NOT_FORM}
        return Kept(kept=await run_in_threadpool(keep, visitor, index, typed, revision))

    def keep(visitor: VisitorCookie, index: int, typed: dict[str, Any], revision: int) -> bool:
        person = study.participants.by_token(visitor.token) if visitor.token else None
        if person is None:
            raise HTTPException(403)
        if person.fingerprint not in (None, design.fingerprint):
            raise HTTPException(404)
        steps = design.plan(person.condition, person.place).steps
        if not visitor.first <= index < len(steps) or index > person.reached:
            raise HTTPException(404)
        draft = {**typed, WRITTEN_BY: enrolment_of(visitor.session)}
        return study.answers.save_draft(person, steps[index].key, draft, revision=revision)

    @routes.get("/dashboard", responses=_problems(401))
    def numbers(request: Request) -> DashboardNumbers:
        """Return the numbers of the dashboard; only for researchers who are logged in."""
        if logins.session(request) is None:
            raise HTTPException(401)
        return DashboardNumbers.model_validate(dashboard.state().as_json())

    return routes


def _fields_of(body: Any) -> tuple[dict[str, Any], int]:
    """Return the fields of a draft and the revision that its form was made from; 422 for another shape."""
    fields = body.get("fields") if isinstance(body, dict) and len(body) == 1 else None
    if not isinstance(fields, dict) or len(fields) > MOST_FIELDS or not all(map(_is_field, fields.values())):
        raise HTTPException(422)
    given = fields.get("revision", "0")
    revision = given[0] if isinstance(given, list) and len(given) == 1 else given
    if not is_small_number(revision):
        raise HTTPException(422)
    return fields, int(revision)


def _is_field(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(text, str) for text in value))
