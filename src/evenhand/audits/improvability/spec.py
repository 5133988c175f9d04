"""What the improvability audit can be told: arguments of `eh.improvability`, the `[improvability]` of `audit.toml`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, field_serializer, field_validator, model_validator

from evenhand.audits.improvability.candidates import Candidate, as_candidates, described
from evenhand.core.spec import Spec, Threshold, _as_grouping_name, require_known_metrics
from evenhand.errors import ConfigError, count, did_you_mean
from evenhand.settings import Settings, named_once
from evenhand.stats.improvability import AccuracyOf, Criteria, FairnessTest, Rule, Utility, get_utility
from evenhand.table.roles import Scalar

METRICS = ("improvable_fairness", "improvable_accuracy")
"""What a threshold can limit: by what share fairness, or accuracy of all groups, is shown to be improvable."""


class StatusQuo(Settings):
    """The decisions that are challenged.

    Parameters
    ----------
    column : a column of decisions or scores, or a model of the table.
    model : instead of a column a fitted model, whose scores are worked out from the features.
    kind : 'decision' or 'score'; by default two-valued columns are decisions, other numbers scores.
    threshold : selected above it, where no capacity ranks the scores.
    selected : the value of a decision column that means "selected".
    """

    column: str | None = Field(None, description="A column of decisions or scores, or a model of the table.")
    model: Any = Field(None, description="Instead of a column a fitted model with `predict`, or a function.")
    kind: Literal["decision", "score"] | None = Field(None, description="By default what the values look like.")
    threshold: float | None = Field(None, description="Selected above it, where there is no capacity.")
    selected: Scalar | None = Field(None, description="The value of a decision column that means selected.")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.column is None) == (self.model is None):
            raise ValueError("`status_quo` needs exactly one of `column` and `model`")
        if self.model is not None and not (callable(self.model) or hasattr(self.model, "predict")):
            raise ValueError(f"`model` of `status_quo` must have `predict` or be a function; got {self.model!r}")
        return self

    @field_serializer("model")
    def _in_words(self, value: Any) -> str | None:
        return None if value is None else described(value)


def _as_status_quo(value: Any) -> Any:
    if isinstance(value, str):
        return {"column": value}
    return value if value is None or isinstance(value, Mapping | StatusQuo) else {"model": value}


def _tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)


Names = Annotated[tuple[str, ...], BeforeValidator(_tuple)]


class ImprovabilitySpec(Spec):
    """The settings of the improvability audit.

    Examples
    --------
    >>> spec = ImprovabilitySpec(status_quo="risk", features=["age"], candidates="linear", capacity=0.03)
    >>> spec.status_quo.column, spec.candidates["linear"].rule, spec.fairness[0].name
    ('risk', 'estimator', 'classification')
    """

    code_or_name: ClassVar[tuple[str, ...]] = ("status_quo", "utility", "fairness_utility", "candidates")

    status_quo: Annotated[StatusQuo, BeforeValidator(_as_status_quo)] = Field(
        description="The decisions that are challenged: a column, a model of the table, or a table of settings."
    )
    grouping: Annotated[str | None, BeforeValidator(_as_grouping_name)] = Field(
        None, description="The grouping to compare; not needed where the table has one."
    )
    features: Names = Field((), description="Columns that candidates may use: numbers, true or false, or text.")
    outcome: str | None = Field(
        None, description="Column of what really happened, any number; by default the table's outcome, as 0 or 1."
    )
    utility: Any = Field(
        "classification",
        validate_default=True,
        description="What a decision is worth: a name, or in Python a Utility of your own.",
    )
    fairness_utility: Any = Field(
        None, description="The utility, or utilities, by which groups are compared; by default that of accuracy."
    )
    accuracy_of: AccuracyOf = Field("groups", description="Whether each group or everyone together must gain.")
    candidates: Annotated[dict[str, Candidate], BeforeValidator(as_candidates)] = Field(
        {"linear": {}, "lasso": {}, "random_forest": {}},
        min_length=1,
        validate_default=True,
        description="Candidates by name: estimators, searches, columns, or tables of settings.",
    )
    capacity: float | None = Field(
        None, description="The share that is selected, between 0 and 1; scores are ranked to it."
    )
    splits: int = Field(5, ge=1, le=1_000, description="Random splits into training and test rows.")
    train: float = Field(2 / 3, ge=0, lt=1, description="Share of rows that train; 0 needs given candidates.")
    alpha: float = Field(0.10, gt=0, lt=1, description="Level of the test.")
    delta: Annotated[tuple[float, ...], BeforeValidator(_tuple)] = Field(
        (0.0,), min_length=1, description="Margins to decide at: by what share things must improve."
    )
    fairness_test: FairnessTest = Field("signed", description="The test of fairness; `published` is the paper's.")
    combine: Rule = Field("median", description="How splits are combined; `exchangeable` has more power.")
    studentised: bool = Field(False, description="Whether errors are divided by their standard errors.")
    worst_pair: tuple[str, str] | None = Field(
        None,
        description="Two groups, the higher first, known beforehand to be furthest apart; else training rows tell.",
    )
    use_group: bool = Field(False, description="Whether candidates may use the columns of the grouping.")
    gain: float = Field(0.05, ge=0, description="Planning: the share by which accuracy is to improve.")
    reduction: float = Field(0.5, gt=0, le=1, description="Planning: the share by which the gap is to shrink.")
    power: float = Field(0.8, gt=0, lt=1, description="Planning: the power wanted.")
    jobs: int | None = Field(
        None, exclude=True, description="Processes for the splits (joblib); by default one, or joblib's own setting."
    )

    @field_validator("features")
    @classmethod
    def _named_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return named_once("features", value)

    @field_validator("capacity")
    @classmethod
    def _some_but_not_all(cls, value: float | None) -> float | None:
        if value is not None and not 0 < value < 1:
            raise ValueError(
                "it must be a share above 0 and below 1, since with nobody or everybody selected there is nothing to "
                f"compare; got {value:g}"
            )
        return value

    @field_validator("utility")
    @classmethod
    def _known_utility(cls, value: Any) -> Utility:
        return _utility(value)

    @field_validator("fairness_utility")
    @classmethod
    def _known_utilities(cls, value: Any) -> tuple[Utility, ...] | None:
        if value is None:
            return None
        found = tuple(_utility(one) for one in (_tuple(value) if not isinstance(value, Utility) else (value,)))
        return found or None

    @field_serializer("utility", "fairness_utility")
    def _utility_names(self, value: Any) -> Any:
        return [utility.name for utility in value] if isinstance(value, tuple) else value and value.name

    @field_validator("delta")
    @classmethod
    def _margins(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        for margin in value:
            if not 0 <= margin < 1:
                raise ValueError(f"each of `delta` must be at least 0 and below 1; got {margin:g}")
        return tuple(sorted(set(value)))

    @field_validator("thresholds")
    @classmethod
    def _known_limits(cls, value: tuple[Threshold, ...]) -> tuple[Threshold, ...]:
        require_known_metrics(value, METRICS)
        for threshold in value:
            if threshold.max is None or not 0 <= threshold.max < 1:
                raise ValueError(
                    f"the threshold for {threshold.metric!r} says how far the status quo may be improvable: give max= "
                    f"of at least 0 and below 1; got {threshold.in_words()}"
                )
            if threshold.stratum is not None or threshold.against != "worst_pair" or threshold.kind == "ratio":
                raise ValueError(
                    f"a threshold for {threshold.metric!r} has no `stratum`, `against` or `kind`: leave them out"
                )
        return value

    @model_validator(mode="after")
    def _utilities_told_apart(self) -> Self:
        every = list(dict.fromkeys((self.utility, *self.fairness)))
        names = [utility.name for utility in every]
        twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
        if twice is not None:
            raise ValueError(f"two different utilities are called {twice!r}; give each a name of its own")
        return self

    @model_validator(mode="after")
    def _features_where_needed(self) -> Self:
        fitted = [name for name, candidate in self.candidates.items() if candidate.refits]
        if not self.features and fitted:
            raise ValueError(f"`features` is empty, and the candidate {fitted[0]!r} has to be fitted to some")
        if not self.features and self.status_quo.model is not None:
            raise ValueError("`features` is empty, and the status quo is a model that needs some")
        for name, candidate in self.candidates.items():
            for member in (candidate, *candidate.family):
                for feature in (*member.monotone, *member.excluded):
                    if feature not in self.features:
                        hint = did_you_mean(feature, self.features)
                        raise ValueError(f"candidate {name!r} speaks of {feature!r}, which is no feature; {hint}")
        return self

    @model_validator(mode="after")
    def _without_training_rows(self) -> Self:
        if self.train == 0:
            fitted = [name for name, candidate in self.candidates.items() if candidate.refits]
            if fitted:
                raise ValueError(f"`train` is 0, so nothing can be fitted; the candidate {fitted[0]!r} has to be")
            if self.worst_pair is None:
                raise ValueError(
                    "`train` is 0, so no training rows tell which group the status quo favours; name `worst_pair`"
                )
            if self.splits != 1:
                raise ValueError("`train` is 0, so all rows test and there is nothing to split: set `splits` to 1")
        return self

    @model_validator(mode="after")
    def _enough_resamples(self) -> Self:
        if self.allowances >= self.alpha * (self.resamples + 1):
            raise ValueError(
                f"`resamples` is {self.resamples:,}, so no p-value can be below {1 / (self.resamples + 1):.2g}; with "
                f"{count(self.splits, 'split')} and {count(len(self.candidates), 'candidate')} one below "
                f"{self.level:.2g} is needed. Set it to {int(self.allowances / self.alpha):,} or more"
            )
        return self

    @model_validator(mode="after")
    def _what_the_tests_allow(self) -> Self:
        if self.fairness_test == "published" and self.studentised:
            raise ValueError("the published fairness test has no studentised form; use fairness_test = 'signed'")
        if self.worst_pair is not None and self.worst_pair[0] == self.worst_pair[1]:
            raise ValueError(f"`worst_pair` must name two groups; got {self.worst_pair[0]!r} twice")
        for threshold in self.thresholds:
            if threshold.model is not None and threshold.model not in self.candidates:
                hint = did_you_mean(threshold.model, self.candidates)
                raise ValueError(f"`model` {threshold.model!r} of a threshold is no candidate; {hint}")
        return self

    @property
    def fairness(self) -> tuple[Utility, ...]:
        """The utilities of fairness."""
        return self.fairness_utility or (self.utility,)

    @property
    def criteria(self) -> Criteria:
        """What has to improve."""
        return Criteria(self.utility, self.fairness, self.accuracy_of)

    @property
    def allowances(self) -> int:
        """By how much p-values of a split count: for several splits twice, and once for each candidate tried."""
        return (1 if self.splits == 1 else 2) * len(self.candidates)

    @property
    def level(self) -> float:
        """The level at which one split is judged, with all splits and candidates allowed for."""
        return self.alpha / self.allowances


def _utility(value: Any) -> Utility:
    if not isinstance(value, str | Utility):
        raise ValueError(f"a utility must be a name or an evenhand.stats.improvability.Utility; got {value!r}")
    try:
        return get_utility(value)
    except ConfigError as error:
        raise ValueError(str(error)) from None
