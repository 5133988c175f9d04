"""The report section on effort: figures, tables, the paper's own tables, and methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from evenhand.audits.effort import charts
from evenhand.audits.effort.imputation import is_uncertain
from evenhand.audits.effort.metrics import METRICS, MULTIVERSE, PAPER
from evenhand.audits.effort.specification_chart import MOST_DRAWN, leading_model, specification_panel
from evenhand.core.display import (
    DESCRIBES,
    Cell,
    DisplayTable,
    Figure,
    Method,
    Number,
    Range,
    figure_sentence,
    gap_table,
    make_table,
    remark,
    value_table,
)
from evenhand.messages import Message
from evenhand.messages.formats import show, show_confidence
from evenhand.stats.pairs import EXACT_ROWS

if TYPE_CHECKING:
    from evenhand.audits.effort.result import EffortGap, EffortResult, EffortValue, PairRecord
    from evenhand.audits.effort.spec import DistanceSettings

Columns = dict[str, Callable[[Any], Cell]]

_HUMAN_WEIGHTS = (0.6577, 0.6037)  # of effort, from the paper's study on income and on arrests
_RANKED_BY = {"eaif": "individual fairness", "eagf": "lowest parity"}
_RANKED: Columns = {"Metric": lambda r: _RANKED_BY[r.metric], "Grouping": lambda r: r.grouping}


def parts(result: EffortResult) -> Iterator[Figure | DisplayTable]:
    """Yield the figures and tables of the section."""
    yield from _individual_parts(result)
    if any(record.value is not None for record in result.direction):
        yield from _direction_parts(result)
    if result.groupings:
        yield from _group_parts(result)
    if result.shows_individuals:
        yield from _people_parts(result)
    if result.spec.robustness is not None:
        yield from _robustness_parts(result)


def _individual_parts(result: EffortResult) -> Iterator[Figure | DisplayTable]:
    confidence = result.spec.confidence
    yield Figure(
        "Individual fairness",
        "1: people with like effort and aggregate get like scores. "
        "The line follows the weight of effort from 0 to 1; bars are the "
        f"{show_confidence(confidence)} intervals at the weights of this audit.{_limit_words(result, 'eaif')} "
        "Scores that differ less between people get more: models are compared only at equal spread, in the table.",
        _headlines(result, "eaif"),
        (charts.weight_panel(result),),
        _shows(result, "eaif"),
    )
    yield individual_table(result)
    extra: Columns = {
        "Weight": lambda r: f"{r.weight:g}",
        "Pairs": lambda r: Number(r.pairs, "count"),
        "A constant score": lambda _: "1",
        "Mean difference of scores": lambda r: Number(r.spread),
        "At the smallest of all models": lambda r: Number(r.at_least_spread),
        "Pairs violated": lambda r: Number(r.violated, "percent"),
        "Std. error": lambda r: Number(r.stderr),
        "From rates of inertia": lambda r: Number(r.rates_share, "percent"),
        "Method": lambda r: r.method,
    }
    values = result.rows("values", metric="eaif")
    yield value_table(values, METRICS, "Individual fairness of every model", confidence, extra=extra)
    if gaps := result.rows("gaps", against="model"):
        names = ("Weight", "Mean difference of scores")
        caption = "Individual fairness of every two models, at the smaller spread of their scores"
        yield gap_table(gaps, METRICS, caption, confidence, extra={name: extra[name] for name in names})


def _direction_parts(result: EffortResult) -> Iterator[Figure | DisplayTable]:
    yield Figure(
        "Is effort rewarded or punished?",
        "Of all pairs in which one person came further than the other, the share in which that person is scored worse. "
        "Hollow points: what a random score would give. Between groups, the one named first came further; of many "
        f"pairs of groups the {charts.MOST_PAIRS} with the largest shares are drawn. Bars are "
        f"{show_confidence(result.spec.confidence)} intervals.",
        _headlines(result, "reversed_pairs"),
        tuple(charts.direction_panels(result)),
        _shows(result, "reversed_pairs"),
    )
    columns: Columns = {
        "Model": lambda r: r.model,
        "Grouping": lambda r: r.grouping,
        "Who came further": lambda r: r.group if r.grouping else "everybody",
        "Than": lambda r: r.reference if r.grouping else "anybody",
        "Comparable pairs": lambda r: Number(r.pairs, "count"),
        "Reversed": lambda r: Number(r.value, "percent"),
        f"{show_confidence(result.spec.confidence)} interval": lambda r: Range(r.low, r.high, "percent"),
        "Concordant": lambda r: Number(r.concordant, "percent"),
        "Tied": lambda r: Number(r.tied, "percent"),
        "A random score": lambda r: Number(r.random, "percent"),
        "Shortfall": lambda r: Number(r.shortfall),
        "p": lambda r: Number(r.p_value, "p"),
        "Remark": lambda r: remark(r.status),
    }
    yield make_table("Reversed pairs", columns, result.direction)
    if gaps := result.rows("gaps", metric="reversed_pairs"):
        yield gap_table(gaps, METRICS, "Reversed pairs: the two groups that differ most", result.spec.confidence)


def _group_parts(result: EffortResult) -> Iterator[Figure | DisplayTable]:
    spec = result.spec
    yield Figure(
        "Parity among people of similar effort",
        f"Smallest group {'mean score' if spec.parity_of == 'scores' else 'share selected'} over the largest in each "
        "bin of effort; bands are intervals that hold "
        f"for all pairs of groups of one bin, of at least {spec.min_count} people each. A line breaks "
        f"where a bin has no two such groups.{_limit_words(result, 'eagf')}",
        _headlines(result, "equal_effort"),
        tuple(charts.parity_panel(result, grouping) for grouping in result.groupings),
        _shows(result, "equal_effort"),
    )
    equal = result.rows("gaps", metric="equal_effort")
    yield gap_table(equal, METRICS, "Parity at equal effort, over all bins", spec.confidence)
    yield parity_table(result)
    gaps = result.rows("gaps", metric="eagf")
    extra: Columns = {
        "Effort": _bin,
        "Groups": lambda r: Number(r.groups, "count"),
        "From rates of inertia": lambda r: Number(r.rates_share, "percent"),
    }
    yield gap_table(gaps, METRICS, "Parity of every effort bin", spec.confidence, extra=extra)
    values = result.rows("values", metric="mean_score")
    yield value_table(values, METRICS, "Mean score of every group by effort", spec.confidence, extra={"Effort": _bin})
    yield Figure(
        "How effort is spread",
        "The distribution of effort within the largest groups.",
        "Effort follows from trajectory and inertia as set out below.",
        tuple(charts.spread_panel(result, grouping) for grouping in result.groupings),
        DESCRIBES,
    )


def _bin(record: EffortValue | EffortGap) -> str:
    return "all (traditional)" if record.bin_low is None else f"{record.bin_low:g} to {record.bin_high:g}"


def _shows(result: EffortResult, metric: str) -> Message:
    return figure_sentence(result.findings, (metric,), result.spec.finding_alpha)


def _limit_words(result: EffortResult, metric: str) -> str:
    limits = any(finding.metric == metric and finding.limit is not None for finding in result.findings)
    return " The level solid line is the limit." if limits else ""


def _headlines(result: EffortResult, metric: str) -> str:
    return " ".join(str(finding.headline) for finding in result.findings if finding.metric == metric)


def _people_parts(result: EffortResult) -> Iterator[Figure | DisplayTable]:
    """Yield the least fair pairs and their people, by id."""
    if result.pairs:
        yield Figure(
            "The least fair pairs",
            "Two people whose scores differ by more than their effort and aggregate do, at effort weight "
            f"{result.spec.weights[0]:g}. The full list is below.",
            " ".join(_pair_sentence(pair) for pair in result.pairs[:3]),
            tuple(charts.pair_panels(result)),
            DESCRIBES,
        )
    if result.people:
        first: Columns = {"Model": lambda r: r.model, "Weight": lambda r: f"{r.weight:g}"}
        people: Columns = {
            "Person": lambda r: r.id,
            "Score": lambda r: Number(r.score),
            "Effort": lambda r: Number(r.effort),
            "Aggregate": lambda r: Number(r.aggregate),
            "Mean fairness of their pairs": lambda r: Number(r.value),
        }
        caption = "The people whose pairs are least fair, to their loss or their gain"
        yield make_table(caption, {**first, **people}, result.people)
        pairs: Columns = {
            "Person": lambda r: r.id_a,
            "Other": lambda r: r.id_b,
            "Score": lambda r: Number(r.score_a),
            "Other's score": lambda r: Number(r.score_b),
            "Distance": lambda r: Number(r.distance),
            "Excess": lambda r: Number(r.value),
        }
        yield make_table("The least fair pairs", {**first, **pairs}, result.pairs)
    if result.reversals:
        yield _reversal_table(result)


def _reversal_table(result: EffortResult) -> DisplayTable:
    columns: Columns = {
        "Model": lambda r: r.model,
        "Came further": lambda r: r.id_ahead,
        "Other": lambda r: r.id_behind,
        "From, to": lambda r: f"{r.start_ahead:,.6g} to {r.end_ahead:,.6g}",
        "Other's": lambda r: f"{r.start_behind:,.6g} to {r.end_behind:,.6g}",
        "Effort": lambda r: Number(r.effort_ahead),
        "Other's effort": lambda r: Number(r.effort_behind),
        "Score": lambda r: Number(r.score_ahead),
        "Other's score": lambda r: Number(r.score_behind),
        "Shortfall": lambda r: Number(r.value),
    }
    return make_table("The worst reversed pairs", columns, result.reversals)


def _pair_sentence(pair: PairRecord) -> str:
    return (
        f"{pair.model}: {pair.id_a} has the score {show(pair.score_a)} and {pair.id_b} {show(pair.score_b)}, "
        f"{show(pair.value)} more than their distance of {show(pair.distance)}."
    )


# The paper's tables: 1 and 7 (individuals), 6 and 8 (groups) ---------------------------------------------------------


def individual_table(result: EffortResult, data: str = "") -> DisplayTable:
    """Return individual fairness by model and weight, as in tables 1 and 7 of the paper.

    Parameters
    ----------
    result : the result of an effort audit.
    data : the name of the data in the caption.

    Examples
    --------
    >>> import evenhand as eh
    >>> table = eh.Table(eh.datasets.make_households(200, seed=1), predictions={"logistic": "risk_logistic"})
    >>> years = [f"income_{year}" for year in range(2019, 2023)]
    >>> result = eh.effort(table, trajectory=years, unit=10_000, scale=200_000, weights=[0.5, 0.6577])
    >>> individual_table(result).columns
    ('Model', 'Equal weights', 'Human study weights (0.6577 on effort)')
    """
    values = {(r.model, _weight_title(r.weight)): r.value for r in result.rows("values", metric="eaif")}
    return _by_model("Effort-aware individual fairness", data, values)


def parity_table(result: EffortResult, data: str = "") -> DisplayTable:
    """Return traditional parity by model and grouping, as in tables 6 and 8 of the paper, regardless of effort.

    Parity is the smallest mean score over the largest, among groups with at least `min_count` people. A dash stands
    for fewer than two such groups.
    """
    records = result.rows("gaps", metric="eagf", bin_low=None)
    values = {(r.model, f"{r.grouping[:1].upper()}{r.grouping[1:]} parity"): r.value for r in records}
    return _by_model("Traditional parity of mean scores, without regard to effort", data, values)


def _by_model(caption: str, data: str, values: dict[tuple[str, str], float | None]) -> DisplayTable:
    models, titles = (list(dict.fromkeys(key[i] for key in values)) for i in (0, 1))
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (model, *(Number(values[model, title]) for title in titles)) for model in models
    )
    return DisplayTable(f"{caption}: {data}" if data else caption, ("Model", *titles), rows)


def _weight_title(weight: float) -> str:
    if weight == 0.5:
        return "Equal weights"
    return f"Human study weights ({weight:g} on effort)" if weight in _HUMAN_WEIGHTS else f"Weight {weight:g} on effort"


# Other choices -------------------------------------------------------------------------------------------------------


def _robustness_parts(result: EffortResult) -> Iterator[Figure | DisplayTable]:
    """Yield the specification curves, the fairest models, the choices that change them, and the declared options."""
    several = len({record.model for record in result.fairest}) > 1
    curves = charts.curves_of(result)
    caption = [
        "Each column is one specification. Points are the models' values; the marks beneath show which option of each "
        "choice it takes."
    ]
    if several:
        leaders = dict.fromkeys(curve.models[leading_model(curve)] for curve in curves)
        caption.append(
            "Marks have the colour of the fairest model, grey where there is no single one. Columns are sorted by the "
            f"values of the model that is the fairest most often ({', '.join(leaders)})."
        )
    caption.append("The dashed line is the audit's own specification.")
    if max(curve.size for curve in curves) > MOST_DRAWN:
        caption.append(
            f"Where there are more than {MOST_DRAWN} specifications, {MOST_DRAWN} are drawn, evenly spread over that "
            "order; all of them count."
        )
    headlines = " ".join(_headlines(result, metric) for metric in ("fairest_share", "specification_range")).strip()
    yield Figure(
        "Under other choices",
        " ".join(caption),
        headlines,
        tuple(specification_panel(curve) for curve in curves),
        next((finding.headline for finding in result.findings if finding.metric == "fairest_share"), DESCRIBES),
    )
    yield _fairest_table(result, several)
    if several:
        yield _flip_table(result)
    yield _choice_table(result)


def _fairest_table(result: EffortResult, several: bool) -> DisplayTable:
    ranking: Columns = {
        "Ranked": lambda r: Number(r.ranked, "count"),
        "Fairest in": lambda r: f"{r.wins or 0:,.6g}",
        "Of these tied": lambda r: Number(r.tied or 0, "count"),
        "Share": lambda r: Number(r.share, "percent"),
        "Fairest in the audit's own": lambda r: None if r.own_fairest is None else "yes" if r.own_fairest else "no",
    }
    columns: Columns = {
        **_RANKED,
        "Model": lambda r: r.model,
        "Specifications": lambda r: Number(r.specifications, "count"),
        **(ranking if several else {}),
        "Values": lambda r: Range(r.low, r.high),
        "The audit's own": lambda r: Number(r.own_value),
        "Undefined": lambda r: Number(r.undefined, "count"),
    }
    caption = "How often each model is the fairest" if several else "The range of values over all specifications"
    return make_table(caption, columns, result.fairest, folded=False)


def _flip_table(result: EffortResult) -> DisplayTable:
    titles = {choice.name: choice.title for curve in charts.curves_of(result) for choice in curve.choices}
    columns: Columns = {
        **_RANKED,
        "Choice": lambda r: titles[r.choice],
        "Comparisons": lambda r: Number(r.comparisons, "count"),
        "Changed": lambda r: Number(r.changed, "count"),
        "Share": lambda r: Number(r.share, "percent"),
        "The audit's own": lambda r: r.own_option,
        "Options that change it": lambda r: r.own_flips,
        "Remark": lambda r: remark(r.status),
    }
    varied = [record for record in result.flips if record.options > 1]
    return make_table("Which choice changes the fairest model", columns, varied, folded=False)


def _choice_table(result: EffortResult) -> DisplayTable:
    choices = {choice.name: choice for curve in charts.curves_of(result) for choice in curve.choices}
    columns: Columns = {
        "Choice": lambda choice: choice.title,
        "Options": lambda choice: "; ".join(choice.labels),
        "The audit's own": lambda choice: choice.labels[choice.chosen],
    }
    return make_table("The choices that were declared", columns, list(choices.values()))


# Methods -------------------------------------------------------------------------------------------------------------


def methods(result: EffortResult) -> Iterator[Method]:
    """Yield the methods behind the section's numbers."""
    spec = result.spec
    effort = "m sigmoid(A)" if spec.desirable else "m (1 - sigmoid(A))"
    feature = f"{spec.history.value} over {spec.history.time}" if spec.history else ", ".join(spec.trajectory)
    yield Method(
        "Effort",
        f"E = {effort}, with m the inertia and A the {spec.measure.replace('_', ' ')} of {feature} in units of "
        f"{spec.unit:g}.",
        PAPER,
    )
    yield Method("Aggregate", f"S = 2 sigmoid(sum of the values / {spec.scale:g}) - 1.", PAPER)
    yield Method(
        "Individual fairness (eaif)",
        f"{_sentence(METRICS['eaif'].formula)} The interval treats it as a U-statistic: Student's t on the scale "
        "log(1 - value).",
        f"{METRICS['eaif'].reference}; Arvesen 1969, Annals of Mathematical Statistics 40",
    )
    if is_uncertain(spec):
        yield Method(
            "Uncertain rates of inertia",
            "Each rate is drawn again, log-normal with its standard error; effort, individual fairness and parity by "
            "effort are computed under each set of rates, and pooled: the variance within the sets plus (1 + 1/M) "
            "times that between them. The share from the rates is the second part.",
            "Rubin 1987, Multiple Imputation for Nonresponse in Surveys; Barnard and Rubin 1999, Biometrika 86",
        )
    if spec.distance.norm != "euclidean" or spec.distance != type(spec.distance)():
        yield Method("Distance", _distance_in_words(spec.distance))
    if result.direction:
        yield Method(
            "Reversed pairs",
            f"{_sentence(METRICS['reversed_pairs'].formula)} A random score gives (1 - t) / 2, with t the share of all "
            "pairs with equal scores. Exact over all pairs; the interval is Student's t on the logit scale with the "
            "jackknife's error, which leaves out one person at a time. With no reversal seen there is an upper limit "
            "only, from pairs that share nobody. The p-value is that of as many reversed as concordant pairs.",
            METRICS["reversed_pairs"].reference,
        )
    yield Method(
        "Parity at equal effort (equal_effort)",
        f"{_sentence(METRICS['equal_effort'].formula)} p-value and interval are those of a studentised permutation of "
        "people within the bins, which depends on no seed; for several groups p and the limit near to 1 hold for all "
        "pairs (Bonferroni).",
        f"{METRICS['equal_effort'].reference}; Janssen 1997, Statistics & Probability Letters 36; Chung and Romano "
        "2013, Annals of Statistics 41",
    )
    yield Method(
        "Parity by effort (eagf)",
        f"{_sentence(METRICS['eagf'].formula)} Bins have a width of {spec.width:g}, groups at least {spec.min_count} "
        "people. The interval comes from simultaneous intervals of all pairs of groups from their own limits (MOVER); "
        "a verdict holds for all bins compared together.",
        METRICS["eagf"].reference,
    )
    yield Method(
        "Differences between models",
        "The same people under both models, at equal spread: the scores with the larger mean difference between two "
        "people are shrunk towards their mean until it is that of the other model, since closer scores alone would be "
        "fairer. Student's t on the row means, which allow for the estimated factor. The scores are fixed: another fit "
        "of the same model could turn the order round.",
    )
    if spec.robustness is not None:
        yield from _robustness_methods(result)


def _distance_in_words(distance: DistanceSettings) -> str:
    e, s = (
        name if scale == 1 else f"{name} / {scale:g}"
        for name, scale in (("|E - E'|", distance.effort_scale), ("|S - S'|", distance.aggregate_scale))
    )
    formula = {
        "euclidean": "sqrt(w e^2 + (1 - w) s^2)",
        "manhattan": "w e + (1 - w) s",
        "maximum": "the larger of e and s (at w = 0 or 1 the one that counts)",
        "learned": "sqrt(a e^2 + 2 b e s + c s^2), learned from judged pairs (Mukherjee et al. 2020)",
        "own": "a function of the auditor's own",
    }[distance.norm]
    return (
        f"In the place of the paper's d: {formula}, with e = {e} and s = {s}. Scores may differ by "
        f"{distance.lipschitz:g} for each unit of it."
    )


def _sentence(formula: str) -> str:
    return f"{formula[:1].upper()}{formula[1:]}."


def _robustness_methods(result: EffortResult) -> Iterator[Method]:
    worst = max(record.error or 0.0 for record in result.specifications)
    pairs = (
        f"There are more than {EXACT_ROWS:,} different people, so individual fairness comes from a grid here, "
        f"corrected on random pairs; it is right to {worst:.1g}, and models closer than that count as tied."
        if worst > 0
        else "All pairs are compared exactly."
    )
    yield Method(
        "Robustness",
        "Whoever picks the window picks the effort, and so can make an unfair model look fair (fairwashing). The "
        "answer is to declare every defensible choice and to compute all combinations, each a specification: it "
        "can then be seen whether a result holds under most of them or hangs on one. The people are the same in "
        "all, those with a value at every time step. Every combination counts once, also where a choice cannot "
        f"matter: at weight 0 effort plays no part, at weight 1 the scale does not. {pairs}",
        MULTIVERSE,
    )
    yield Method(
        "Fairest model",
        "The one with the highest individual fairness, or with the highest parity in its least equal effort bin. "
        "Tied models share the specification evenly. Where a model has no value the specification is not ranked, "
        "and is counted apart. The lowest of many small bins is low by chance too: values over different widths "
        "and smallest groups are not alike, their order of models is.",
    )
    yield Method(
        "What changes it",
        "All pairs of specifications that differ in one choice alone: the share in which no model is the fairest in "
        "both.",
    )
