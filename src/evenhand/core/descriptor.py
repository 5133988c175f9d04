"""`AuditDescriptor`: the interface between an audit and the rest of evenhand.

An audit is a plug-in. Its package declares a descriptor in the entry-point group `evenhand.audits`. Members with slow
imports are written as 'module:attribute' and imported on first use.
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
"""Function that returns the value of a metric in a group, and each person's contribution to its error.

The arguments are the settings of the audit, all people, the model, a mask of the group, and the metric. People outside
the group contribute 0. It returns None if the audit cannot compute the metric.
"""


class SectionMaker(Protocol[R]):
    """A module that builds an audit's section of a report."""

    def parts(self, result: R, /) -> Iterable[DisplayTable | Figure]:
        """Return the tables and figures, in order."""

    def methods(self, result: R, /) -> Iterable[Method]:
        """Return the methods behind the numbers."""


class Lazy(Generic[T]):
    """A member of a descriptor, imported on first use if it is written as 'module:attribute' or 'module'."""

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
    """The description and the capabilities of an audit.

    All members from `spec` on may be written as 'module:attribute'. Capabilities are optional; a sentence explains a
    missing one.

    Parameters
    ----------
    name : the name of the audit's section in `audit.toml` and in `results.json`.
    title : the heading of the audit's section in a report.
    question : the question that the audit answers.
    order : the sort key of the audit's section in a report; audits with the same order are sorted by name.
    evidence : the kinds of evidence that the audit provides, in the terms of legal profiles, such as 'gaps'.
    remedy : whether the audit looks for a way to reduce a gap, and is therefore proposed by a report without it.
    spec : the type of the audit's settings.
    metrics : the metrics by name.
    result : the type of the audit's result.
    run : the function from a table and settings to the draft of a result.
    section : a module with `parts` and `methods`, which builds the section of a report.
    charts : the charts by name.
    reweight : the function that makes the reweighter, which judges verdicts under other shares of groups. If it is
        missing, the sentence `not_reweighted` of the audit's catalogue explains why.
    pair : the function that returns each person's contribution to the error of a value, to compare two audits of the
        same people.
    power : the power calculation for a plan, before data exist.
    counts : the counts of people by group and decision, for gaps over time and legal profiles.
    withhold : the rules for records that reveal small counts.
    transfer : the limit on rows that a remote engine may send to this process.
    messages : the audit's catalogue of sentences.
    live : the gaps to show while a study of this name is still collecting answers.
    propose : the audit's section in the `audit.toml` that `evenhand init` writes.

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
    """The responses of a human study (`evenhand.study.Responses`), which take the place of a table."""

    @property
    def analysis(self) -> AuditDescriptor:
        """The descriptor of the study's analysis: `study_analysis`."""

    @property
    def kind(self) -> str:
        """The kind of study."""

    @property
    def points(self) -> int:
        """The number of points on the study's scale."""

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions of the study."""

    @property
    def people(self) -> Mapping[str, Any]:
        """The columns with one entry per person."""

    @property
    def person(self) -> IntArray:
        """The position of the person behind each answer."""

    def to_columns(self) -> Mapping[str, Any]:
        """Return the answers as one table."""


def study_analysis() -> AuditDescriptor:
    """Return the descriptor of the analysis of human studies, which takes responses instead of a table.

    The package `evenhand.study` depends on all other packages, so the rest of evenhand refers to it only by this name.
    """
    descriptor: AuditDescriptor = _imported("evenhand.study.analysis.descriptor:ANALYSIS")
    return descriptor
