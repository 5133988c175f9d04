"""The sentence above a figure never says more than its findings."""

from __future__ import annotations

from typing import Any

from evenhand.core.display import DESCRIBES, figure_sentence
from evenhand.core.findings import Finding
from evenhand.messages import Message
from evenhand.messages.shared import say

DRAWN = ("selection_rate",)
LIMIT = say("at_most_points", limit=10.0)


def headline(**arguments: str) -> Message:
    sentence = "two_values_worse_off" if "worse_off" in arguments else "two_values"
    return say(sentence, **{"title": "selection rate", "clause": "A headline", **arguments})


def shown(*findings: Finding) -> str:
    return figure_sentence(findings, DRAWN, 0.05).text


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
        "headline": headline(worse_off="Black"),
        "value": 0.2,
        "p_adjusted": 0.001,
        "n": 100,
    }
    p_adjusted = {**values, **changes}["p_adjusted"]
    broken = changes.get("verdict") == "does_not_meet"
    clear = broken or (p_adjusted is not None and p_adjusted <= 0.05)
    significance = "directed" if clear else "not_significant"
    return Finding(**{**values, "significance": significance, **changes})


def test_a_difference_that_is_clear_under_every_model_is_told_of_all() -> None:
    assert shown(finding("a"), finding("b")) == ("By race, Black is worse off in selection rate under every model.")


def test_models_under_which_it_is_not_clear_are_named() -> None:
    assert shown(finding("a"), finding("b", p_adjusted=0.2), finding("c")) == (
        "By race, Black is worse off in selection rate under a and c."
    )


def test_nobody_is_called_worse_off_where_models_disagree_about_whom() -> None:
    other = finding("b", headline=headline(worse_off="White"))
    assert shown(finding("a"), other) == ("By race, groups differ in selection rate beyond chance under every model.")


def test_nothing_is_claimed_without_a_clear_finding() -> None:
    nothing = say("figure_nothing_clear").text
    assert shown(finding("a", p_adjusted=0.06)) == nothing
    assert shown(finding("a", p_value=0.001, p_adjusted=None)) == nothing
    undecided: dict[str, Any] = {"threshold": LIMIT, "limit": 0.1, "verdict": "insufficient_evidence"}
    assert shown(finding("a", significance="not_significant", **undecided)) == nothing
    assert shown(finding("a", **undecided)) == "By race, Black is worse off in selection rate."
    assert shown() == DESCRIBES.text


def test_thresholds_are_told_as_they_were_judged() -> None:
    limit: dict[str, Any] = {"threshold": LIMIT, "limit": 0.1, "headline": headline()}
    assert shown(finding("a", verdict="meets", **limit)) == say("figure_all_meet").text
    assert shown(finding("a", verdict="does_not_meet", **limit)) == (
        "By race, the gap in selection rate is beyond the limit (at most 10 points)."
    )


def test_a_metric_that_the_figure_does_not_draw_is_not_told() -> None:
    undrawn = finding(
        "a", metric="mean_score", p_adjusted=1e-9, headline=headline(title="mean score", worse_off="Asian")
    )
    assert shown(undrawn, finding("a")) == "By race, Black is worse off in selection rate."
    assert shown(undrawn) == DESCRIBES.text


def test_the_clearest_finding_is_told_and_a_broken_limit_before_it() -> None:
    sex = finding("a", grouping="sex", p_adjusted=0.0001, headline=headline(worse_off="F"))
    said = "By sex, F is worse off in selection rate."
    assert shown(finding("a"), sex) == shown(sex, finding("a")) == said
    limit = {"threshold": LIMIT, "limit": 0.1, "verdict": "does_not_meet", "p_adjusted": None}
    broken = [finding("a", **limit), finding("a", grouping="sex", **limit)]
    assert shown(sex, *broken) == "By race, Black is worse off in selection rate."
