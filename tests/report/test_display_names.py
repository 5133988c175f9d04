"""Names for readers of models, columns, groups and intersections."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import evenhand as eh
from evenhand.cli.console import print_summary
from evenhand.errors import ConfigError
from evenhand.report.display_names import displayed
from evenhand.report.formats import make_files

DATA = {
    "sex_cd": ["F", "M"] * 200,
    "race": ["A"] * 200 + ["B"] * 200,
    "month": ["2026-01", "2026-02"] * 200,
    "clf_v2": [1, 0, 1, 1, 0, 1, 0, 1, 0, 0] * 40,
    "y": [1, 1, 0, 0] * 100,
}
NAMES = {"sex_cd": "sex", "F": "women", "M": "men", "clf_v2": "the screen", "A × F": "Asian women"}


@pytest.fixture(scope="module")
def audit() -> eh.Audit:
    groups: list[Any] = ["sex_cd", ["race", "sex_cd"]]
    predictions = {"clf_v2": {"column": "clf_v2", "favourable": "selected"}}
    table = eh.Table(DATA, groups=groups, outcome="y", predictions=predictions)
    return eh.audit(
        table,
        parity={"metrics": ["selection_rate", "tpr"], "resamples": 100},
        thresholds=[{"metric": "selection_rate", "max": 0.05}],
        report={"names": NAMES, "profile": ["ugesp-1978"], "period": "month"},
    )


@pytest.mark.parametrize("name", ["html", "md", "pdf", "xlsx", "card"])
def test_every_format_for_readers_has_them(audit: eh.Audit, name: str) -> None:
    contents = list(make_files(audit, [name]).values())
    text = "".join(content for content in contents if isinstance(content, str))
    if name in ("html", "md"):
        text = text.partition("Configuration")[0].partition("Software")[0]
        assert "the screen selects: " in text
        assert "Asian women" in text
        assert "by sex_cd" not in text.lower()
        assert "clf_v2 selects" not in text
    assert contents


def test_the_data_keep_their_own(audit: eh.Audit) -> None:
    assert {value.group for value in audit["parity"].rows("values", grouping="sex_cd")} == {"F", "M"}
    assert "clf_v2" in str(make_files(audit, ["csv"])["findings.csv"])
    assert "clf_v2/selection_rate/sex_cd" in str(make_files(audit, ["junit"])["junit.xml"])
    assert '"Asian women"' not in audit.to_json().replace('"A × F": "Asian women"', "")


def test_the_terminal_has_them(audit: eh.Audit, capsys: pytest.CaptureFixture[str]) -> None:
    print_summary(audit)
    printed = " ".join(capsys.readouterr().out.split())
    assert "the screen selects: " in printed
    assert "clf_v2" not in printed


@pytest.mark.parametrize(("names", "said"), [({"F": "x", "M": "x"}, "two names are 'x'"), ({"F": " "}, "must be text")])
def test_names_that_cannot_be_told_apart_are_refused(names: dict[str, str], said: str) -> None:
    table = eh.Table(DATA, groups="sex_cd", predictions="clf_v2")
    with pytest.raises(ConfigError, match=said):
        eh.audit(table, report={"names": names})


@pytest.mark.slow
def test_every_audit_can_be_read_under_other_names(six_audits: eh.Audit) -> None:
    values: list[Any] = [value for result in six_audits.results.values() for value in result.tables.get("values", ())]
    own = {str(name) for value in values for name in (value.model, value.grouping, value.group) if name}
    names = {name: f"Named {number}" for number, name in enumerate(sorted(own))}
    report = six_audits.config.report.model_copy(update={"names": names})
    shown = displayed(replace(six_audits, config=six_audits.config.model_copy(update={"report": report})))
    for result in shown.results.values():
        assert result.section().parts
        assert result.plot().to_svg()
    text = " ".join(str(finding.headline) for finding in shown.findings)
    assert not [name for name in own if f" {name} " in text and len(name) > 3]
