"""What the fitting of models can be told: arguments of `cross_predict` and the `[models]` section of `audit.toml`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from evenhand.errors import did_you_mean
from evenhand.models.estimators import ESTIMATORS, SEED
from evenhand.settings import Settings
from evenhand.table.roles import Columns


class Fit(Settings):
    """One model to fit.

    Parameters
    ----------
    estimator : the estimator's short name; by default the model's own name.
    settings : settings of the estimator, by the names its library gives them; ours are filled in.

    Examples
    --------
    >>> Fit(estimator="decision_tree", settings={"max_depth": 3}).settings
    {'max_depth': 3, 'min_samples_leaf': 20}
    """

    estimator: str
    settings: dict[str, Any] = Field({})

    @field_validator("estimator")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in ESTIMATORS:
            raise ValueError(f"there is no estimator {value!r}; {did_you_mean(value, ESTIMATORS)}")
        return value

    @model_validator(mode="before")
    @classmethod
    def _filled_in(cls, values: Any) -> Any:
        recipe = ESTIMATORS.get(str(values.get("estimator"))) if isinstance(values, Mapping) else None
        given = values.get("settings", {}) if recipe is not None else None
        return {**values, "settings": {**recipe.settings, **given}} if recipe and isinstance(given, Mapping) else values

    @model_validator(mode="after")
    def _free_to_set(self) -> Self:
        recipe = ESTIMATORS[self.estimator]
        for option in self.settings:
            if option == SEED:
                raise ValueError(f"`{SEED}` cannot be set for one model; set `seed` for all of them")
            if option in recipe.fixed:
                raise ValueError(f"`{option}` is always {recipe.fixed[option]!r}, so that the numbers stay the same")
        return self


class ModelsSettings(Settings):
    """The `[models]` section: models fitted to the outcome before the audits, each person scored out of fold.

    Examples
    --------
    >>> ModelsSettings(features="income", fit="logistic").fit["logistic"].estimator
    'logistic'
    """

    features: Columns = Field(description="Columns that the models may use: numbers, true or false, or text.")
    fit: dict[str, Fit] = Field(
        min_length=1,
        description="Estimators by name, or a table of models: the name of each with its `estimator` and `settings`.",
    )
    folds: int = Field(5, ge=2, le=100, description="Parts of the data; each is scored by models fitted to the others.")
    seed: int = Field(0, ge=0, description="Seed of the folds and of the estimators.")

    @field_validator("features")
    @classmethod
    def _named_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if value.count(name) > 1:
                raise ValueError(f"`features` names the column {name!r} twice")
        return value

    @field_validator("fit", mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {value: {"estimator": value}}
        if isinstance(value, Mapping):
            return {name: _fit(name, given) for name, given in value.items()}
        return {name: {"estimator": name} for name in value} if isinstance(value, Iterable) else value


def _fit(name: Any, given: Any) -> Any:
    if isinstance(given, str):
        return {"estimator": given}
    return {"estimator": name, **given} if isinstance(given, Mapping) else given
