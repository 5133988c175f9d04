"""What a notebook shows: badges, headlines, the main chart, progress; and `to_frame` and `plot` of a whole audit."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

import evenhand as eh
from evenhand.core.progress import listening, shown_in_notebook, step
from evenhand.errors import EvenhandError

DATA: dict[str, Any] = {
    "sex": ["<b>f</b>", "m"] * 200,
    "hired": [1, 0, 1, 1, 0, 1, 0, 1, 0, 0] * 40,
}


@pytest.fixture(scope="module")
def audit() -> eh.Audit:
    limits = [{"metric": "selection_rate", "max": 0.01}, {"metric": "selection_rate", "min": 0.1}]
    table = eh.Table(pd.DataFrame(DATA), groups="sex", predictions="hired")
    return eh.audit(table, parity={"metrics": "selection_rate"}, thresholds=limits)


def test_a_result_shows_badges_headlines_and_the_main_chart(audit: eh.Audit) -> None:
    result = audit["parity"]
    page = result._repr_html_()
    assert "✕ does not meet the threshold" in page
    assert "✓ meets the threshold" in page
    assert page.count('<svg role="img"') >= 1
    assert "<details><summary>How sure</summary>" in page
    assert "<b>f</b>" not in page
    assert "&lt;b&gt;f&lt;/b&gt;" in page
    assert "<script" not in page
    assert audit._repr_html_().startswith("<p>1 <span")


def test_pictures_of_one_notebook_have_ids_of_their_own(audit: eh.Audit) -> None:
    first, second = (audit["parity"]._repr_html_() for _ in range(2))
    assert first != second


def test_an_audit_as_a_frame_and_as_a_chart(audit: eh.Audit) -> None:
    frame = audit.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame["verdict"]) == [finding.verdict for finding in audit.findings]
    assert list(audit.to_frame("gaps")["metric"]) == [gap.metric for gap in audit["parity"].rows("gaps")]
    assert len(audit.to_frame(audit="parity")) == len(audit.findings)
    assert audit.plot().to_svg(name="x") == audit["parity"].plot().to_svg(name="x")
    for wrong in (lambda: audit["nope"], lambda: audit.to_frame("nope"), lambda: audit.plot(audit="partiy")):
        with pytest.raises(EvenhandError, match="got '"):
            wrong()


class ZMQInteractiveShell:
    """The class by which a notebook is known."""


@pytest.mark.parametrize("shell", [ZMQInteractiveShell(), None])
def test_progress_is_shown_in_a_notebook_only_and_goes_away(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    handle = SimpleNamespace(update=shown.append)
    display = SimpleNamespace(HTML=str, display=lambda _, display_id: handle)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    with shown_in_notebook():
        step("Counting <cells>")
    assert shown == (["<em>Counting &lt;cells&gt; ...</em>", ""] if shell else [])
    heard: list[str] = []
    with listening(heard.append), shown_in_notebook():
        step("Counting")
    assert heard == ["Counting"], "who listens already hears it"
