"""Calls that a type checker must accept; `test_typing.py` runs mypy on them."""

from typing import assert_type

import evenhand as eh
from evenhand.audits.effort.result import EffortGap
from evenhand.audits.parity.result import CalibrationRecord, ParityGap
from evenhand.core.records import LeftOut, Value

data = {"sex": ["F", "M"] * 50, "hired": [1, 0, 1, 1, 0, 1, 0, 1, 0, 0] * 10}
table = eh.Table(data, groups="sex", predictions="hired")

result = eh.parity(table, metrics=["selection_rate"], confidence=0.9, thresholds=[{"metric": "tpr", "max": 0.1}])
assert_type(result, eh.ParityResult)
assert_type(result.gaps, tuple[ParityGap, ...])
assert_type(result.get("gaps", metric="selection_rate", kind="difference"), ParityGap)
assert_type(result.get("values", group="F"), Value)
assert_type(result.rows("calibration", model="hired"), tuple[CalibrationRecord, ...])
assert_type(result.rows("left_out"), tuple[LeftOut, ...])
eh.parity(table, metrics="tpr", within="sex", interval="bca")
eh.parity(table, custom={"mine": lambda cells: 0.5})

effort = eh.effort(table, trajectory=["a", "b"], weights=[0.5], device="cpu")
assert_type(effort.get("gaps", weight=0.5), EffortGap)
eh.disagreement(table, decision="label", critic="critic", disagree="says_no", bounds="sharp")
eh.agreement(table, raters=["a", "b"], scale="binary")
eh.improvability(table, status_quo="hired", features=["a"], capacity=0.03)
eh.audit(table, parity={"metrics": ["tpr"]}, thresholds=[{"metric": "tpr", "max": 0.1}])
eh.audit("audit.toml", seed=1).save("out")
audit = eh.audit(table, parity={"metrics": ["tpr"]}, effort={"trajectory": ["a", "b"], "history": {"source": "h.csv"}})
assert_type(audit["parity"], eh.ParityResult)
assert_type(audit["parity"].gaps, tuple[ParityGap, ...])
eh.audit(table, thresholds=[{"audit": "effort", "metric": "eaif", "min": 0.8, "grouping": ["race", "sex"]}])
eh.audit(table, wait={"days": "days"}, report={"suppress_below": 10, "profile": "ugesp-1978"})
frame = result.to_frame("gaps")
