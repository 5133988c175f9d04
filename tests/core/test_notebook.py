"""What a result shows in a notebook, and as text."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import evenhand as eh
from evenhand.core.display import Figure
from evenhand.core.findings import Finding
from evenhand.core.result import _figure_html, answer_line, badge, findings_html
from evenhand.errors import ConfigError
from evenhand.messages import Message

FINDING = Finding(
    audit="parity",
    metric="tpr",
    headline=Message("A < b."),
    value=0.2,
    n=3,
    detail=Message("It is."),
    reason=Message("So."),
)


def test_a_verdict_is_a_badge_and_none_is_nothing() -> None:
    assert badge("no_threshold") == ""
    assert "✕ does not meet the threshold</span> " in badge("does_not_meet").lower()
    assert badge("meets").startswith('<span style="color:#14532d;background:#e2f4e7;')


def test_the_first_dozen_findings_are_shown_and_the_rest_folded() -> None:
    said = "<li>A &lt; b.<details><summary>How sure</summary>It is. So.</details></li>"
    assert findings_html([FINDING]) == f"<ul>{said}</ul>"
    assert findings_html([replace(FINDING, reason=None)]) == f"<ul>{said.replace(' So.', '')}</ul>"
    assert "more" not in findings_html([FINDING] * 12)
    folded = findings_html([FINDING] * 14)
    assert folded == f"<ul>{said * 12}</ul><details><summary>2 more</summary><ul>{said * 2}</ul></details>"


@pytest.fixture(scope="module")
def result() -> eh.ParityResult:
    data = {"sex": ["F", "M"] * 60, "age": ["old", "old", "young"] * 40, "hired": [1, 0, 1, 1, 0] * 24}
    table = eh.Table(data, outcome=[1, 0, 1, 1, 0, 0] * 20, groups=["sex", "age"], predictions="hired")
    return eh.parity(table, metrics=["selection_rate", "tpr"], resamples=200)


def test_a_figure_has_four_panels_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(chart: str, title: str, description: str, name: str) -> str:
        return f"<svg id='{name}'>{chart} {title} {description}</svg>"

    monkeypatch.setattr("evenhand.core.result.to_svg", drawn)
    for number, shown in ((1, 1), (4, 4), (5, 4)):
        html = _figure_html(Figure("T & t", "C.", "D", tuple("abcde"[:number])))
        assert html.count("<svg") == len(set(re.findall("id='(evenhand-[1-9][0-9]*)'", html))) == shown
        assert ("The first 4 of 5 panels." in html) == (number == 5)
        assert html.startswith("<figure><svg")
        assert "<figcaption>T &amp; t. C." in html


def test_a_result_in_a_notebook_has_folded_tables(result: eh.ParityResult) -> None:
    html = result._repr_html_()
    assert html.startswith(f"<h3>{result.title}</h3>")
    assert html.count("<table>") == html.count("</table></details>") > 0
    assert repr(result).startswith(f"<ParityResult: {len(result.findings)} findings; tables ")
    assert str(result).startswith(f"{result.title}: {answer_line(result.findings)}\n\n- ")


def test_charts_are_asked_for_by_name_and_grouping(result: eh.ParityResult) -> None:
    assert result.charts()
    assert result.groupings == ["sex", "age"]
    with pytest.raises(ConfigError, match="`chart` got 'no such chart'; known names"):
        result.plot("no such chart")
    with pytest.raises(ConfigError, match="`grouping` got 'race'; known names"):
        result.plot(grouping="race")
    assert result.plot(grouping="age").to_svg(name="x") != result.plot(result.charts()[0]).to_svg(name="x")
    assert not result.shows_individuals
