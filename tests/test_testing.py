"""`eh.testing.assert_meets`: it fails with the sentence of the finding, and on insufficient evidence by choice."""

from __future__ import annotations

from pathlib import Path

import pytest

import evenhand as eh
from evenhand.core.thresholds import Threshold
from evenhand.errors import ConfigError

HIRED = {"sex": ["F", "M"] * 300, "hired": [1, 0, 1, 1, 0, 1, 0, 1, 0, 0] * 60}


@pytest.fixture(scope="module")
def table() -> eh.Table:
    return eh.Table(HIRED, groups="sex", predictions="hired")


def test_it_fails_with_the_sentence_of_the_finding(table: eh.Table) -> None:
    limits = [{"metric": "selection_rate", "max": 0.05}, {"metric": "selection_rate", "min": 0.1}]
    broken = eh.audit(table, thresholds=limits).findings[0]
    with pytest.raises(AssertionError) as failed:
        eh.testing.assert_meets(table, limits)
    verdict = "At most 5 points: does not meet the threshold."
    assert str(failed.value) == f"1 of 2 thresholds is not met:\n- {broken.headline} {verdict} {broken.detail}"


def test_it_returns_what_was_found(table: eh.Table) -> None:
    found = eh.testing.assert_meets(table, [Threshold(metric="demographic_parity_difference", max=0.4)])
    assert found.findings[0].verdict == "meets"


def test_insufficient_evidence_fails_by_choice(table: eh.Table) -> None:
    limit = [{"metric": "selection_rate", "max": 0.2}]
    assert eh.testing.assert_meets(table, limit).findings[0].verdict == "insufficient_evidence"
    with pytest.raises(AssertionError, match=r"insufficient evidence\..*The interval reaches both sides"):
        eh.testing.assert_meets(table, limit, strict=True)


def test_without_a_threshold_nothing_could_fail(table: eh.Table, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs a threshold"):
        eh.testing.assert_meets(table)
    (tmp_path / "people.csv").write_text("sex,hired\n" + "f,1\nm,0\nf,0\nm,1\n" * 20)
    (tmp_path / "audit.toml").write_text(
        '[data]\nsource = "people.csv"\ngroups = "sex"\npredictions = "hired"\n[parity]\n'
        '[[thresholds]]\nmetric = "selection_rate"\nmax = 0.9\n'
    )
    assert eh.testing.assert_meets(tmp_path / "audit.toml").results


def test_a_threshold_that_is_none(table: eh.Table) -> None:
    with pytest.raises(ConfigError, match="selection_rate"):
        eh.testing.assert_meets(table, ["selection_rate"])  # type: ignore[list-item]
