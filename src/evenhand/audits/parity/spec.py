"""The settings of the parity audit: arguments of `eh.parity` and the `[parity]` section of `audit.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from evenhand.audits.parity.definition import ParityMetric
from evenhand.audits.parity.metrics import BUILT_IN, DEFAULTS, NAMED_GAPS, custom_metric
from evenhand.audits.parity.other_names import OTHER_NAMES
from evenhand.core.metrics import OtherName
from evenhand.core.spec import Code, Names, Reference, Spec
from evenhand.core.thresholds import Alias
from evenhand.errors import SettingError, require_name


class ParitySpec(Spec):
    """The settings of the parity audit.

    Examples
    --------
    >>> ParitySpec(metrics=["tpr", "fpr"]).metrics
    ('tpr', 'fpr')
    """

    audit: ClassVar[str] = "parity"
    threshold_coordinates: ClassVar[tuple[str, ...]] = ("model", "grouping", "group", "stratum")
    column_settings: ClassVar[tuple[str, ...]] = ("within",)
    aliases: ClassVar[Mapping[str, Alias]] = NAMED_GAPS
    other_names: ClassVar[Mapping[str, OtherName]] = OTHER_NAMES
    code: ClassVar[tuple[str, ...]] = ("custom",)

    metrics: Names | None = Field(
        None,
        min_length=1,
        description="Metrics to compute, each reported as a finding; by default all that the data allows, of which the "
        "headline ones are reported.",
    )
    ratios: Names = Field(
        (),
        description="Metrics whose findings are ratios between groups, not differences; a name such as "
        "`disparate_impact` among `metrics` implies it.",
    )
    custom: dict[str, Code] = Field(
        {},
        description="Your own metrics by name: functions of the cells of the groups (`tp`, `fp`, `fn`, `tn`, `score`, "
        "`loss`, `n`) that return one value per group. Your own replaces a built-in metric of the same name; the names "
        "of metrics that are computed by default are refused.",
    )
    reference: Reference = Field(
        None, description="Reference group, or one for each grouping; by default the largest group."
    )
    within: Names = Field(
        (),
        description="Columns of a legitimate factor: groups are also compared within its strata, and standardised over "
        "them.",
    )
    bins: int = Field(
        10,
        ge=2,
        le=100,
        description="Bins for calibration: of scores equally wide, of numbers with equally many people.",
    )
    takes_clusters: ClassVar[bool] = True
    tolerance: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="Of predicted numbers: the largest error that counts as none, in their unit.",
    )
    interval: Literal["auto", "percentile", "basic", "bca"] = Field(
        "auto", description="auto: Wilson, t and DeLong limits where they hold best; else that bootstrap interval."
    )
    resamples: int = Field(10_000, ge=100, le=1_000_000, description="Bootstrap resamples of the cells.")

    def known_metrics(self) -> Mapping[str, ParityMetric]:
        """Return the built-in metrics and the user's own; requested ones are headlines."""
        requested = {name: replace(BUILT_IN[name], headline=True) for name in self.metrics or () if name in BUILT_IN}
        return {**BUILT_IN, **requested, **{name: custom_metric(name) for name in self.custom}}

    @field_validator("metrics", "ratios")
    @classmethod
    def _known(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for name in value or ():
            require_name(name, BUILT_IN, "there is no metric {name!r}; {hint}", SettingError)
        return value

    @field_validator("custom")
    @classmethod
    def _new_names(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name in value:
            if name in DEFAULTS:
                raise SettingError("{name!r} is a built-in metric; give your own another name", name=name)
        return value
