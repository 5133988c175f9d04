"""The settings of the improvability audit: arguments of `eh.improvability` and its section of `audit.toml`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_serializer,
    field_validator,
    model_serializer,
    model_validator,
)

from evenhand.audits.improvability.candidates import Candidate, as_candidates, described
from evenhand.audits.improvability.metrics import ACCURACY, FAIRNESS, IMPROVEMENT, METRICS, utility_metric
from evenhand.core.metrics import Metric
from evenhand.core.spec import Names, Spec, is_from_json
from evenhand.core.thresholds import GroupingName
from evenhand.errors import ConfigError, SettingError, brief, count, did_you_mean, problem, require_name
from evenhand.messages import Message
from evenhand.settings import Settings, named_once
from evenhand.stats.improvability import (
    UTILITIES,
    AccuracyOf,
    Criteria,
    FairnessTest,
    Formula,
    Rule,
    Utility,
    formula_utility,
    get_utility,
)
from evenhand.stats.types import FloatArray
from evenhand.table.roles import Scalar

STATUS_QUO = "status_quo"
"""The name of the challenged decisions in records, in place of a candidate's name."""


class StatusQuo(Settings):
    """The challenged decisions."""

    column: str | None = Field(None, description="A column of decisions or scores, or a model of the table.")
    model: Any = Field(
        None, description="Instead of a column a fitted model with `predict`, or a function of the features."
    )
    kind: Literal["decision", "score"] | None = Field(
        None, description="By default two-valued columns are decisions, other numbers scores."
    )
    threshold: float | None = Field(None, description="Selected above it, where there is no capacity.")
    selected: Scalar | None = Field(None, description="The value of a decision column that means selected.")
    favourable: Literal["selected", "not_selected"] | None = Field(
        None,
        description="The decision that is good for the person, `selected` or `not_selected`; it names who is "
        "underserved. By default that of the table's model of the same name.",
    )

    @model_validator(mode="after")
    def _one_source(self, info: ValidationInfo) -> Self:
        if (self.column is None) == (self.model is None):
            raise SettingError("`status_quo` needs exactly one of `column` and `model`")
        usable = self.model is None or callable(self.model) or hasattr(self.model, "predict") or is_from_json(info)
        if not usable:
            raise SettingError(
                "`model` of `status_quo` must have `predict` or be a function; got {model}", model=brief(self.model)
            )
        return self

    @field_serializer("model")
    def _in_words(self, value: object) -> str | None:
        return None if value is None else described(value)


def _as_status_quo(value: object) -> object:
    if isinstance(value, str):
        return {"column": value}
    return value if value is None or isinstance(value, Mapping | StatusQuo) else {"model": value}


def _tuple(value: object) -> tuple[object, ...]:
    return (value,) if isinstance(value, str | Mapping) or not isinstance(value, Iterable) else tuple(value)


Design = Literal["one_pass", "splits"]
_OF_DESIGN: dict[str, tuple[str, ...]] = {"one_pass": ("start", "steps"), "splits": ("splits", "train", "combine")}


class Test(Settings):
    """Settings of the test: the hypotheses, and the method to test them.

    Examples
    --------
    >>> Test(margins=0.1, splits=3).margins
    (0.1,)
    """

    __test__: ClassVar[bool] = False  # not a test class for pytest, despite its name

    margins: Annotated[tuple[float, ...], BeforeValidator(_tuple)] = Field(
        (0.0,), min_length=1, description="Margins to decide at: by what share fairness, or accuracy, must improve."
    )
    alpha: float = Field(0.10, gt=0, lt=1, description="Level of the test.")
    design: Design = Field(
        "one_pass",
        description="Which rows test: in `one_pass` each row once (a column on all of them, a fitted candidate step by "
        "step, each made from the rows before it), or random `splits` as in the paper, which find less. It is `splits` "
        "where `splits`, `train` or `combine` is given.",
    )
    start: float = Field(0.2, gt=0, lt=1, description="Share of rows that only train, before the first step.")
    steps: int = Field(8, ge=1, le=100, description="Steps in which fitted candidates are made and tested.")
    splits: int = Field(5, ge=1, le=1_000, description="Random splits into training and test rows.")
    train: float = Field(2 / 3, gt=0, lt=1, description="Share of rows that train in a split.")
    accuracy_of: AccuracyOf = Field(
        "groups", description="Whether accuracy must rise for each of the `groups`, or for `everyone` taken together."
    )
    fairness: FairnessTest = Field(
        "signed",
        description="The test of fairness: `signed` is valid at all margins; `published`, the paper's, is not for "
        "margins above 0. It is shown for comparison, and findings and verdicts rest on the signed test.",
    )
    combine: Rule = Field(
        "exchangeable",
        description="How splits are combined: `exchangeable`, or `median` (the paper's: median p below alpha / 2), "
        "which has less power. What the paper's rule says is in the result either way. Of an even number of splits "
        "the median is the mean of the middle two, a little stricter than the paper's test.",
    )
    studentised: bool = Field(False, description="Whether errors are divided by their standard errors.")
    worst_pair: tuple[str, str] | None = Field(
        None,
        description="Two groups, the higher first, known beforehand to be furthest apart under the status quo; "
        "by default the training rows of a split decide, and in one pass both directions are tested.",
    )

    @model_validator(mode="before")
    @classmethod
    def _design_by_its_settings(cls, values: object) -> object:
        if not isinstance(values, Mapping):
            return values
        design = values.get("design") or (
            "splits" if any(name in values for name in _OF_DESIGN["splits"]) else "one_pass"
        )
        for other in _OF_DESIGN:
            for name in _OF_DESIGN[other] if other != design else ():
                if name in values and design in _OF_DESIGN:
                    raise SettingError(
                        "`{name}` is a setting of design = '{other}', and the design is '{design}'",
                        name=name,
                        other=other,
                        design=design,
                    )
        return {**values, "design": design}

    @model_serializer(mode="wrap")
    def _own_settings(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Serialise only the settings of the chosen design."""
        others = [name for design, names in _OF_DESIGN.items() if design != self.design for name in names]
        return {name: value for name, value in written(self).items() if name not in others}

    @field_validator("margins")
    @classmethod
    def _shares_in_order(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        for margin in value:
            if not 0 <= margin < 1:
                raise SettingError("each of `margins` must be at least 0 and below 1; got {margin:g}", margin=margin)
        return tuple(sorted(set(value)))

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.fairness == "published" and self.studentised:
            raise SettingError("the published fairness test has no studentised form; use fairness = 'signed'")
        if self.worst_pair is not None and self.worst_pair[0] == self.worst_pair[1]:
            raise SettingError("`worst_pair` must name two groups; got {group!r} twice", group=self.worst_pair[0])
        return self


class Plan(Settings):
    """The improvement assumed for power and sample size.

    Examples
    --------
    >>> Plan(power=0.9).reduction
    0.5
    """

    gain: float = Field(0.05, ge=0, description="The share by which accuracy is to improve.")
    reduction: float = Field(0.5, gt=0, le=1, description="The share by which the gap is to shrink.")
    power: float = Field(0.8, gt=0, lt=1, description="The power required.")


class ImprovabilitySpec(Spec):
    """The settings of the improvability audit.

    Examples
    --------
    >>> spec = ImprovabilitySpec(status_quo="risk", features=["age"], candidates="linear", capacity=0.03)
    >>> spec.status_quo.column, spec.candidates["linear"].rule, spec.fairness[0].name
    ('risk', 'estimator', 'classification')
    """

    audit: ClassVar[str] = "improvability"
    threshold_coordinates: ClassVar[tuple[str, ...]] = ("model", "grouping")
    takes_clusters: ClassVar[bool] = True
    column_settings: ClassVar[tuple[str, ...]] = ("features", "outcome", "status_quo")
    input_types: ClassVar[Mapping[str, str]] = {
        "status_quo": "ColumnArgument | Callable[..., object]",
        "utility": "str | Mapping[str, str] | Utility",
        "fairness_utility": "str | Mapping[str, str] | Utility | Sequence[str | Mapping[str, str] | Utility] | None",
        "candidates": "object",
        "grouping": "str | Sequence[str] | None",
    }
    code_or_name: ClassVar[tuple[str, ...]] = ("status_quo", "utility", "fairness_utility", "candidates")

    status_quo: Annotated[StatusQuo, BeforeValidator(_as_status_quo)] = Field(
        description="The decisions that are challenged: a column of decisions, a column of scores (with `capacity`, or "
        "as `{ column = 'risk', threshold = 0.5 }`), a model of the table, or in Python a fitted model with `predict`."
    )
    grouping: GroupingName | None = Field(
        None, description="The grouping to compare; not needed where the table has one."
    )
    features: Names = Field((), description="Columns that candidates may use: numbers, true or false, or text.")
    outcome: str | None = Field(
        None, description="Column of what really happened, any number; by default the table's outcome."
    )
    utility: Any = Field(
        "classification",
        validate_default=True,
        description="What a decision is worth to a group: `classification`, `calibration`, `mirrored_calibration`, "
        "`false_positive_rate`, `false_negative_rate`, `profit`, for predicted numbers `absolute_error`, "
        "`squared_error`, or in Python an "
        "`evenhand.stats.improvability.Utility` of your own. Formulas of `outcome`, `decision` and columns, in a file "
        "too: `{ name = 'net value', u = '(outcome >= decision) * (decision - cost)', w = '1', better = 'higher' }`.",
    )
    fairness_utility: Any = Field(
        None,
        description="The utility by which groups are compared, by default that of accuracy; several must all "
        "become fairer.",
    )
    candidates: Annotated[dict[str, Candidate], BeforeValidator(as_candidates)] = Field(
        {"linear": {}, "lasso": {}, "random_forest": {}},
        min_length=1,
        validate_default=True,
        description="Names, or a mapping of names to settings: estimators (`linear`, `lasso`, `random_forest` ...; in "
        "Python any scikit-learn estimator), `reductions` (fairlearn), `search` over a family, `sweep` and `milp` "
        "(linear classifiers), a column of decisions or scores, or a function of `TrainingRows`. Decisions, margins "
        "and power are adjusted for their number (Bonferroni).",
    )
    capacity: float | None = Field(
        None,
        description="The share of rows that is selected, between 0 and 1: scores are ranked to it on the test rows. "
        "Ties at the cut are drawn at random from the seed, and counted.",
    )
    use_group: bool = Field(False, description="Whether candidates may use the columns of the grouping.")
    test: Test = Field(
        Test(),
        description="What has to be shown, and how it is tested: `margins`, `alpha`, `design`, `start`, `steps`, "
        "`splits`, `train`, `combine`, `accuracy_of`, `fairness`, `studentised`, `worst_pair`.",
    )
    plan: Plan = Field(
        Plan(),
        description="The improvement that power and sample size are worked out for: `gain`, `reduction`, `power`.",
    )
    resamples: int = Field(10_000, ge=100, le=1_000_000, description="Bootstrap resamples of the test rows.")
    jobs: int | None = Field(
        None,
        exclude=True,
        ge=-1,
        le=1_000,
        description="Processes for splits and steps, -1 for one per core; by default joblib's own setting, so that its "
        "backends (Dask, Ray) can take them.",
    )

    @property
    def finding_alpha(self) -> float:
        """The significance level of findings without a threshold."""
        return self.test.alpha

    def known_metrics(self) -> Mapping[str, Metric]:
        """Return the metrics, including the user's own utilities."""
        return METRICS | {utility.name: utility_metric(utility) for utility in self.criteria.utilities}

    @field_validator("features")
    @classmethod
    def _named_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return named_once("features", value)

    @field_validator("jobs")
    @classmethod
    def _some_processes(cls, value: int | None) -> int | None:
        if value == 0:
            raise SettingError("it must be a number of processes, or -1 for one per core; got 0")
        return value if value is None else min(value, os.cpu_count() or 1)  # more would only take memory

    @field_validator("capacity")
    @classmethod
    def _some_but_not_all(cls, value: float | None) -> float | None:
        if value is not None and not 0 < value < 1:
            raise SettingError(
                "it must be a share above 0 and below 1, since with nobody or everybody selected there is "
                "nothing to compare; got {value:g}",
                value=value,
            )
        return value

    @field_validator("utility", "fairness_utility")
    @classmethod
    def _known_utilities(cls, value: object, info: ValidationInfo) -> Utility | tuple[Utility, ...] | None:
        if info.field_name == "utility":
            return _utility(value, info)
        return None if value is None else tuple(_utility(utility, info) for utility in _tuple(value)) or None

    @field_serializer("utility", "fairness_utility")
    def _utility_names(self, value: Utility | tuple[Utility, ...] | None) -> object:
        if value is None:
            return None
        return [_written(utility) for utility in value] if isinstance(value, tuple) else _written(value)

    @field_validator("candidates")
    @classmethod
    def _other_names(cls, value: dict[str, Candidate]) -> dict[str, Candidate]:
        if STATUS_QUO in value:
            raise SettingError(
                "a candidate is called {name!r}, our name for what it is compared with; rename it", name=STATUS_QUO
            )
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for wrong in chain(
            self._utility_problems(), self._prediction_problems(), self._feature_problems(), self._test_problems()
        ):
            raise SettingError(wrong)
        return self

    def _utility_problems(self) -> Iterator[Message]:
        names = Counter(utility.name for utility in dict.fromkeys((self.utility, *self.fairness)))
        for name in (name for name, utilities in names.items() if utilities > 1):
            yield problem("two different utilities are called {name!r}; give each a name of its own", name=name)

    def _prediction_problems(self) -> Iterator[Message]:
        predicted = {utility.of_predictions: utility.name for utility in self.criteria.utilities}
        if len(predicted) > 1:
            yield problem(
                "the utility {numbers!r} is of predicted numbers and {decisions!r} of decisions; audit them one by one",
                numbers=predicted[True],
                decisions=predicted[False],
            )
        elif True in predicted and self.capacity is not None:
            yield problem(
                "`capacity` selects people, and the utility {name!r} is of predicted numbers; leave one of them out",
                name=predicted[True],
            )
        elif True in predicted:
            for name, candidate in self.candidates.items():
                if candidate.linear_search or candidate.rule == "reductions":
                    yield problem(
                        "the candidate {name!r} decides yes or no, and the utility {utility!r} is of predicted "
                        "numbers; use an estimator or a column",
                        name=name,
                        utility=predicted[True],
                    )

    def _feature_problems(self) -> Iterator[Message]:
        if not self.features:
            for name in self._refitted:
                yield problem("`features` is empty, and the candidate {name!r} has to be fitted to some", name=name)
            if self.status_quo.model is not None:
                yield problem("`features` is empty, and the status quo is a model that needs some")
        for name, candidate in self.candidates.items():
            for member in (candidate, *candidate.family):
                for feature in (*member.monotone, *member.excluded):
                    if feature not in self.features:
                        hint = did_you_mean(feature, self.features)
                        yield problem(
                            "candidate {name!r} names {feature!r}, which is no feature; {hint}",
                            name=name,
                            feature=feature,
                            hint=hint,
                        )

    def _test_problems(self) -> Iterator[Message]:
        either = self.test.design == "one_pass" and self.test.worst_pair is None  # at most doubled, for two directions
        most = (2 if either else 1) * self.counts
        if most >= self.test.alpha * (self.resamples + 1):
            splits = f"{count(self.test.splits, 'split')} and " if self.test.design == "splits" else ""
            yield problem(
                "`resamples` is {resamples:,}, so no p-value can be below {smallest:.2g}; with {splits}{candidates} "
                "one below {needed:.2g} is needed. Set it to {least:,} or more",
                resamples=self.resamples,
                smallest=1 / (self.resamples + 1),
                splits=splits,
                candidates=count(len(self.candidates), "candidate"),
                needed=self.test.alpha / most,
                least=int(most / self.test.alpha),
            )

    @property
    def _refitted(self) -> list[str]:
        """The names of the candidates that are refitted in every split."""
        return [name for name, candidate in self.candidates.items() if candidate.refits]

    @property
    def fairness(self) -> tuple[Utility, ...]:
        """The utilities by which fairness is measured."""
        return self.fairness_utility or (self.utility,)

    @property
    def criteria(self) -> Criteria:
        """The criteria of improvement: utilities of accuracy and fairness."""
        return Criteria(self.utility, self.fairness, self.test.accuracy_of)

    @property
    def predicts(self) -> bool:
        """Whether decisions are predictions of a numeric outcome."""
        return bool(self.utility.of_predictions)

    @property
    def counts(self) -> int:
        """The factor of the p-value's adjustment: the number of candidates, doubled if splits are combined."""
        return (2 if self.test.design == "splits" and self.test.splits > 1 else 1) * len(self.candidates)


_FORMULA = ("name", "u", "w", "better")


def _written(utility: Utility) -> object:
    """Return a utility for serialisation: its name, or its formulas."""
    if not isinstance(utility.u, Formula) or not isinstance(utility.w, Formula):
        return utility.name
    return dict(zip(_FORMULA, (utility.name, utility.u.text, utility.w.text, utility.better), strict=True))


def _formula(value: Mapping[str, Any]) -> Utility:
    for name in value:
        require_name(name, _FORMULA, "there is no setting `{name}` of a utility; {hint}", SettingError)
    for name in ("name", "u"):
        if not isinstance(value.get(name), str):
            raise SettingError("a utility in formulas needs its `{name}`, as text", name=name)
    if value.get("better", "higher") not in ("higher", "lower"):
        raise SettingError("`better` of a utility must be 'higher' or 'lower'; got {value!r}", value=value["better"])
    return formula_utility(value["name"], value["u"], str(value.get("w", "1")), value.get("better", "higher"))


def _utility(value: object, info: ValidationInfo) -> Utility:
    try:
        value = _formula(value) if isinstance(value, Mapping) else value
    except ConfigError as error:
        raise SettingError(error.message) from None
    if not isinstance(value, str | Utility):
        raise SettingError(
            "a utility must be a name or an evenhand.stats.improvability.Utility; got {value}", value=brief(value)
        )
    if isinstance(value, str) and value not in UTILITIES and is_from_json(info):
        return Utility(name=value, u=_not_recorded, w=_not_recorded)
    if isinstance(value, Utility) and value.name in (FAIRNESS, ACCURACY, IMPROVEMENT):
        raise SettingError("a utility is called {name!r}, the name of something else; rename it", name=value.name)
    try:
        return get_utility(value)
    except ConfigError as error:
        raise SettingError(error.message) from None


def _not_recorded(_: FloatArray, __: FloatArray) -> FloatArray:
    """Raise an error in place of a utility's function, because a record contains only its name."""
    raise ConfigError("a result that was read back holds no code; run the audit again.")
