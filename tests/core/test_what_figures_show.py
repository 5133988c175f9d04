"""The sentence above a figure never says more than its findings."""

from __future__ import annotations

from typing import Any

from evenhand.core.display import DESCRIBES, FIGURE_SENTENCES, what_it_shows
from evenhand.core.findings import Finding

DRAWN = ("selection_rate",)


def finding(model: str, **changes: Any) -> Finding:
    values: dict[str, Any] = {
        "audit": "parity",
        "model": model,
        "grouping": "race",
        "group": "Black",
        "reference": "Asian",
        "metric": "selection_rate",
        "kind": "difference",
        "against": "worst_pair",
        "sentence_id": "two_values_worse_off",
        "arguments": {"title": "selection rate", "worse_off": "Black"},
        "headline": "A headline.",
        "value": 0.2,
        "p_adjusted": 0.001,
        "n": 100,
    }
    return Finding(**{**values, **changes})


def test_a_difference_that_is_clear_under_every_model_is_told_of_all() -> None:
    assert what_it_shows([finding("a"), finding("b")], DRAWN, 0.05) == (
        "By race, Black is worse off in selection rate under every model."
    )


def test_models_under_which_it_is_not_clear_are_named() -> None:
    assert what_it_shows([finding("a"), finding("b", p_adjusted=0.2), finding("c")], DRAWN, 0.05) == (
        "By race, Black is worse off in selection rate under a and c."
    )


def test_nobody_is_called_worse_off_where_models_disagree_about_whom() -> None:
    other = finding("b", arguments={"title": "selection rate", "worse_off": "White"})
    assert what_it_shows([finding("a"), other], DRAWN, 0.05) == (
        "By race, groups differ in selection rate beyond chance under every model."
    )


def test_nothing_is_claimed_without_a_clear_finding() -> None:
    nothing = FIGURE_SENTENCES["nothing_clear"]
    assert what_it_shows([finding("a", p_adjusted=0.06)], DRAWN, 0.05) == nothing
    assert what_it_shows([finding("a", p_value=0.001, p_adjusted=None)], DRAWN, 0.05) == nothing
    undecided = finding("a", threshold="at most 10 points", limit=0.1, verdict="insufficient_evidence")
    assert what_it_shows([undecided], DRAWN, 0.05) == nothing
    assert what_it_shows([], DRAWN, 0.05) == DESCRIBES


def test_thresholds_are_told_as_they_were_judged() -> None:
    limit: dict[str, Any] = {"threshold": "at most 10 points", "limit": 0.1, "arguments": {"title": "selection rate"}}
    assert what_it_shows([finding("a", verdict="meets", **limit)], DRAWN, 0.05) == FIGURE_SENTENCES["all_meet"]
    assert what_it_shows([finding("a", verdict="does_not_meet", **limit)], DRAWN, 0.05) == (
        "By race, the gap in selection rate is beyond the limit of at most 10 points."
    )


def test_a_metric_that_the_figure_does_not_draw_is_not_told() -> None:
    undrawn = finding(
        "a", metric="mean_score", p_adjusted=1e-9, arguments={"title": "mean score", "worse_off": "Asian"}
    )
    assert what_it_shows([undrawn, finding("a")], DRAWN, 0.05) == "By race, Black is worse off in selection rate."
    assert what_it_shows([undrawn], DRAWN, 0.05) == DESCRIBES


def test_the_clearest_finding_is_told_and_a_broken_limit_before_it() -> None:
    sex = finding("a", grouping="sex", p_adjusted=0.0001, arguments={"title": "selection rate", "worse_off": "F"})
    said = "By sex, F is worse off in selection rate."
    assert what_it_shows([finding("a"), sex], DRAWN, 0.05) == what_it_shows([sex, finding("a")], DRAWN, 0.05) == said
    limit = {"threshold": "at most 10 points", "limit": 0.1, "verdict": "does_not_meet", "p_adjusted": None}
    broken = [finding("a", **limit), finding("a", grouping="sex", **limit)]
    assert what_it_shows([sex, *broken], DRAWN, 0.05) == "By race, Black is worse off in selection rate."
