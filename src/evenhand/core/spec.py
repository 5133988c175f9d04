"""The settings of audits, the source of signatures, docstrings, `audit.toml` and schema."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from textwrap import fill, indent
from typing import Annotated, Any, ClassVar, Self, TypeVar, cast, get_args

from pydantic import (
    BeforeValidator,
    Field,
    ModelWrapValidatorHandler,
    PlainSerializer,
    PrivateAttr,
    ValidationInfo,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic.functional_validators import PlainValidator

from evenhand.core.metrics import Metric, OtherName, translate
from evenhand.core.progress import shown_in_notebook
from evenhand.core.thresholds import Alias, Threshold, resolve
from evenhand.errors import ConfigError, SettingError, brief, problem
from evenhand.messages import Message
from evenhand.settings import Settings
from evenhand.table.frames import Columns, is_frame
from evenhand.table.table import Table

_RECORDED = {"recorded": True}
"""Validation context of settings read from `results.json`, where code is replaced by its name."""


def _as_names(value: object) -> object:
    return (value,) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_as_names)]
"""One name, or several."""

Reference = dict[str, str] | str | None
"""The reference group, or one for each grouping."""


def is_from_json(info: ValidationInfo) -> bool:
    """Return whether settings are read from a record, in which code is replaced by its name."""
    return bool(info.context and info.context.get("recorded"))


def code_name(value: object) -> str | None:
    """Return the name of a function or object as 'module:name'."""
    if value is None or isinstance(value, str):
        return value
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}:{getattr(named, '__qualname__', '')}"


def _callable(value: object, info: ValidationInfo) -> object:
    if value is None or callable(value) or (isinstance(value, str) and is_from_json(info)):
        return value
    raise SettingError("must be a function; got {value}", value=brief(value))


Code = Annotated[Any, PlainValidator(_callable), PlainSerializer(code_name)]
"""A user's function, written to records as its name."""


def limits() -> Any:
    """Return the field `thresholds`; an audit with its own coordinates declares it with its own type."""
    example = 'such as {"metric": "selection_rate", "min": 0.8}'
    return Field((), description=f"Limits that turn numbers into verdicts, {example}.")


class Spec(Settings):
    """The settings common to all audits."""

    audit: ClassVar[str] = ""
    """The name of the audit."""
    threshold_coordinates: ClassVar[tuple[str, ...]] = ("model", "grouping", "group")
    """The common coordinates that a threshold may name; the audit's own coordinates are fields of its thresholds."""
    aliases: ClassVar[Mapping[str, Alias]] = {}
    """Named gaps that a threshold may limit, such as 'traditional_parity'."""
    other_names: ClassVar[Mapping[str, OtherName]] = {}
    """Other packages' names of our metrics and gaps, which are translated with a note."""
    counted: ClassVar[str] = "people"
    """The units counted by the `n` of a record."""
    takes_clusters: ClassVar[bool] = False
    """Whether the audit supports clustered rows, the role `cluster` of a table."""
    own_clusters: ClassVar[tuple[str, ...]] = ()
    """Settings that define common units of rows, for audits that support them without the role."""

    column_settings: ClassVar[tuple[str, ...]] = ()
    """Settings that name columns of the table; in Python they accept arrays, too."""

    input_types: ClassVar[Mapping[str, str]] = {}
    """The input types of settings in the stub, for validators that accept more than the annotation."""

    code: ClassVar[tuple[str, ...]] = ()
    """Settings with code, written in `audit.toml` as 'module:attribute', which requires --allow-code."""
    code_or_name: ClassVar[tuple[str, ...]] = ()
    """Settings with names or code; only text of the form 'module:attribute' is code."""
    runs_code: ClassVar[tuple[str, ...]] = ()
    """Settings that let the user's files run code, which requires --allow-code."""

    confidence: float = Field(0.95, ge=0.001, lt=1, description="Confidence of every interval.")
    seed: int = Field(0, ge=0, description="Seed of the one random generator.")
    min_count: int = Field(10, ge=1, description="Groups with fewer people are listed but left out of gaps.")
    thresholds: tuple[Threshold, ...] = limits()

    _folder: Path = PrivateAttr(default=Path())
    _translated: tuple[Message, ...] = PrivateAttr(default=())

    @model_validator(mode="wrap")
    @classmethod
    def _translate_metric_aliases(cls, values: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Translate names of other packages, and note each translation."""
        if not cls.other_names or not isinstance(values, Mapping):
            return handler(values)
        custom = values["custom"] if isinstance(values.get("custom"), Mapping) else ()
        names = {name: other for name, other in cls.other_names.items() if name not in custom}
        translated, remarks = translate(values, names, cls.aliases)
        spec = handler(translated)
        spec._translated = remarks
        return spec

    @property
    def translated(self) -> tuple[Message, ...]:
        """Remarks on the translated names of other packages."""
        return self._translated

    @classmethod
    def threshold_type(cls) -> type[Threshold]:
        """Return the type of the audit's thresholds."""
        kind: type[Threshold] = get_args(cls.model_fields["thresholds"].annotation)[0]
        return kind

    def known_metrics(self) -> Mapping[str, Metric]:
        """Return the metrics that these settings can produce, by name."""
        return {}

    @model_validator(mode="after")
    def _resolve_thresholds(self) -> Self:
        resolved = tuple(
            resolve(threshold, self.audit, self.known_metrics(), self.aliases, self.threshold_coordinates)
            for threshold in self.thresholds
        )
        chosen = getattr(self, "metrics", None)
        for threshold in resolved:
            metric = self.metric_of(threshold)
            if chosen and metric not in (*chosen, *getattr(self, "custom", ())):
                raise SettingError(
                    "a threshold limits {metric!r}, which is not among `metrics`; add it there", metric=metric
                )
        object.__setattr__(self, "thresholds", resolved)
        return self

    def metric_of(self, threshold: Threshold) -> str:
        """Return the metric that a threshold limits, resolving aliases of gaps."""
        return self.aliases[threshold.metric][0] if threshold.metric in self.aliases else threshold.metric

    @property
    def finding_alpha(self) -> float:
        """The significance level of findings without a threshold."""
        return 1.0 - self.confidence

    def with_confidence(self, confidence: float) -> Self:
        """Return the settings with another confidence."""
        return self.model_copy(update={"confidence": confidence})

    @property
    def folder(self) -> Path:
        """The folder that file names in the settings are relative to: the folder of `audit.toml`."""
        return self._folder

    def relative_to(self, folder: Path) -> Self:
        """Return the settings with file names relative to a folder."""
        copy = self.model_copy()
        copy._folder = folder
        return copy

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Return the settings in a `results.json`, with code replaced by its name."""
        return cls.model_validate(dict(values), context=_RECORDED)

    def without_code(self) -> Self:
        """Return a copy for pickling, with code and data replaced by their names."""
        return self.from_json(self.model_dump(mode="json"))


def name_columns(table: Table, spec: type[Spec], settings: Mapping[str, Any]) -> tuple[Table, dict[str, Any]]:
    """Return the table with arrays of the settings added as columns, and settings with these columns' names."""
    columns = Columns(table.data)
    named = {name: columns.named(settings[name], f"`{name}`") for name in spec.column_settings if name in settings}
    return (table if columns.data is table.data else table.with_data(columns.data)), {**settings, **named}


def require_table(value: object, function: str, before: str = "") -> None:
    """Refuse data without roles, and show the code that adds them; `before` are arguments before the table."""
    if isinstance(value, Table):
        return
    kind = type(value).__name__
    kind = f"{'an' if kind[0] in 'AEIOaeio' else 'a'} {kind}"
    named = "df" if is_frame(value) else repr(value) if isinstance(value, str) and len(value) < 60 else "data"
    raise ConfigError(
        "eh.{function} needs a table with the roles of its columns; got {kind}. "
        "Wrap it in eh.Table(...), with your own columns: eh.{function}({before}eh.Table({named}, groups=['sex'], "
        "predictions={{'model': 'score'}})).",
        function=function,
        kind=kind,
        before=before,
        named=named,
    )


def require_independent_rows(table: Table, spec: type[Spec]) -> None:
    """Refuse a table with clustered rows if an audit assumes different people or has its own settings for clusters."""
    if table.roles.cluster is not None and spec.own_clusters:
        raise ConfigError(
            "the {audit} audit allows for what rows have in common by itself, through {settings}; leave `cluster` "
            "{cluster!r} out.",
            audit=spec.audit,
            settings=tuple(problem("`{name}`", name=name) for name in spec.own_clusters),
            cluster=table.roles.cluster,
        )
    if table.roles.cluster is not None and not spec.takes_clusters:
        raise ConfigError(
            "the {audit} audit takes every row for another person and cannot allow for `cluster` {cluster!r} yet; keep "
            "one row of each cluster, or leave the audit out.",
            audit=spec.audit,
            cluster=table.roles.cluster,
        )


AuditFunction = TypeVar("AuditFunction", bound=Callable[..., Any])


def audit_function(spec: type[Spec]) -> Callable[[AuditFunction], AuditFunction]:
    """Give a function with ``**settings`` the signature and the documented parameters of its spec.

    Arrays in settings that name columns are added to the table as columns, and data without roles are refused. The
    line ``{settings}`` in the function's docstring is replaced by the parameters.
    """

    def derive(function: AuditFunction) -> AuditFunction:
        signature = inspect.signature(function)
        parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        named = {parameter.name for parameter in parameters}
        settings = {name: item for name, item in settings_of(spec).items() if name not in named}
        derived = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if item.is_required() else item.get_default(call_default_factory=True),
            )
            for name, item in sorted(settings.items(), key=lambda entry: not entry[1].is_required())
        ]
        before = (
            "".join(f"{p.name}, " for p in parameters[: [p.name for p in parameters].index("table")])
            if "table" in named
            else ""
        )
        function.__doc__ = (function.__doc__ or "").replace("    {settings}\n", _documented(settings))

        @wraps(function)
        def checked(*arguments: Any, **settings_given: Any) -> Any:
            bound = _bound(signature, function.__name__, arguments, settings_given)
            if "table" not in bound.arguments:  # a study's analysis takes answers
                return function(*arguments, **settings_given)
            require_table(bound.arguments["table"], function.__name__, before)
            settings_passed = bound.arguments.get("settings", {})
            table, bound.arguments["settings"] = name_columns(bound.arguments["table"], spec, settings_passed)
            require_independent_rows(table, spec)
            bound.arguments["table"] = table
            with shown_in_notebook():
                return function(*bound.args, **bound.kwargs)

        vars(checked)["__signature__"] = signature.replace(parameters=[*parameters, *derived])
        return cast(AuditFunction, checked)

    return derive


def _bound(
    signature: inspect.Signature, name: str, arguments: Sequence[Any], settings: Mapping[str, Any]
) -> inspect.BoundArguments:
    """Return the arguments of a call by name."""
    try:
        return signature.bind(*arguments, **settings)
    except TypeError as error:
        call = f"{name}({', '.join(str(p).split(':')[0] for p in signature.parameters.values())})"
        raise ConfigError("`{call}`: {why}.", call=call, why=str(error)) from None


def settings_of(spec: type[Spec]) -> dict[str, FieldInfo]:
    """Return the settings of an audit, its own settings before the common ones."""
    return dict(sorted(spec.model_fields.items(), key=lambda entry: entry[0] in Spec.model_fields))


def _documented(settings: Mapping[str, FieldInfo]) -> str:
    lines = []
    for name, item in settings.items():
        default = None if item.is_required() else item.get_default(call_default_factory=True)
        says = f"{item.description}" if default in (None, (), {}) else f"{item.description} Default: {default!r}."
        lines.append(f"{name}\n{indent(fill(says, 108), '    ')}")
    return indent("\n".join(lines), "    ") + "\n"
