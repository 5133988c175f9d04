"""Calls that a type checker must refuse, each for the reason in its comment; `test_typing.py` runs mypy on them."""

import evenhand as eh

data = {"sex": ["F", "M"] * 50, "hired": [1, 0, 1, 1, 0, 1, 0, 1, 0, 0] * 10}
table = eh.Table(data, groups="sex", predictions="hired")

eh.parity(table, metrisc=["tpr"])  # call-arg
eh.parity(table, confidence="high")  # arg-type
eh.parity(table, interval="bootstrap")  # arg-type
eh.parity(data)  # arg-type
eh.disagreement(table, decision="label")  # call-arg
eh.effort(table, trajectory=["a", "b"], device="tpu")  # arg-type
eh.audit(table, parity=["tpr"])  # arg-type

result = eh.parity(table)
result.get("gap")  # call-overload
result.get("gaps", metrik="tpr")  # call-overload
gap = result.get("gaps").valeu  # attr-defined
worse = result.gaps[0].worse  # attr-defined
