"""The ranking audit: compute a result from a table of scored candidates and settings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from evenhand.audits.ranking.estimate import gap_estimates, shortlist_records, value_estimates
from evenhand.audits.ranking.findings import make_claims, ranking_notes, with_worse_off
from evenhand.audits.ranking.messages import say
from evenhand.audits.ranking.metrics import METRICS
from evenhand.audits.ranking.ranks import RankedRows
from evenhand.audits.ranking.result import RankingGap, RankingResult, RankingValue, ShortlistRecord
from evenhand.audits.ranking.spec import RankingSpec
from evenhand.core.estimates import Estimate
from evenhand.core.groups import compared_groups
from evenhand.core.progress import step
from evenhand.core.records import OVERALL, LeftOut
from evenhand.core.result import Draft, finalize
from evenhand.core.spec import audit_function
from evenhand.core.thresholds import require_known
from evenhand.errors import ConfigError, DataError, require_name
from evenhand.messages.shared import say as shared
from evenhand.stats.types import FloatArray, IntArray
from evenhand.stats.within_units import UnitMeans
from evenhand.table.cells import Cells
from evenhand.table.engines import require_few_rows
from evenhand.table.table import Table


@audit_function(RankingSpec)
def ranking(table: Table, **settings: Any) -> RankingResult:
    """Compare how groups fare in ranked lists: shortlists of applicants, search results, recommendations.

    Groups are compared within each list, and lists are the units of intervals and tests. A single list has no
    repetitions: audit it with `eh.parity` and the prediction's `capacity`.

    Parameters
    ----------
    table
        The data with its groups and scores, one row for each candidate in a list; with an outcome, the audit also
        measures whether positive candidates are ranked above negative ones.
    {settings}

    Returns
    -------
    RankingResult
        Tables `values`, `gaps` and `shortlists`.

    Examples
    --------
    >>> import evenhand as eh
    >>> lists = {"job": [job for job in range(12) for _ in range(4)], "sex": ["men", "women"] * 24}
    >>> lists["score"] = [4.0, 3.0, 2.0, 1.0, 4.0, 1.0, 3.0, 2.0] * 6
    >>> ranker = eh.Prediction(column="score", kind="score", range=(0, 5))
    >>> table = eh.Table(lists, groups="sex", predictions={"ranker": ranker})
    >>> result = eh.ranking(table, query="job", size=2)
    >>> gap = result.get("gaps", metric="shortlist_rate", against="worst_pair")
    >>> gap.group, round(gap.value, 3), gap.lists
    ('men', 0.5, 12)
    """
    return finalize(run(table, RankingSpec.parse(settings, "the arguments of ranking()")))


def run(table: Table, spec: RankingSpec) -> Draft[RankingResult]:
    """Audit the lists of a table under the settings of a spec."""
    models = _ranking_models(table)
    require_known(spec.thresholds, models=models, groupings=table.groupings)
    values: list[Estimate[RankingValue]] = []
    gaps: list[Estimate[RankingGap]] = []
    shortlists: list[ShortlistRecord] = []
    left_out: dict[LeftOut, None] = {}
    lists: Lists | None = None
    for model in models:
        step(f"Ranking by {model}")
        lists = _read_lists(table, model, spec)
        groupings = compared_groups(table, lists.groups, spec.reference, spec.min_count, [lists.length, lists.score])
        left_out |= dict.fromkeys(left for grouping in groupings for left in grouping.left_out)
        for metric, (of_row, largest) in _metrics_of(lists, table, spec).items():
            everybody = UnitMeans.build(lists.query, np.zeros_like(lists.query), 1, of_row, largest)
            values += value_estimates(everybody, model, None, (OVERALL,), metric=metric, spec=spec)
            for grouping in groupings:
                means = UnitMeans.build(lists.query, grouping.code, len(grouping.groups), of_row, largest)
                values += value_estimates(means, model, grouping.name, grouping.groups, metric=metric, spec=spec)
                favourable = table.prediction(model).favourable
                found = gap_estimates(means, model, grouping, metric, spec)
                gaps += [gap.map(partial(with_worse_off, favourable=favourable)) for gap in found]
        for grouping in groupings:
            shortlists += shortlist_records(lists.ranked, grouping, model, spec)
    assert lists is not None  # noqa: S101
    dropped = [LeftOut(n=table.dropped, reason=shared("rows_dropped"))] if table.dropped else []
    result = RankingResult(
        spec=spec,
        findings=(),
        left_out=(*dropped, *left_out),
        notes=(*table.source.notes, *ranking_notes(lists.sizes, table, spec)),
        backend=table.backend,
        values=tuple(estimate.record for estimate in values),
        gaps=tuple(estimate.record for estimate in gaps),
        shortlists=tuple(shortlists),
    )
    return Draft(result=result, claims=list(make_claims(gaps, result.values, table.roles)), own=say)


@dataclass(frozen=True, eq=False)
class Lists:
    """The ranked candidates of one model, with their scores and groups in the same order."""

    ranked: RankedRows
    score: FloatArray
    groups: Cells

    @property
    def query(self) -> IntArray:
        """(rows,) The code of the list of each candidate."""
        return self.ranked.query

    @property
    def length(self) -> IntArray:
        """(rows,) The length of the list of each candidate."""
        return self.ranked.length

    @property
    def sizes(self) -> IntArray:
        """(lists,) The number of candidates in each list."""
        return np.bincount(self.ranked.query)


def _ranking_models(table: Table) -> list[str]:
    """Return the models with scores; refuse tables without groups, with weights, or without scores."""
    if not table.groupings:
        raise ConfigError("a ranking audit compares groups; name their columns as `groups`.")
    if table.roles.weight is not None:
        raise ConfigError(
            "a ranking audit gives every list the same weight; leave the survey weight {weight!r} out.",
            weight=table.roles.weight,
        )
    models = [model for model in table.models if table.has_scores(model)]
    if not models:
        raise ConfigError("a ranking audit needs a model's scores, the higher the nearer to the top; there are none.")
    return models


def _read_lists(table: Table, model: str, spec: RankingSpec) -> Lists:
    cells = table.counts(model, (spec.query,))
    require_few_rows(table.source.frame, table.rows)
    rows = table.score_rows(model, cells, (spec.query,))
    if rows.binned:
        raise DataError("{rows:,} rows are too many to rank exactly; audit fewer lists.", rows=table.rows)
    query = np.unique(rows.groups.joint([spec.query])[0], return_inverse=True)[1].astype(np.int64)
    if query.max(initial=0) == 0:
        raise DataError(
            "`query` {query!r} has one value; a single list has no repetitions: use eh.parity, with `capacity` for the "
            "places on the shortlist.",
            query=spec.query,
        )
    ranked = RankedRows.build(query, rows.score, rows.positive)
    return Lists(ranked, rows.score[ranked.order], rows.groups.where(ranked.order))


def _metrics_of(lists: Lists, table: Table, spec: RankingSpec) -> dict[str, tuple[FloatArray, float]]:
    """Return each row's value of each metric, and the largest possible difference between two rows."""
    ranked = lists.ranked
    exposure = ranked.exposure()
    found = {
        "shortlist_rate": (ranked.shortlisted(spec.size), 1.0),
        "exposure": (exposure, float(exposure.max() - exposure.min())),
    }
    if table.roles.outcome is not None:
        found["pairwise_accuracy"] = (ranked.pairwise_accuracy(), 1.0)
    found = {name: pair for name, pair in found.items() if not np.isnan(pair[0]).all()}
    for name in (*(spec.metrics or ()), *(threshold.metric for threshold in spec.thresholds)):
        require_name(name, list(found), "the metric {name!r} cannot be computed from these lists; {hint}")
    return {name: found[name] for name in METRICS if name in found and (spec.metrics is None or name in spec.metrics)}
