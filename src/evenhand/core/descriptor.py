"""`AuditDescriptor`: everything that the rest of evenhand knows about an audit.

An audit is a plug-in. Its package names a descriptor under the entry-point group `evenhand.audits`. Members that are
slow to import are given as 'module:attribute' and imported on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar, overload

if TYPE_CHECKING:
    from evenhand.core.capabilities import Counting, Live, MakeReweighter, Proposing
    from evenhand.core.display import DisplayTable, Figure, Method
    from evenhand.core.metrics import Metric
    from evenhand.core.power import Power
    from evenhand.core.result import Draft, Result
    from evenhand.core.spec import Spec
    from evenhand.core.withhold import Withholder
    from evenhand.messages import Catalogue
    from evenhand.stats.types import BoolArray, FloatArray, IntArray
    from evenhand.table.decided import DecidedRows
    from evenhand.table.engines import TransferLimit
    from evenhand.table.table import Table

T = TypeVar("T")
R = TypeVar("R", bound="Result", contravariant=True)

Influence: TypeAlias = "Callable[[Any, DecidedRows, str, BoolArray, str], tuple[float, FloatArray] | None]"
"""Returns the value of a metric in a group, and each person's contribution to its error.

The arguments are the settings of the audit, all people, the model, a mask of the group, and the metric. People outside
the group contribute 0. It returns None if the audit cannot compute it.
"""


class SectionMaker(Protocol[R]):
    """A module that makes an audit's part of a report."""

    def parts(self, result: R, /) -> Iterable[DisplayTable | Figure]:
        """Return the tables and figures, in order."""

    def methods(self, result: R, /) -> Iterable[Method]:
        """Return how the numbers were computed."""


class Lazy(Generic[T]):
    """A member of a descriptor that may be given as 'module:attribute' or 'module', and is imported on first use."""

    def __init__(self, *, optional: bool = False) -> None:
        self._optional = optional

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, descriptor: None, owner: type) -> T: ...
    @overload
    def __get__(self, descriptor: AuditDescriptor, owner: type) -> T: ...
    def __get__(self, descriptor: AuditDescriptor | None, owner: type) -> Any:
        if descriptor is None:  # dataclasses read the default from the class
            if self._optional:
                return None
            raise AttributeError(self._name)
        members = vars(descriptor)
        if isinstance(members[self._name], str):
            members[self._name] = _imported(members[self._name])
        return members[self._name]

    def __set__(self, descriptor: AuditDescriptor, value: T | str) -> None:
        vars(descriptor)[self._name] = value


def _imported(name: str) -> Any:
    module, _, attribute = name.partition(":")
    value: Any = import_module(module)
    for part in attribute.split(".") if attribute else ():
        value = getattr(value, part)
    return value


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AuditDescriptor:
    """The description of an audit, and its capabilities.

    Any member from `spec` on may be given as 'module:attribute'. Capabilities are optional: where one is missing, a
    sentence says so.

    Parameters
    ----------
    name : its section in `audit.toml` and in `results.json`.
    title : its heading in a report.
    question : the question it answers.
    order : its position in a report; audits with the same order are sorted by name.
    evidence : what it is evidence of, in the terms of legal profiles, such as 'gaps'.
    remedy : whether it looks for a way to reduce a gap, so that a report without it proposes it.
    spec : its settings.
    metrics : its metrics by name.
    result : what it returns.
    run : makes the draft of a result from a table and settings.
    section : a module with `parts` and `methods`, its part of a report.
    charts : the charts by name.
    reweight : makes the reweighter, which judges verdicts among people with other shares of groups. Where it has none,
        the sentence `not_reweighted` of its catalogue says why.
    pair : each person's contribution to the error of a number, to compare two audits of the same people.
    power : what a plan could show before data exist.
    counts : the counts of people by group and decision, for gaps over time and legal profiles.
    withhold : which of its records reveal something about few people.
    transfer : how many rows a remote engine may send to this process.
    messages : its catalogue of sentences.
    live : the gaps shown while a study of this name still collects answers.
    propose : its section of the `audit.toml` that `evenhand init` writes.

    Examples
    --------
    >>> from evenhand.audits import REGISTRY
    >>> REGISTRY["parity"].title, REGISTRY["parity"].spec.__name__
    ('Parity', 'ParitySpec')
    """

    name: str
    title: str
    question: str
    order: int = 100
    evidence: tuple[str, ...] = ()
    remedy: bool = False
    spec: Lazy[type[Spec]] = Lazy()
    metrics: Lazy[Mapping[str, Metric]] = Lazy()
    result: Lazy[type[Result]] = Lazy()
    run: Lazy[Callable[[Table, Any], Draft[Any]]] = Lazy()
    section: Lazy[SectionMaker[Any]] = Lazy()
    charts: Lazy[Mapping[str, Callable[[Any, str | None], list[Any]]]] = Lazy()
    reweight: Lazy[MakeReweighter | None] = Lazy(optional=True)
    pair: Lazy[Influence | None] = Lazy(optional=True)
    power: Lazy[Power | None] = Lazy(optional=True)
    counts: Lazy[Counting | None] = Lazy(optional=True)
    withhold: Lazy[Withholder[Any] | None] = Lazy(optional=True)
    transfer: Lazy[TransferLimit | None] = Lazy(optional=True)
    messages: Lazy[Catalogue | None] = Lazy(optional=True)
    live: Lazy[Live | None] = Lazy(optional=True)
    propose: Lazy[Proposing | None] = Lazy(optional=True)

    def __repr__(self) -> str:
        return f"<AuditDescriptor: {self.name}>"


class StudyResponses(Protocol):
    """What people answered in a human study, `evenhand.study.Responses`: what stands in place of a table."""

    @property
    def analysis(self) -> AuditDescriptor:
        """What analyses it: `study_analysis`."""

    @property
    def kind(self) -> str:
        """The kind of study."""

    @property
    def points(self) -> int:
        """The points of its scale."""

    @property
    def conditions(self) -> tuple[str, ...]:
        """Its conditions."""

    @property
    def people(self) -> Mapping[str, Any]:
        """The columns that have an entry for each person."""

    @property
    def person(self) -> IntArray:
        """The person behind each answer."""

    def to_columns(self) -> Mapping[str, Any]:
        """Return the answers as one table."""


def study_analysis() -> AuditDescriptor:
    """Return the descriptor of the analysis of human studies, which takes responses instead of a table.

    The package `evenhand.study` stands on everything else, so the rest of evenhand knows it by this name only.
    """
    descriptor: AuditDescriptor = _imported("evenhand.study.analysis.descriptor:ANALYSIS")
    return descriptor
