"""`audit.toml`: the data and its roles, one section per audit, and the thresholds."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, Literal, TypeGuard

from pydantic import Field, PrivateAttr, field_serializer, field_validator

from evenhand.after.profiles import PROFILES
from evenhand.audits import DEFAULT, REGISTRY
from evenhand.core.power import PowerSettings
from evenhand.core.spec import Names, Spec
from evenhand.errors import ConfigError, SettingError, brief, did_you_mean, require_name
from evenhand.messages import LANGUAGES, showable
from evenhand.messages.message import Place
from evenhand.messages.settings import ARGUMENTS
from evenhand.models.estimators import ModelsSettings
from evenhand.settings import Settings, named_once, read_toml
from evenhand.table.engines import EngineSettings
from evenhand.table.frames import is_frame
from evenhand.table.table import Table

_NAMED_CODE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def _is_shares(value: object) -> TypeGuard[Mapping[str, Mapping[str, float]]]:
    return isinstance(value, Mapping) and all(isinstance(shares, Mapping) for shares in value.values())


class ReportSettings(Settings):
    """The `[report]` section: the entries of the title page, and extras."""

    title: str = Field("Fairness audit", description="Title of the report.")
    system: str = Field("", description="The system that was audited, with its version.")
    auditor: str = Field("", description="Who audited it.")
    scope: str = Field("", description="What the audit covers, and what it does not.")
    thresholds_by: str = Field("", description="Who set the thresholds, and when: before the data were seen, or after.")

    profile: Names = Field(
        (),
        description=f"Legal profiles to add to the report: {', '.join(f'`{name!r}`' for name in PROFILES)}.",
    )
    profile_groupings: Names | None = Field(
        None,
        description="Groupings that the tables of profiles are about; by default those by race, sex and ethnic group.",
    )
    names: dict[str, str] = Field(
        {},
        description="Names for readers of models, columns, groups and intersections: "
        "`{ age_group = 'age', 'Black × Female' = 'Black women' }`; settings and data files keep their own.",
    )
    paper: Literal["A4", "letter"] = Field("A4", description="Size of the paper of the PDF.")
    language: str = Field("en", description="Language of the front page and the headlines: `'en'` or `'de'`.")
    period: str | None = Field(
        None,
        description="Column of periods, such as a month: the report also has the gaps of each period, with limits that "
        "hold however often you look, and whether they drift.",
    )
    shift: float | None = Field(
        None,
        gt=0,
        lt=0.5,
        description="Say for every verdict whether it would hold with this much more or less of any other group among "
        "the people, such as 0.1.",
    )
    population: Any = Field(
        {},
        description="The same for the shares of a named population: `{ sex = { F = 0.5, M = 0.5 } }`, or the path of a "
        "table of its people with the same group columns (in Python also a data frame).",
    )
    suppress_below: int | None = Field(
        None,
        ge=2,
        le=1000,
        description="Hide counts from 1 to one less than this, and anything that would reveal them by subtraction, in "
        "everything that is published.",
    )

    _folder: Path = PrivateAttr(default_factory=Path)

    @property
    def folder(self) -> Path:
        """The folder of audit.toml, to which file names in it are relative."""
        return self._folder

    @property
    def population_shares(self) -> dict[str, dict[str, float]] | None:
        """The shares of the population if given directly; None if they come from a table."""
        if not _is_shares(self.population):
            return None
        return {column: dict(shares) for column, shares in self.population.items()}

    @property
    def beside(self) -> list[str]:
        """The names of the settings that request extras."""
        extras = {"period": self.period, "shift": self.shift, "population": self.population_shares != {} or None}
        return [name for name, value in extras.items() if value is not None]

    @field_validator("population")
    @classmethod
    def _shares(cls, value: object) -> object:
        if not _is_shares(value):
            if is_frame(value) or (isinstance(value, str | Mapping) and value):
                return value
            raise SettingError(
                "`population` must be shares by column and group, or a table; got {value}", value=brief(value)
            )
        for name, shares in value.items():
            numbers = all(isinstance(share, int | float) for share in shares.values())
            if not shares or not numbers or min(shares.values()) < 0 or abs(sum(shares.values()) - 1) > 0.01:
                raise SettingError(
                    "the shares of {name!r} must be 0 or more and add up to 1; got {shares}",
                    name=name,
                    shares=brief(shares),
                )
        return {name: dict(shares) for name, shares in value.items()}

    @field_serializer("population")
    def _described(self, value: object) -> object:
        return value if _is_shares(value) or isinstance(value, str) else "a table in memory"

    @field_validator("names")
    @classmethod
    def _tell_apart(cls, value: dict[str, str]) -> dict[str, str]:
        shown = list(value.values())
        for name, told in value.items():
            if not told.strip() or showable(told) != told:
                raise SettingError("the name of {name!r} must be text; got {told}", name=name, told=brief(told))
            if shown.count(told) > 1:
                raise SettingError("two names are {told!r}; a reader could not tell them apart", told=told)
        return value

    @field_validator("language")
    @classmethod
    def _is_spoken(cls, value: str) -> str:
        require_name(value, LANGUAGES, "there is no language {name!r}; {hint}", SettingError)
        return value

    @field_validator("profile")
    @classmethod
    def _is_known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            require_name(name, PROFILES, "there is no profile {name!r}; {hint}", SettingError)
        return named_once("profile", value, "")

    @field_validator("title", "system", "auditor", "scope", "thresholds_by")
    @classmethod
    def _is_text(cls, value: str) -> str:
        try:
            value.encode()
        except UnicodeEncodeError:
            raise SettingError(
                "no file can hold {value!r}: it has half a character, a lone surrogate", value=value
            ) from None
        return value


class DatasetSettings(Settings):
    """Settings of `[data]` for synthetic data instead of a `source`."""

    dataset: str = Field(
        description="Synthetic data instead of a `source`: `'households'`, `'defendants'` or `'kidney_offers'`."
    )
    rows: int = Field(10_000, ge=1, description="How many people, or cases, of synthetic data.")
    dataset_seed: int = Field(0, ge=0, description="Seed of the synthetic data.")

    def make(self) -> object:
        """Return the synthetic data."""
        datasets = import_module("evenhand.datasets")
        makers = {name.removeprefix("make_"): name for name in datasets.__all__ if name.startswith("make_")}
        require_name(self.dataset, makers, "`dataset` in [data] got {name!r}; {hint}")
        return getattr(datasets, makers[self.dataset])(self.rows, seed=self.dataset_seed)


class AuditConfig(Settings):
    """The checked contents of `audit.toml`."""

    source: str | None
    dataset: DatasetSettings | None = None
    data: dict[str, Any]
    models: ModelsSettings | None = None
    audits: dict[str, Spec]
    report: ReportSettings
    power: PowerSettings | None = None
    written: dict[str, Any] | None = Field(None, description="What stands in `results.json`, when it was read there.")

    @classmethod
    def recorded(cls, written: Mapping[str, Any], audits: Mapping[str, Spec]) -> AuditConfig:
        """Build the configuration from `results.json`."""
        data = dict(written["data"])
        report = ReportSettings.parse(written["report"], "results.json")
        return cls(source=data.get("source"), data=data, audits=dict(audits), report=report, written=dict(written))

    def as_dict(self) -> dict[str, Any]:
        """Return the configuration with all defaults, for `results.json`."""
        if self.written is not None:
            return dict(self.written)
        return {
            "data": {**({"source": self.source} if self.dataset is None else self.dataset.model_dump()), **self.data},
            **({} if self.models is None else {"models": self.models.model_dump(mode="json")}),
            **{name: spec.model_dump(mode="json") for name, spec in self.audits.items()},
            "report": self.report.model_dump(mode="json"),
        }


def read_config(path: str | os.PathLike[str], *, allow_code: bool = False) -> tuple[AuditConfig, dict[str, Any]]:
    """Return the checked configuration of `audit.toml`, and the arguments of its `Table`."""
    name = os.fspath(path)
    raw = read_toml(name, "write one with: evenhand init DATA")
    data = dict(_section(raw, "data", name))
    _refuse_blanks(raw, name)
    if "data" in data:
        raise ConfigError(
            "there is no setting `data` in [data] of '{name}'; the path of the data is its `source`.", name=name
        )
    source, where, folder = data.pop("source", None), Place("data", name), Path(name).parent
    invented = _pop_settings(data, DatasetSettings) if "dataset" in data else {}
    if invented and source is not None:
        raise ConfigError("[data] of '{name}' names both a `source` and a `dataset`; give one of them.", name=name)
    if not invented and not isinstance(source, str):
        raise ConfigError(
            "`source` in [data] of '{name}' must be the path of the data; got {source}.",
            name=name,
            source=brief(source),
        )
    config = make_config(raw, source, where=name, allow_code=allow_code)
    config.report._folder = folder
    remote = _pop_settings(data, EngineSettings)
    if invented:
        dataset = DatasetSettings.parse(invented, where)
        return config.model_copy(update={"dataset": dataset}), {**data, "data": dataset.make()}
    opened = EngineSettings.parse(remote, where).open(source, folder) if remote else str(folder / source)
    return config, {**data, "data": opened}


def _pop_settings(section: dict[str, Any], kind: type[Settings]) -> dict[str, Any]:
    """Remove the settings of a model from a section, and return them."""
    return {key: section.pop(key) for key in kind.model_fields if key in section}


def _refuse_blanks(raw: Mapping[str, Any], name: str) -> None:
    """Raise for blank settings, such as `evenhand init` leaves, and name them."""
    blanks = open_settings(raw)
    if blanks:
        listed = ", ".join(blanks)
        raise ConfigError(
            "'{name}' leaves open {listed}; fill it in, or remove the line if you can do without it.",
            name=name,
            listed=listed,
        )


def open_settings(raw: Mapping[str, Any]) -> list[str]:
    """Return the names of the blank settings of an `audit.toml`, with their sections.

    Examples
    --------
    >>> open_settings({"data": {"source": "d.csv", "groups": [""], "predictions": ""}})
    ['`groups` in [data]', '`predictions` in [data]']
    """
    proposed = (name for name, audit in REGISTRY.items() if audit.propose and audit.propose.leaves_blanks)
    places = [path for section in ("data", *proposed) for path in _blanks(raw.get(section), section)]
    return [f"`{setting}` in [{section}]" for section, setting in places]


def _blanks(section: object, path: str) -> Iterator[tuple[str, str]]:
    for setting, value in section.items() if isinstance(section, Mapping) else ():
        if isinstance(value, Mapping):
            yield from _blanks(value, f"{path}.{setting}")
        elif value == "" or (value == [""] and setting != "missing_values"):
            yield path, setting


def make_config(raw: Mapping[str, Any], source: str | None, *, where: str, allow_code: bool) -> AuditConfig:
    """Check the sections of an audit and return the configuration."""
    sections = ("data", "models", "report", "power", "thresholds", *REGISTRY)
    for name in raw:
        if name not in sections:
            REGISTRY.get(name)  # an audit that cannot be imported raises its own error
            raise ConfigError(
                "there is no section [{name}] in {where}; {hint}",
                name=name,
                where=where,
                hint=did_you_mean(name, sections),
            )
    _refuse_data_settings(_section(raw, "report", where), where)
    audits = _specs(raw, where, allow_code)
    if not audits:
        raise ConfigError("{where} asks for no audit; add a section such as [{audit}].", where=where, audit=DEFAULT)
    kinds: dict[str, type[Settings]] = {"report": ReportSettings, "models": ModelsSettings, "power": PowerSettings}
    others: dict[str, Any] = {
        name: kind.parse(_section(raw, name, where), Place(name, where))
        for name, kind in kinds.items()
        if name in ("report", *raw)
    }
    return AuditConfig(source=source, data={}, audits=audits, **others)


def _refuse_data_settings(report: Mapping[str, Any], where: str) -> None:
    """Raise for settings in [report] that belong to the data."""
    for name in report:
        if name in signature(Table).parameters and name not in ReportSettings.model_fields:
            origin = "the arguments of the table" if where == ARGUMENTS else "[data]"
            raise ConfigError(
                "`{name}` in [report] of {where} belongs in {place}; move it there.",
                name=name,
                where=where,
                place=origin,
            )


def _specs(raw: Mapping[str, Any], where: str, allow_code: bool) -> dict[str, Spec]:
    """Return the settings of each audit that has a section, including its thresholds."""
    thresholds = raw.get("thresholds", [])
    if not isinstance(thresholds, list) or not all(isinstance(item, Mapping) for item in thresholds):
        form = "mappings: {'metric': 'selection_rate', 'min': 0.8}" if where == ARGUMENTS else "[[thresholds]] tables"
        raise ConfigError("thresholds in {where} must be written as {form}.", where=where, form=form)
    readers = {
        name: _SpecReader(name, _section(raw, name, where), where, allow_code) for name in REGISTRY if name in raw
    }
    by_audit: dict[str, list[Mapping[str, Any]]] = {name: [] for name in readers}
    for threshold in thresholds:
        by_audit[_audit_of(threshold, readers, where)].append(threshold)
    return {name: reader.spec(by_audit[name]) for name, reader in readers.items()}


def make_table(arguments: Mapping[str, Any]) -> Table:
    """Build the table of an audit from the settings of `[data]`."""
    settings_of_table = [name for name in signature(Table).parameters if name != "data"]
    for name in arguments:
        if name in ReportSettings.model_fields and name not in settings_of_table:
            raise ConfigError("there is no setting `{name}` in [data]; it belongs in [report].", name=name)
        if name not in (*settings_of_table, "data"):
            raise ConfigError(
                "there is no setting `{name}` in [data]; {hint}", name=name, hint=did_you_mean(name, settings_of_table)
            )
    return Table(**arguments)


def _section(raw: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    section = raw.get(name, {})
    if not isinstance(section, Mapping):
        raise ConfigError(
            "[{name}] in {where} must be a table of settings; got {section}.",
            name=name,
            where=where,
            section=brief(section),
        )
    return section


@dataclass(frozen=True)
class _SpecReader:
    """Reads the section of one audit."""

    name: str
    section: Mapping[str, Any]
    where: str
    allow_code: bool

    def spec(self, thresholds: Sequence[Mapping[str, Any]] = ()) -> Spec:
        """Return the settings, with `thresholds` from other sections added."""
        listed = self.section.get("thresholds", [])
        if not isinstance(listed, list | tuple):
            raise ConfigError(
                "`thresholds` in [{name}] of {where} must be a list; got {listed}.",
                name=self.name,
                where=self.where,
                listed=brief(listed),
            )
        kind = REGISTRY[self.name].spec
        values = {**self.section, "thresholds": [*listed, *thresholds]}
        for setting in kind.runs_code:
            if _nested(values, setting) and not self.allow_code:
                raise ConfigError(
                    "`{setting}` in {where} lets a file run code; allow it only if you trust it, with --allow-code.",
                    setting=setting,
                    where=self.where,
                )
        for setting in (*kind.code, *kind.code_or_name):
            only = _NAMED_CODE if setting in kind.code_or_name else None
            values = self._with_code(values, setting.split("."), only)
        return kind.parse(values, Place(self.name, self.where)).relative_to(Path(self.where).parent)

    def _with_code(
        self, values: Mapping[str, Any], path: Sequence[str], only: re.Pattern[str] | None
    ) -> dict[str, Any]:
        """Return settings in which the function name at a path such as `noise.derive` is replaced by the function."""
        first, *rest = path
        inner = values.get(first)
        if rest:
            changed = self._with_code(inner, rest, only) if isinstance(inner, Mapping) else inner
        else:
            changed = _import_named(first, inner, self.where, self.allow_code, only)
        return {**values, first: changed} if first in values else dict(values)

    def limits(self) -> list[str]:
        """Return the names of metrics that a threshold of this audit can limit."""
        spec = self.spec()
        return [
            *(name for name, metric in spec.known_metrics().items() if metric.limits),
            *spec.aliases,
            *spec.other_names,
        ]


def _nested(values: Mapping[str, Any], path: str) -> object:
    """Return the setting at a path such as `loading.allow_pickle`; None if missing."""
    value: Any = values
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _audit_of(threshold: Mapping[str, Any], readers: Mapping[str, _SpecReader], where: str) -> str:
    """Return the audit of a threshold: the named audit, or the only one with its metric."""
    name, metric = threshold.get("audit"), threshold.get("metric")
    if metric is None:
        raise ConfigError("`metric` of a threshold in {where}: it is required and was not given.", where=where)
    if name is not None:
        if name not in list(readers):
            raise ConfigError(
                "a threshold in {where} is for the audit {name!r}, which is not run; {hint}",
                where=where,
                name=name,
                hint=did_you_mean(name, readers),
            )
        return str(name)
    limits = {audit: reader.limits() for audit, reader in readers.items()}
    knowing = [audit for audit, metrics in limits.items() if metric in metrics]
    if len(knowing) == 1:
        return knowing[0]
    if knowing:
        raise ConfigError(
            "a threshold in {where} for {metric!r} could be for {names}; name its `audit`.",
            where=where,
            metric=metric,
            names=" or ".join(map(repr, knowing)),
        )
    metrics_known = list(dict.fromkeys(name for metrics in limits.values() for name in metrics))
    raise ConfigError(
        "`metric` {metric!r} of a threshold in {where} is not known; {hint}",
        metric=metric,
        where=where,
        hint=did_you_mean(metric, metrics_known),
    )


def _import_named(name: str, value: Any, where: str, allow_code: bool, only: re.Pattern[str] | None = None) -> Any:
    """Import 'module:attribute' if user code is allowed; with `only`, import only text that matches it."""
    if isinstance(value, Mapping):
        return {key: _import_named(key, inner, where, allow_code, only) for key, inner in value.items()}
    if not isinstance(value, str) or (only is not None and not only.fullmatch(value)):
        return value
    if not allow_code:
        raise ConfigError(
            "{where} names code ({value!r} for {name!r}); run it only if you trust it, with --allow-code.",
            where=where,
            value=value,
            name=name,
        )
    module, _, attribute = value.partition(":")
    beside = str(Path(where).resolve().parent)
    sys.path.insert(0, beside)  # a module in the folder of audit.toml
    try:
        return getattr(import_module(module), attribute)
    except Exception as error:  # the user's module may raise anything
        raise ConfigError(
            "{name!r} names {value!r}, which cannot be imported ({name_2}: {error}); name what is to be "
            "used as 'module:name', with the module installed or beside {where}.",
            name=name,
            value=value,
            name_2=type(error).__name__,
            error=error,
            where=where,
        ) from error
    finally:
        sys.path.remove(beside)
