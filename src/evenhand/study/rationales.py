"""Rationales: export of people's reasons for coding, import of two coders' codes, and their agreement."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.core.csv_text import write_csv
from evenhand.core.records import OK, Record
from evenhand.errors import ConfigError, DataError, count, require_choice
from evenhand.messages import Message
from evenhand.messages.formats import finite
from evenhand.messages.shared import say as shared
from evenhand.stats.agreement import Undefined, cohen_kappa, pabak, why_undefined
from evenhand.stats.types import BoolArray, IntArray
from evenhand.study.analysis.estimate import share_estimates
from evenhand.study.analysis.messages import say
from evenhand.study.responses import Responses
from evenhand.study.schema import as_text, read_columns, require_known, save_text
from evenhand.table.frames import build_frame

SOURCES = ("reason", "factor_text")
_SEPARATOR = ";"


@dataclass(frozen=True, kw_only=True)
class CodeShare(Record):
    """The share of rationales with a code, by one coder or both; published (by row) or clustered (by person)."""

    condition: str
    code: str
    coder: str
    method: str
    n: int
    people: int
    value: float | None
    low: float | None
    high: float | None
    status: Message


@dataclass(frozen=True)
class CodeAgreement(Record):
    """The agreement of two coders on one code, or on the set of codes of a rationale (code '(all)')."""

    code: str
    statistic: str
    n: int
    value: float | None
    status: Message


@dataclass(frozen=True)
class UncountedRationales(Record):
    """The number of rationales left out of the shares, with the reason."""

    n: int
    reason: Message


@dataclass(frozen=True, repr=False)
class CodedRationales:
    """The results of coding rationales by two coders.

    Parameters
    ----------
    shares, agreement : the tables of results.
    coders : their names.
    left_out : rationales left out of the shares, with the reason.
    """

    shares: tuple[CodeShare, ...]
    agreement: tuple[CodeAgreement, ...]
    coders: tuple[str, str]
    left_out: tuple[UncountedRationales, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the contents as plain values for JSON."""
        return {
            "coders": list(self.coders),
            "shares": [share.to_dict() for share in self.shares],
            "agreement": [record.to_dict() for record in self.agreement],
            "left_out": [record.to_dict() for record in self.left_out],
        }

    def to_frame(self, table: str = "shares", backend: str | None = None) -> Any:
        """Return 'shares' or 'agreement' as a data frame."""
        require_choice("table", table, ["shares", "agreement"])
        records: Sequence[CodeShare | CodeAgreement] = self.shares if table == "shares" else self.agreement
        columns = list(vars(records[0])) if records else []
        return build_frame({name: [_cell(getattr(one, name)) for one in records] for name in columns}, backend)

    def __repr__(self) -> str:
        codes = len({share.code for share in self.shares})
        return f"<CodedRationales: {count(codes, 'code')} by {self.coders[0]} and {self.coders[1]}>"


def _cell(value: object) -> object:
    return value.text if isinstance(value, Message) else value


def rationale_sheet(
    responses: Responses,
    *,
    source: str = "reason",
    items: Sequence[str] | None = None,
    blind: bool = True,
    seed: int = 0,
) -> dict[str, list[Any]]:
    """Return the rationales as columns for coding: id, text, context, and an empty column `codes`.

    The order is random, and the id is anonymous, so that coders do not see one person's answers together.

    Parameters
    ----------
    responses : the analysed answers.
    source : 'reason' (of the risk score or the feedback) or 'factor_text' (the other factor).
    items : limit to these sets or cases; the paper codes the first set.
    blind : whether to hide the condition from the coders.
    seed : seed of the order.

    Examples
    --------
    >>> import evenhand as eh
    >>> rows = {"participant": ["p1", "p2"], "item": ["7", "7"], "decision": ["high", "high"],
    ...         "answer": ["agree", "disagree"], "reason": ["looks right", "too harsh"]}
    >>> sorted(eh.study.rationale_sheet(eh.study.read_responses(rows))["text"])
    ['looks right', 'too harsh']
    """
    rows = reason_rows(responses, source, items)
    rows = rows[np.random.default_rng(seed).permutation(len(rows))]
    ids, texts = reason_ids(responses), responses.answers[source]
    about = [name for name in ("item", "subject", "decision", "answer") if name in responses.answers]
    conditions = {} if blind else {"condition": responses.condition_of_rows()[rows].tolist()}
    return {
        "id": [ids[row] for row in rows],
        **conditions,
        **{name: responses.answers[name][rows].tolist() for name in about},
        "text": texts[rows].tolist(),
        "codes": [None] * len(rows),
    }


def export_rationales(responses: Responses, path: str | os.PathLike[str], **options: Any) -> Path:
    """Write the columns of `rationale_sheet` as CSV; coders fill in `codes`, separated by ';'."""
    return save_text(path, write_csv(rationale_sheet(responses, **options)))


def code_rationales(
    responses: Responses,
    coded: Mapping[str, Any],
    *,
    source: str = "reason",
    exclude: Sequence[str] = (),
    codes: Sequence[str] | None = None,
    confidence: float = 0.95,
) -> CodedRationales:
    """Return the shares of codes from two coders' sheets, and the coders' agreement.

    Parameters
    ----------
    responses : the answers from which the sheet was made.
    coded : the two coders by name: each a filled-in sheet, as a file, a data frame or a mapping of columns.
    source : the column from which the sheet was made.
    exclude : codes such as 'vague' that exclude a rationale from the shares if either coder assigned one.
    codes : all allowed codes; any other is an error. By default the codes in the sheets.
    confidence : confidence level of the intervals.

    Examples
    --------
    >>> import evenhand as eh
    >>> rows = {"participant": ["p1", "p2"], "item": ["7", "7"], "decision": ["high", "high"],
    ...         "answer": ["agree", "disagree"], "reason": ["looks right", "too harsh"]}
    >>> responses = eh.study.read_responses(rows)
    >>> sheet = eh.study.rationale_sheet(responses)
    >>> filled = {**sheet, "codes": ["harsh" if "harsh" in text else "right" for text in sheet["text"]]}
    >>> found = eh.study.code_rationales(responses, {"ann": filled, "bob": filled})
    >>> [(one.statistic, one.value) for one in found.agreement if one.code == "harsh"][:2]
    [('kappa', 1.0), ('pabak', 1.0)]
    """
    if len(coded) != 2:
        raise ConfigError("`coded` must hold two coders by name; got {number}.", number=len(coded))
    rows, ids = reason_rows(responses, source, None), reason_ids(responses)
    given = {coder: _read_codes(sheet, coder, {ids[row] for row in rows}) for coder, sheet in coded.items()}
    names = _code_names(given, codes)
    first, second = coded
    both = np.array([row for row in rows if ids[row] in given[first] and ids[row] in given[second]], dtype=np.int64)
    if not both.size:
        raise DataError("no rationale was coded by both {first!r} and {second!r}.", first=first, second=second)
    marks = {coder: _marks(sheet, [ids[row] for row in both], names) for coder, sheet in given.items()}
    barred = np.isin(names, list(exclude))
    kept = np.asarray(~(marks[first] | marks[second])[:, barred].any(axis=1))
    coding = _Coding(both, kept, marks, names, np.flatnonzero(~barred).tolist())
    uncoded = UncountedRationales(len(rows) - len(both), say("not_coded_by_both"))
    barred_ones = UncountedRationales(int((~kept).sum()), say("coded_as", codes=tuple(exclude)))
    left_out = tuple(one for one in (uncoded, barred_ones) if one.n)
    shares, agreement = tuple(_shares(responses, coding, confidence)), tuple(_agreement(marks, names))
    return CodedRationales(shares, agreement, (first, second), left_out)


@dataclass(frozen=True)
class _Coding:
    """Both coders' codes: the rows coded by both, which of them count, each coder's marks, and the codes shown."""

    rows: IntArray
    kept: BoolArray
    marks: Mapping[str, BoolArray]
    names: Sequence[str]
    shown: Sequence[int]


def _marks(sheet: Mapping[str, frozenset[str]], ids: Sequence[str], names: Sequence[str]) -> BoolArray:
    """Return a boolean array (rationale, code) of the codes that a coder assigned."""
    return np.array([[name in sheet[identifier] for name in names] for identifier in ids])


def reason_rows(responses: Responses, source: str, items: Sequence[str] | None) -> IntArray:
    """Return the rows of answers with a text, optionally of some items only."""
    require_choice("source", source, SOURCES)
    texts = responses.answers.get(source)
    if texts is None:
        raise DataError("the responses have no column {source!r}; there is nothing to code.", source=source)
    written = np.array([text is not None for text in texts], dtype=bool)
    if items is not None:
        written &= np.isin(responses.answers["item"].astype(str), [str(item) for item in items])
    return np.flatnonzero(written)


def reason_ids(responses: Responses) -> list[str]:
    """Return an anonymous, reproducible id for every answer."""
    names = responses.people["participant"][responses.person]
    return [
        hashlib.sha256(f"{who}\x1f{pair}".encode()).hexdigest()[:12]
        for who, pair in zip(names, responses.pairs(), strict=True)
    ]


def _read_codes(sheet: object, coder: str, known: set[str]) -> dict[str, frozenset[str]]:
    columns, _ = read_columns(sheet)
    require_known(("id", "codes"), columns, "the sheet of {coder!r} has no column {name}", DataError, coder=coder)
    coded: dict[str, frozenset[str]] = {}
    seen: set[str] = set()
    for identifier, text in zip(as_text(columns["id"]), as_text(columns["codes"]), strict=True):
        if identifier not in known:
            raise DataError(
                "the sheet of {coder!r} has an id {identifier!r} that is not among these responses.",
                coder=coder,
                identifier=identifier,
            )
        if identifier in seen:
            raise DataError(
                "the sheet of {coder!r} has the id {identifier!r} more than once.", coder=coder, identifier=identifier
            )
        seen.add(identifier)
        if text is not None:
            coded[identifier] = frozenset(code.strip() for code in text.split(_SEPARATOR) if code.strip())
    return coded


def _code_names(given: Mapping[str, Mapping[str, frozenset[str]]], codes: Sequence[str] | None) -> list[str]:
    used = {coder: set().union(*sheet.values()) for coder, sheet in given.items()}
    if codes is None:
        return sorted(set().union(*used.values()))
    for coder, names in used.items():
        require_known(sorted(names), codes, "{coder!r} used a code {name}", DataError, coder=coder)
    return list(codes)


def _shares(responses: Responses, coding: _Coding, confidence: float) -> Iterator[CodeShare]:
    views = {**coding.marks, "both": np.logical_and(*coding.marks.values())}
    conditions = responses.condition_of_rows()[coding.rows]
    for condition in responses.conditions:
        here = coding.kept & (conditions == condition)
        who = responses.person[coding.rows[here]]
        if not who.size:
            continue
        for code in coding.shown:
            for coder, marked in views.items():
                estimates = share_estimates(marked[here, code].astype(np.float64), who, confidence)
                for method, share in estimates.items():
                    value, low, high = finite(share.value), finite(share.low), finite(share.high)
                    status = OK if low is not None else shared("no_interval", why=say("coded_alike"))
                    yield CodeShare(
                        condition=condition,
                        code=coding.names[code],
                        coder=coder,
                        method=method,
                        n=len(who),
                        people=len(np.unique(who)),
                        value=value,
                        low=low,
                        high=high,
                        status=status,
                    )


def _agreement(marks: Mapping[str, BoolArray], names: Sequence[str]) -> Iterator[CodeAgreement]:
    first, second = marks.values()
    for code, name in enumerate(names):
        pair = first[:, code], second[:, code]
        kappa = finite(float(cohen_kappa(*pair)))
        status = OK if kappa is not None else shared("undefined", why=_why_no_kappa(*pair))
        yield CodeAgreement(name, "kappa", len(first), kappa, status)
        yield CodeAgreement(name, "pabak", len(first), float(pabak(*pair)), OK)
        yield CodeAgreement(name, "observed_agreement", len(first), float((pair[0] == pair[1]).mean()), OK)
    together = [np.array([_SEPARATOR.join(np.array(names)[row]) for row in marked]) for marked in (first, second)]
    number = finite(float(cohen_kappa(*together)))
    status = OK if number is not None else shared("undefined", why=say("same_codes"))
    yield CodeAgreement("(all)", "kappa", len(first), number, status)


def _why_no_kappa(first: BoolArray, second: BoolArray) -> Message:
    return Undefined(str(why_undefined("cohen_kappa", first, second))).message
