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

eh.audit(table, parity={"metrisc": ["tpr"]})  # typeddict-unknown-key
eh.audit(table, suppress_below=10)  # arg-type
eh.parity(table, within=5)  # arg-type
eh.effort(table, trajectory=5)  # arg-type
eh.agreement(table, raters=5)  # arg-type
eh.disagreement(table, decision=3, critic="critic")  # arg-type
eh.Table(data, groups=3)  # arg-type
eh.improvability(table, status_quo=5)  # arg-type
result.to_frame("gap")  # call-overload
result.get("gaps", against="worstpair")  # call-overload
