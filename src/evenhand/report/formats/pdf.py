"""The page as a tagged PDF with page breaks."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from evenhand.report import page
from evenhand.report.formats import Files
from evenhand.report.formats._packages import import_extra

if TYPE_CHECKING:
    from evenhand.run.audit import Audit


def make(audit: Audit) -> Files:
    """Return the page as a tagged PDF document.

    Long tables are only named; the spreadsheet contains them.
    """
    weasyprint = import_extra("weasyprint", "pdf", "PDF")
    refusing = weasyprint.urls.URLFetcher(allowed_protocols=("data",))  # the page contains all its resources
    document = weasyprint.HTML(string=page.render(audit, paged=True), url_fetcher=refusing)
    settings = {"pdf_tags": True, "pdf_identifier": audit.data["hash"].encode()}
    with _without_collection():
        return {"report.pdf": document.write_pdf(finisher=_scope_of_heads, **settings)}


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
    """Set the scope of each header cell in tables that are styled as plain lines.

    WeasyPrint sets it only for header cells that it lays out as a table.
    """
    for element in pdf.objects:
        if isinstance(element, dict) and element.get("S") == "/TH" and "ID" not in element:
            row = pdf.objects[int(element["P"].split()[0])]
            part = pdf.objects[int(row["P"].split()[0])]
            element["A"]["Scope"] = "/Column" if part["S"] == "/THead" else "/Row"
