"""The reliability audit: models, a table and settings in, a result out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from evenhand.audits.reliability.curves import attribution_records, curve_records, model_record
from evenhand.audits.reliability.derived import make_derivation
from evenhand.audits.reliability.findings import make_findings
from evenhand.audits.reliability.gaps import adjusted, gap_records
from evenhand.audits.reliability.models import FOLDS, Model, needs_folds, prepare_model
from evenhand.audits.reliability.noise import make_mistakes, untouched_features
from evenhand.audits.reliability.notes import mistake_notes, model_notes, outcome_notes, setup_notes, trial_notes
from evenhand.audits.reliability.people import People, deal_folds, gather
from evenhand.audits.reliability.result import ReliabilityResult
from evenhand.audits.reliability.spec import HEADLINE, ReliabilitySpec
from evenhand.audits.reliability.trials import run_trial
from evenhand.core.compared import Compared, compared_groups
from evenhand.core.progress import step
from evenhand.core.spec import Threshold
from evenhand.errors import ConfigError, did_you_mean
from evenhand.table.table import Table


def reliability(
    model: Any,
    table: Table,
    *,
    features: Sequence[str] | str,
    noise: str | Sequence[str] | Mapping[str, Any],
    group_noise: Mapping[str, Mapping[str, Any]] | None = None,
    threshold: float = 0.5,
    noise_levels: Sequence[float] | None = None,
    replicates: int = 100,
    folds: int | None = None,
    shares: Literal["bernoulli", "exact"] | None = None,
    fresh: bool = False,
    noisy_raters: Literal[1, 2] = 1,
    fixed: Sequence[str] | str = (),
    minima: Mapping[str, float] | None = None,
    linked: Mapping[str, str | Sequence[str]] | None = None,
    derive: Callable[..., Any] | None = None,
    statistics: Sequence[str] | str = HEADLINE,
    reference: Mapping[str, str] | str | None = None,
    attribution: bool | float = True,
    missing: Literal["error", "drop", "keep"] | None = None,
    rows: Literal["auto", "array", "frame"] = "auto",
    trusted: Sequence[str] | str = (),
    allow_pickle: bool = False,
    memory: int = 64,
    min_count: int = 10,
    confidence: float = 0.95,
    resamples: int = 1_000,
    seed: int = 0,
    thresholds: Sequence[Threshold | Mapping[str, Any]] = (),
) -> ReliabilityResult:
    """Ask whom mistakes in the inputs of a model hurt more.

    A second rater is simulated who enters the same people's features with mistakes. The model scores both entries, and
    in each group the agreement of the two is measured, at rising shares of wrong entries.

    Parameters
    ----------
    model
        A fitted scikit-learn estimator or pipeline, any object with `predict_proba` or `predict`, a function of rows,
        the path of an ONNX or skops file, or an estimator to be fitted out of fold: an unfitted one, or a name such as
        'logistic'. Several models side by side as a mapping, each also with features or a threshold of its own:
        ``{"full": pipeline, "sparse": {"estimator": "logistic", "features": ["age", "priors"]}}``.
    table
        The data with its roles; it needs groups, and an outcome where models are fitted.
    features
        Columns that the models use, in the order of an array: numbers, true or false, or text.
    noise
        The mistakes. By feature: ``{"age": 5, "sex": "flip"}`` is an error with standard deviation 5 and another
        category; ``{"age": {"sd": 5, "minimum": 18}}``, ``{"stage": {"ordinal": ["I", "II", "III"]}}``,
        ``{"kind": {"values": [...], "chances": [[...]]}}``, ``{"bin": {"one_hot": ["bin_a", "bin_b"]}}``. Or published
        settings by name, 'raez-2024/all/5'. Or learned from a table in which two raters rated the same people:
        ``{"pilot": {"data": frame, "suffixes": ["_a", "_b"]}}``, with ``"by": "race"`` in each group. Units are those
        of the raw columns.
    group_noise
        For groups of one grouping, how their mistakes differ: ``{"race": {"Black": 1.5}}`` touches their entries 1.5
        times as often, ``{"race": {"Black": {"times": 1.5, "noise": {"age": 8}}}}`` also gives age another error.
    threshold
        A person is selected when the score is above it.
    noise_levels
        Rising shares of entries that go wrong; by default 0, 0.01 ... 0.30. With a pilot 1 is as often as there.
    replicates
        How often the mistakes are drawn.
    folds
        Fit estimators again in this many parts, each person scored by a model not fitted to them. By default estimators
        that are not fitted have 5 parts, and fitted ones are used as they are.
    shares
        'bernoulli': each entry goes wrong with that chance; 'exact': that share in each
        group and fold, to within one entry and right on average.
    fresh
        Whether the mistakes of every noise level are drawn afresh; by default an entry that is wrong at one level is
        wrong in the same way at all higher ones.
    noisy_raters
        2 when the first rater makes mistakes too.
    fixed
        Features that are not perturbed. Those that define groups never are.
    minima
        Least values of numbers, for published settings with minima and for a pilot; by default the least in the data.
    linked, derive
        Features made of others, which follow their sources. ``{"sex_race": ["sex", "race"]}`` is a product,
        ``{"age_group": "age"}`` a function of one feature as the data has it; `derive` is a function that takes the
        columns by name and returns the derived ones.
    statistics
        What is compared: kappa, pabak, icc_a1, icc_spread (the default), ac1, alpha, concordance.
    reference
        Reference group, or one for each grouping; by default the largest group.
    attribution
        Whether, or at which noise level, the gap is shared out among the features.
    missing
        People with a missing feature: 'error', 'drop', or 'keep', which gives them to the model as they are; by default
        as the table does.
    rows
        What models of your own get: 'array' (numbers), 'frame', or 'auto': a frame where the model was fitted to one or
        features hold text.
    trusted, allow_pickle
        Types that a skops file may hold beside those that skops trusts; whether pickle and joblib files are read, which
        can run any code.
    memory
        Megabytes for rows and draws at once.
    min_count
        Groups with fewer people are not compared.
    confidence, resamples, seed
        Confidence of the intervals, bootstrap resamples of people, and the seed of all random numbers.
    thresholds
        Limits of the gap averaged over noise levels, each a mapping such as ``{"metric": "pabak", "max": 0.05}``: of
        the two groups that are farthest apart or, with ``"against": "reference"``, of each group and the reference.

    Returns
    -------
    ReliabilityResult
        Tables `curves`, `gaps`, `attribution` and `models`.

    References
    ----------
    T. Räz (2024), Reliability gaps between groups in COMPAS dataset, FAccT '24.

    Examples
    --------
    >>> import evenhand as eh
    >>> people = eh.datasets.make_defendants(2_000, seed=1)
    >>> table = eh.Table(people, groups="sex", outcome="rearrested")
    >>> def risk(rows):
    ...     return 1 / (1 + 2.7183 ** (2 - 0.4 * rows[:, 1] + 0.03 * (rows[:, 0] - 30)))
    >>> result = eh.reliability(
    ...     risk, table, features=["age", "arrests_year4"], noise={"age": 2, "arrests_year4": 1}, replicates=10,
    ...     resamples=100, noise_levels=[0.1, 0.2],
    ... )
    >>> result.gap("pabak").group, result.gap("pabak").reference, result.gap("pabak").status
    ('Female', 'Male', 'ok')
    """
    return run(
        table,
        ReliabilitySpec.parse(
            {
                "model": model,
                "features": features,
                "noise": noise,
                "group_noise": group_noise or {},
                "threshold": threshold,
                "noise_levels": noise_levels,
                "replicates": replicates,
                "folds": folds,
                "shares": shares,
                "fresh": fresh,
                "noisy_raters": noisy_raters,
                "fixed": fixed,
                "minima": minima or {},
                "linked": linked or {},
                "derive": derive,
                "statistics": statistics,
                "reference": reference,
                "attribution": attribution,
                "missing": missing,
                "rows": rows,
                "trusted": trusted,
                "allow_pickle": allow_pickle,
                "memory": memory,
                "min_count": min_count,
                "confidence": confidence,
                "resamples": resamples,
                "seed": seed,
                "thresholds": thresholds,
            },
            "the arguments of reliability()",
        ),
    )


def run(table: Table, spec: ReliabilitySpec) -> ReliabilityResult:
    """Audit models on a table as a spec says."""
    _require_threshold_places(table, spec)
    step("Reading the features")
    people = gather(table, spec)
    groups = compared_groups(table, people.groups, spec.reference, spec.min_count)
    derivation = make_derivation(people, table.roles.group_columns, spec)
    untouched = untouched_features(people, table.roles.group_columns, derivation.following, spec)
    settings = [make_mistakes(setting, people, table.groupings, untouched, spec) for setting in spec.noise]
    notes = list(table.source.notes)
    for mistakes in settings:
        notes += mistake_notes(people, mistakes, derivation.following)
    notes += setup_notes(table, people, groups, untouched, spec)
    models = _models(table, people, spec)
    records: dict[str, list[Any]] = {"curves": [], "gaps": [], "attribution": []}
    for model in models:
        notes += model_notes(model, people)
        for mistakes in settings:
            for number, grouping in enumerate(group for group in groups if group.groups):
                trial = run_trial(model, mistakes, grouping, people, derivation, spec)
                records["curves"] += curve_records(trial, spec)
                records["gaps"] += gap_records(trial, spec)
                records["attribution"] += attribution_records(trial, spec)
                notes += trial_notes(trial) if number == 0 else ()
    records["gaps"] = adjusted(records["gaps"])
    notes += outcome_notes(records["curves"], records["gaps"], spec)
    return ReliabilityResult(
        spec=spec,
        findings=make_findings(records["gaps"], groups, spec),
        left_out=tuple(_left_out(table, people, groups)),
        notes=tuple(dict.fromkeys(notes)),
        backend=table.backend,
        curves=tuple(records["curves"]),
        gaps=tuple(records["gaps"]),
        attribution=tuple(records["attribution"]),
        models=tuple(model_record(model, people) for model in models),
        hash=people.digest(),
    )


def _models(table: Table, people: People, spec: ReliabilitySpec) -> list[Model]:
    fitting = any(needs_folds(source, spec) for source in spec.model.values())
    fold = deal_folds(people, spec.folds or FOLDS, spec.seed) if fitting else None
    positive = table.roles.positive
    return [prepare_model(name, source, people, spec, positive, fold) for name, source in spec.model.items()]


def _require_threshold_places(table: Table, spec: ReliabilitySpec) -> None:
    for threshold in spec.thresholds:
        name = threshold.grouping
        if name is not None and name not in table.groupings:
            raise ConfigError(f"`grouping` {name!r} of a threshold is not known; {did_you_mean(name, table.groupings)}")


def _left_out(table: Table, people: People, groups: Sequence[Compared]) -> Iterator[dict[str, Any]]:
    gone = [("missing outcome or prediction: rows dropped", table.dropped), ("missing feature", people.dropped)]
    for reason, n in gone:
        if n:
            yield {"model": None, "grouping": None, "group": None, "n": n, "reason": reason}
    for grouping in groups:
        yield from grouping.left_out
