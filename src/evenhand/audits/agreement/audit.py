"""The agreement audit: compute a result from a table of ratings and settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from evenhand.audits.agreement.draws import GroupDraws, draw_group, pooled, with_errors
from evenhand.audits.agreement.estimate import count_records, gap_estimates, value_estimates
from evenhand.audits.agreement.findings import agreement_notes, make_claims
from evenhand.audits.agreement.gather import RatedPeople, gather
from evenhand.audits.agreement.messages import say
from evenhand.audits.agreement.metrics import AgreementMetric, metrics_for
from evenhand.audits.agreement.result import AgreementGap, AgreementResult, CountRecord
from evenhand.audits.agreement.spec import AgreementSpec
from evenhand.core.estimates import Estimate
from evenhand.core.groups import ComparedGroups, compared_groups
from evenhand.core.progress import step
from evenhand.core.records import OVERALL, LeftOut
from evenhand.core.result import Draft, finalize
from evenhand.core.spec import audit_function
from evenhand.core.thresholds import require_known
from evenhand.errors import count, require_name
from evenhand.messages import Message
from evenhand.messages.shared import say as shared
from evenhand.stats.types import BoolArray
from evenhand.table.table import Table


@audit_function(AgreementSpec)
def agreement(table: Table, **settings: Any) -> AgreementResult:
    """Measure the agreement of raters about the same people, and compare it between groups.

    The metrics depend on the ratings. Binary ratings of two raters have kappa, pabak, agreement, positive_agreement,
    negative_agreement, ac1, alpha, prevalence_index, bias_index, and the parts of PABAK minus kappa. Nominal ratings
    have kappa, bennett_s, ac1 and alpha. Ordinal ratings have weighted kappas and alpha. Scores have intraclass
    correlations, icc_spread, concordance, alpha and mean_squared_error. Three or more raters have conger_kappa,
    fleiss_kappa, bennett_s, ac1, alpha and intraclass correlations.

    Parameters
    ----------
    table
        The data with its roles, one row per person and a column for each of the `raters`, or one row per rating with
        the columns `item`, `rater` and `rating`; groups are optional, survey weights are used.
    {settings}

    Returns
    -------
    AgreementResult
        Tables `values`, `gaps` and `counts`.

    Examples
    --------
    >>> import evenhand as eh
    >>> ratings = {"a": [1, 1, 0, 0, 1, 0] * 20, "b": [1, 0, 0, 0, 1, 0] * 20, "sex": ["F", "M"] * 60}
    >>> result = eh.agreement(eh.Table(ratings, groups="sex"), raters=["a", "b"], resamples=200)
    >>> kappas = [result.get("values", metric="kappa", group=group).value for group in ("(overall)", "M")]
    >>> [round(kappa, 3) for kappa in kappas]
    [0.667, 0.0]

    One row a rating, and not everybody rated by all:

    >>> grades = {"case": [1, 1, 2, 2, 3, 3, 3, 4, 4, 5, 5, 5], "by": [*"ab", *"bc", *"abc", *"ac", *"abc"]}
    >>> grades["grade"] = [3.0, 3.5, 1.0, 1.5, 4.0, 4.0, 4.5, 2.0, 2.5, 5.0, 4.5, 5.0]
    >>> result = eh.agreement(eh.Table(grades), item="case", rater="by", rating="grade", resamples=200)
    >>> round(result.get("values", metric="icc_a1").value, 3)
    0.955
    """
    return finalize(run(table, AgreementSpec.parse(settings, "the arguments of agreement()")))


def run(table: Table, spec: AgreementSpec) -> Draft[AgreementResult]:
    """Audit the raters of a table under the settings of a spec."""
    require_known(spec.thresholds, groupings=table.groupings)
    step("Reading the ratings")
    rated = gather(table, spec)
    metrics = _chosen_metrics(rated, spec)
    groupings = compared_groups(table, rated.groups, spec.reference, spec.min_count, rated.contents)
    counts: list[CountRecord] = []
    drawn: dict[str | None, list[GroupDraws]] = {}
    spread = pooled(rated)

    def draw(inside: BoolArray, grouping: str | None, group: str) -> None:
        group_draws = draw_group(rated, inside, list(metrics.values()), spread, spec)
        drawn.setdefault(grouping, []).append(group_draws)
        counts.extend(count_records(rated, inside, grouping, group))

    step("Resampling everybody")
    draw(np.ones(len(rated.ratings), dtype=np.bool_), None, OVERALL)
    for grouping in groupings:
        step(f"Resampling the groups of {grouping.name}")
        for code, group in enumerate(grouping.groups):
            draw(grouping.code == code, grouping.name, group)

    drawn = {name: with_errors(groups) for name, groups in drawn.items()}
    of_values = value_estimates(drawn[None][0], None, OVERALL, metrics, spec.confidence)
    of_gaps: list[Estimate[AgreementGap]] = []
    for grouping in groupings:
        of_groups = drawn.get(grouping.name, [])
        for one, group in zip(of_groups, grouping.groups, strict=True):
            of_values += value_estimates(one, grouping.name, group, metrics, spec.confidence)
        of_gaps += gap_estimates(grouping, of_groups, metrics, spec)
    values = [estimate.record for estimate in of_values]
    result = AgreementResult(
        spec=spec,
        findings=(),
        left_out=tuple(_left_out(table, rated, groupings)),
        notes=(*table.source.notes, *_cluster_notes(table, rated)),
        backend=table.backend,
        values=tuple(values),
        gaps=tuple(estimate.record for estimate in of_gaps),
        counts=tuple(counts),
        scale=rated.scale,
        raters=rated.raters,
    )
    return Draft(
        result=result,
        claims=list(make_claims(of_values, of_gaps, metrics, len(rated.raters), spec)),
        own=say,
        notes=lambda draft: agreement_notes(rated, values, draft.gaps, metrics=metrics, groupings=groupings, spec=spec),
    )


def _chosen_metrics(rated: RatedPeople, spec: AgreementSpec) -> dict[str, AgreementMetric]:
    """Return the requested metrics, or all metrics that the ratings allow; refuse unavailable ones."""
    raters = rated.ratings.shape[1]
    allowed = metrics_for(rated.scale, raters)
    for name in (*(spec.metrics or ()), *(threshold.metric for threshold in spec.thresholds)):
        require_name(
            name,
            allowed,
            "the metric {name!r} is not for {scale} ratings of {raters}; {hint}",
            scale=rated.scale,
            raters=count(raters, "rater"),
        )
    return {name: metric for name, metric in allowed.items() if spec.metrics is None or name in spec.metrics}


def _cluster_notes(table: Table, rated: RatedPeople) -> Iterator[Message]:
    if rated.cluster is not None:
        yield shared("clustered", cluster=table.roles.cluster, n=len(np.unique(rated.cluster)))


def _left_out(table: Table, rated: RatedPeople, groupings: Sequence[ComparedGroups]) -> Iterator[LeftOut]:
    dropped = {shared("rows_dropped"): table.dropped, say("missing_rating"): rated.dropped}
    yield from (LeftOut(n=n, reason=reason) for reason, n in dropped.items() if n)
    for grouping in groupings:
        yield from grouping.left_out
