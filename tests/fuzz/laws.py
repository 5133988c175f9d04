"""What every outcome obeys: a result whose numbers can be, sentences without holes, or one sentence that refuses."""

from __future__ import annotations

import json
import re
from functools import cache
from itertools import pairwise
from typing import Any

import jsonschema

from evenhand.core.records import Gap, Value
from evenhand.core.result import Result
from evenhand.errors import EvenhandError
from evenhand.run.audit import Audit
from evenhand.run.schema import results_schema

NEAR = 1e-9
HOLES = re.compile(
    r"(?<![\w'’.-])(nan|NaN|(?<!= )-?inf|None|NaT|<NA>)(?![\w'’])|Traceback|object at 0x"  # a group may be "g = inf"
)
RANGES = {"share": (0.0, 1.0), "score": (float("-inf"), float("inf"))}


def require_lawful(result: Result) -> None:
    """Fail unless all records, findings and texts of a result hold their laws."""
    json.dumps(result.to_dict(), allow_nan=False)
    for name in ("values", "gaps"):
        for record in result.rows(name):
            _require_possible(record, result)
    for finding in result.findings:
        require_whole(finding.text)
        for p in (finding.p_value, finding.p_adjusted):
            assert p is None or 0 <= p <= 1, finding
        assert (finding.verdict == "no_threshold") == (finding.threshold is None), finding
    require_whole(result.summary())
    require_whole(" ".join(record.reason.text for record in result.left_out))


def _require_possible(record: Value | Gap, result: Result) -> None:
    unit = result.metrics[record.metric].unit
    assert record.n >= 0, record
    assert record.status != "ok" or record.value is not None, record
    pointwise, joint = (record.low, record.high), (record.joint_low, record.joint_high)
    for low, high in (pointwise, joint):
        _require_order(low, record.value, high, record)
    _require_order(record.joint_low, record.low, record.high, record)
    _require_order(record.low, record.high, record.joint_high, record)
    if isinstance(record, Gap):
        _require_gap(record)
    elif unit == "share":
        assert all(number is None or -NEAR <= number <= 1 + NEAR for number in (record.value, *pointwise, *joint)), (
            record
        )


def _require_gap(record: Gap) -> None:
    for p in (record.p_value, record.p_adjusted):
        assert p is None or 0 <= p <= 1, record
    if record.p_value is not None and record.p_adjusted is not None:
        assert record.p_adjusted >= record.p_value - NEAR, record
    if record.kind == "ratio":
        assert record.value is None or record.value >= 0, record
    if record.against == "worst_pair" and record.value is not None:
        assert record.value >= -NEAR if record.kind == "difference" else record.value <= 1 + NEAR, record


def _require_order(*numbers_and_record: Any) -> None:
    *numbers, record = numbers_and_record
    known = [number for number in numbers if number is not None]
    assert all(first <= second + NEAR * max(1.0, abs(first)) for first, second in pairwise(known)), record


def require_whole(text: str) -> None:
    """Fail where a sentence for people holds a number that is none."""
    found = HOLES.search(text)
    assert found is None, f"{found[0]!r} in {text!r}"


@cache
def _schema() -> Any:
    return jsonschema.Draft202012Validator(results_schema())


def require_documented(audit: Audit) -> None:
    """Fail unless an audit is what the schema of results.json says, and every result in it is lawful."""
    written = json.loads(audit.to_json())
    faults = [f"{list(fault.absolute_path)}: {fault.message[:200]}" for fault in _schema().iter_errors(written)]
    assert not faults, faults[:3]
    for result in audit.results.values():
        require_lawful(result)


def require_sentence(error: EvenhandError) -> None:
    """Fail unless an error tells one thing in words: begins, ends and holds no hole."""
    told = str(error)
    assert told, type(error)
    assert told.rstrip().endswith((".", "?", ")", "'", "`", ":", "]")) or "\n  - " in told or len(told) > 60, told
    assert "Traceback" not in told, told
    assert "pydantic" not in told, told
    assert len(told) < 20_000, told
