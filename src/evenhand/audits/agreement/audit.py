"""The agreement audit: a table of ratings and settings in, a result out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from evenhand.audits.agreement.compare import OVERALL, count_records, draw_group, pooled, statistic_records
from evenhand.audits.agreement.findings import make_findings
from evenhand.audits.agreement.gaps import gap_records, with_adjusted_p
from evenhand.audits.agreement.notes import agreement_notes
from evenhand.audits.agreement.people import Rated, gather
from evenhand.audits.agreement.records import CountRecord, GapRecord, StatisticRecord
from evenhand.audits.agreement.result import AgreementResult
from evenhand.audits.agreement.spec import AgreementSpec
from evenhand.audits.agreement.statistics import Scale, Statistic, statistics_for
from evenhand.core.compared import Compared, compared_groups
from evenhand.core.progress import step
from evenhand.core.spec import Threshold
from evenhand.errors import ConfigError, count, did_you_mean
from evenhand.table.roles import Scalar
from evenhand.table.table import Table


def agreement(
    table: Table,
    *,
    raters: Sequence[str],
    scale: Scale | None = None,
    categories: Sequence[Scalar] | None = None,
    positive: Scalar | None = None,
    statistics: Sequence[str] | str | None = None,
    reference: Mapping[str, str] | str | None = None,
    missing: Literal["error", "drop", "keep"] | None = None,
    min_count: int = 10,
    confidence: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
    thresholds: Sequence[Threshold | Mapping[str, Any]] = (),
) -> AgreementResult:
    """Ask how far real raters agree about the same people, and whether they agree less about some groups.

    Parameters
    ----------
    table
        The data with its roles, one row a person; groups are optional, survey weights are used.
    raters
        Columns of two or more raters' ratings.
    scale
        'binary', 'nominal', 'ordinal' or 'interval'. By default two values are binary, other text is nominal and other
        numbers are interval.
    categories
        All values that a rating can take, lowest first; needed for an order of text, and where a value did not occur.
    positive
        The value of a binary rating that counts as positive; by default 1, true, yes, or else the last.
    statistics
        Which ones; by default all that the ratings allow. All that are named are tested and told as findings, else only
        the headline ones. Two binary raters: kappa, pabak, agreement,
        positive_agreement, negative_agreement, ac1, alpha, prevalence_index, bias_index, and the parts of PABAK less
        kappa; nominal: kappa, bennett_s, ac1, alpha; ordinal: weighted kappas, alpha; interval: intraclass
        correlations, icc_spread, concordance, alpha, mean_squared_error. More raters: conger_kappa, fleiss_kappa,
        bennett_s, ac1, alpha, intraclass correlations.
    reference
        Reference group, or one for each grouping; by default the largest group.
    missing
        People with a missing rating: 'error', 'drop', or 'keep', which uses what there is where the statistic allows
        it; by default as the table does.
    min_count
        Groups with fewer people are not compared.
    confidence, resamples, seed
        Confidence of the intervals, bootstrap resamples of people, and their seed.
    thresholds
        Limits of gaps, each a mapping such as ``{"metric": "pabak", "max": 0.1}``: of the two groups farthest apart, or
        with ``"against": "reference"`` of each group and the reference group; also with a `grouping`.

    Returns
    -------
    AgreementResult
        Tables `statistics`, `gaps` and `counts`.

    Examples
    --------
    >>> import evenhand as eh
    >>> ratings = {"a": [1, 1, 0, 0, 1, 0] * 20, "b": [1, 0, 0, 0, 1, 0] * 20, "sex": ["F", "M"] * 60}
    >>> result = eh.agreement(eh.Table(ratings, groups="sex"), raters=["a", "b"], resamples=200)
    >>> round(result.statistic("kappa").value, 3), round(result.statistic("kappa", "M").value, 3)
    (0.667, 0.0)
    """
    return run(
        table,
        AgreementSpec.parse(
            {
                "raters": raters,
                "scale": scale,
                "categories": categories,
                "positive": positive,
                "statistics": statistics,
                "reference": reference,
                "missing": missing,
                "min_count": min_count,
                "confidence": confidence,
                "resamples": resamples,
                "seed": seed,
                "thresholds": thresholds,
            },
            "the arguments of agreement()",
        ),
    )


def run(table: Table, spec: AgreementSpec) -> AgreementResult:
    """Audit the raters of a table as a spec says."""
    _require_threshold_places(table, spec)
    step("Reading the ratings")
    rated = gather(table, spec)
    chosen = _chosen(rated, spec)
    spread = pooled(rated)
    everybody = np.ones(len(rated.ratings), dtype=np.bool_)
    step("Resampling everybody")
    whole = draw_group(rated, everybody, list(chosen.values()), spread, spec, OVERALL)
    statistics: list[StatisticRecord] = list(statistic_records(whole, (None, OVERALL), chosen, spec))
    counts: list[CountRecord] = list(count_records(rated, everybody, (None, OVERALL)))
    gaps: list[GapRecord] = []
    groupings = compared_groups(table, rated.groups, spec.reference, spec.min_count)
    for grouping in groupings:
        step(f"Resampling the groups of {grouping.name}")
        drawn = []
        for number, label in enumerate(grouping.groups):
            inside = grouping.code == number
            drawn.append(draw_group(rated, inside, list(chosen.values()), spread, spec, grouping.name, label))
            statistics += statistic_records(drawn[-1], (grouping.name, label), chosen, spec)
            counts += count_records(rated, inside, (grouping.name, label))
        if len(drawn) > 1:
            gaps += gap_records(grouping, drawn, chosen, spec)
    told = [name for name, one in chosen.items() if one.compared and (one.headline or spec.statistics is not None)]
    gaps = with_adjusted_p(gaps, told)
    return AgreementResult(
        spec=spec,
        findings=make_findings(statistics, gaps, groupings, chosen, spec),
        left_out=tuple(_left_out(table, rated, groupings)),
        notes=(*table.source.notes, *agreement_notes(rated, statistics, gaps, chosen, groupings, spec)),
        backend=table.backend,
        statistics=tuple(statistics),
        gaps=tuple(gaps),
        counts=tuple(counts),
        scale=rated.scale,
        hash=rated.digest(),
    )


def _chosen(rated: Rated, spec: AgreementSpec) -> dict[str, Statistic]:
    """Return the statistics asked for, or all that the ratings allow."""
    allowed = statistics_for(rated.scale, rated.ratings.shape[1])
    for name in (*(spec.statistics or ()), *(threshold.metric for threshold in spec.thresholds)):
        if name not in allowed:
            raise ConfigError(
                f"the statistic {name!r} is not for {rated.scale} ratings of {count(rated.ratings.shape[1], 'rater')}; "
                f"{did_you_mean(name, allowed)}"
            )
    return {name: one for name, one in allowed.items() if spec.statistics is None or name in spec.statistics}


def _require_threshold_places(table: Table, spec: AgreementSpec) -> None:
    for threshold in spec.thresholds:
        name = threshold.grouping
        if not table.groupings:
            raise ConfigError(
                f"the threshold for {threshold.metric!r} ({threshold.in_words()}) limits nothing: the table names no "
                "groups."
            )
        if name is not None and name not in table.groupings:
            raise ConfigError(f"`grouping` {name!r} of a threshold is not known; {did_you_mean(name, table.groupings)}")


def _left_out(table: Table, rated: Rated, groupings: Sequence[Compared]) -> Iterator[dict[str, Any]]:
    gone = [("missing outcome or prediction: rows dropped", table.dropped), ("missing rating", rated.dropped)]
    for reason, n in gone:
        if n:
            yield {"model": None, "grouping": None, "group": None, "n": n, "reason": reason}
    for grouping in groupings:
        yield from grouping.left_out
