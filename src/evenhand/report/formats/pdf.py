"""The page as a paged, tagged PDF."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from evenhand.errors import ConfigError
from evenhand.report import page
from evenhand.report.formats import Files
from evenhand.report.formats._packages import import_extra

if TYPE_CHECKING:
    from evenhand.run.audit import Audit

_YEAR_10000 = 253_402_300_800  # in seconds since 1970


def make(audit: Audit) -> Files:
    """Return the page as a paged, tagged document.

    Long tables are named and left to the spreadsheet.
    """
    weasyprint = import_extra("weasyprint", "pdf", "PDF")
    _require_date()
    refusing = weasyprint.urls.URLFetcher(allowed_protocols=("data",))  # everything is in the page itself
    document = weasyprint.HTML(string=page.render(audit, paged=True), url_fetcher=refusing)
    settings = {"pdf_tags": True, "pdf_identifier": audit.data["hash"].encode()}
    with _without_collection():
        return {"report.pdf": document.write_pdf(finisher=_scope_of_heads, **settings)}


def _require_date() -> None:
    """Refuse a date of the build that is none, which the fonts would be dated with."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "0")
    if not given.strip().isdecimal() or int(given) >= _YEAR_10000:
        raise ConfigError(
            "the environment variable SOURCE_DATE_EPOCH must be a number of seconds since 1970; got {given!r}.",
            given=given,
        )


@contextmanager
def _without_collection() -> Iterator[None]:
    """Suspend garbage collection, which takes a quarter of the rendering time."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def _scope_of_heads(_: object, pdf: Any) -> None:
    """Set the row of each head in tables rendered as lines.

    WeasyPrint links the heads it lays out.
    """
    for element in pdf.objects:
        if isinstance(element, dict) and element.get("S") == "/TH" and "ID" not in element:
            row = pdf.objects[int(element["P"].split()[0])]
            part = pdf.objects[int(row["P"].split()[0])]
            element["A"]["Scope"] = "/Column" if part["S"] == "/THead" else "/Row"
