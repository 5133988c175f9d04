"""Rationales: the sheet for coding, two coders' codes, shares and agreement."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.errors import ConfigError, DataError
from evenhand.study import (
    Responses,
    code_rationales,
    export_rationales,
    rationale_sheet,
    read_responses,
    simulate_responses,
)
from evenhand.study.schema import read_columns


@pytest.fixture(scope="module")
def responses() -> Responses:
    columns = dict(simulate_responses(40, conditions=["CLUE", "SHED"], seed=2).to_columns())
    reason = np.array([f"=reason {i}, because" for i in range(len(columns["item"]))], dtype=object)
    reason[::3] = None
    return read_responses({**columns, "reason": reason})


def coded(sheet: dict[str, list[Any]], how: Any) -> dict[str, list[Any]]:
    return {**sheet, "codes": [how(number, text) for number, text in enumerate(sheet["text"])]}


def test_the_sheet_hides_who_wrote_and_in_which_condition(responses: Responses) -> None:
    sheet = rationale_sheet(responses, seed=3)
    assert set(sheet) == {"id", "item", "subject", "text", "codes"}
    assert len(sheet["id"]) == len(set(sheet["id"])) == sum(text is not None for text in responses.answers["reason"])
    assert sheet["text"] != rationale_sheet(responses, seed=4)["text"]
    assert sorted(sheet["text"]) == sorted(rationale_sheet(responses, seed=4)["text"])
    assert not any("p0" in name for name in sheet["id"])
    assert "condition" in rationale_sheet(responses, blind=False)
    first = rationale_sheet(responses, items=["1"])
    assert set(first["item"]) == {"1"}


def test_there_and_back_through_files(responses: Responses, tmp_path: Path) -> None:
    path = export_rationales(responses, tmp_path / "sheet.csv", items=["1"])
    assert "'=reason" in path.read_text(encoding="utf-8")
    columns, _ = read_columns(path)
    assert columns["text"] == rationale_sheet(responses, items=["1"])["text"]
    filled = coded(columns, lambda n, _: "trajectory" if n % 2 else "aggregate; trajectory")
    found = code_rationales(responses, {"ann": filled, "bob": filled})
    share = next(one for one in found.shares if (one.condition, one.code, one.coder) == ("CLUE", "trajectory", "ann"))
    assert share.value == 1.0
    assert json.dumps(found.to_dict())
    assert len(found.to_frame("agreement", "pandas")) == len(found.agreement)


def test_shares_and_agreement_equal_counting(responses: Responses) -> None:
    cohen = pytest.importorskip("sklearn.metrics").cohen_kappa_score
    sheet = rationale_sheet(responses, blind=False)
    rng = np.random.default_rng(0)
    ann = rng.choice(["T", "A", "T;A", "vague"], len(sheet["id"]), p=[0.4, 0.2, 0.3, 0.1])
    bob = np.where(rng.random(len(ann)) < 0.8, ann, rng.choice(["T", "A"], len(ann)))
    sheets = {coder: {**sheet, "codes": given.tolist()} for coder, given in (("ann", ann), ("bob", bob))}
    found = code_rationales(responses, sheets, exclude=["vague"])
    has = {coder: np.array(["T" in text.split(";") for text in given]) for coder, given in (("ann", ann), ("bob", bob))}
    kept = (ann != "vague") & (bob != "vague")
    here = kept & (np.array(sheet["condition"]) == "SHED")
    for coder, marks in (*has.items(), ("both", has["ann"] & has["bob"])):
        own = [one for one in found.shares if (one.condition, one.code, one.coder) == ("SHED", "T", coder)]
        assert [one.method for one in own] == ["published", "clustered"]
        assert all(one.value == pytest.approx(marks[here].mean()) for one in own)
        assert all(one.n == here.sum() for one in own)
    values = {(one.code, one.statistic): one.value for one in found.agreement}
    assert values["T", "kappa"] == pytest.approx(cohen(has["ann"], has["bob"]))
    assert values["T", "pabak"] == pytest.approx(2 * (has["ann"] == has["bob"]).mean() - 1)
    assert values["(all)", "kappa"] == pytest.approx(cohen(ann, bob))
    assert {one.code for one in found.shares} == {"A", "T"}
    assert [(one.n, one.reason.text) for one in found.left_out] == [(int((~kept).sum()), "coded vague")]


def test_what_only_one_coder_did_is_left_out(responses: Responses) -> None:
    sheet = rationale_sheet(responses)
    half = {name: values[: len(values) // 2] for name, values in sheet.items()}
    found = code_rationales(responses, {"ann": coded(sheet, lambda n, _: "T"), "bob": coded(half, lambda n, _: "T")})
    left_out = [(one.n, one.reason.text) for one in found.left_out]
    assert left_out == [(len(sheet["id"]) - len(half["id"]), "not coded by both coders")]
    kappa = next(one for one in found.agreement if one.statistic == "kappa")
    assert kappa.value is None
    assert kappa.status.text == "undefined: all ratings are in one class"
    assert next(one for one in found.agreement if one.statistic == "pabak").value == 1


@pytest.mark.parametrize(
    ("make", "options", "error", "message"),
    [
        (lambda sheet: {"ann": sheet}, {}, ConfigError, "two coders by name; got 1"),
        (lambda sheet: {"ann": sheet, "bob": sheet}, {}, DataError, "no rationale was coded by both"),
        (lambda sheet: {"ann": {"id": sheet["id"]}, "bob": sheet}, {}, DataError, "of 'ann' has no column 'codes'"),
        (
            lambda sheet: {"ann": {**sheet, "id": ["x", *sheet["id"][1:]]}, "bob": sheet},
            {},
            DataError,
            "an id 'x' that",
        ),
        (
            lambda sheet: {"ann": {**sheet, "id": [sheet["id"][1], *sheet["id"][1:]]}, "bob": sheet},
            {},
            DataError,
            "more than once",
        ),
        (
            lambda sheet: {"ann": coded(sheet, lambda n, _: "Tr"), "bob": coded(sheet, lambda n, _: "T")},
            {"codes": ["T", "A"]},
            DataError,
            "'ann' used a code 'Tr'; did you mean 'T'",
        ),
        (lambda sheet: {"ann": sheet, "bob": sheet}, {"source": "reasons"}, ConfigError, "did you mean 'reason'"),
        (lambda sheet: {"ann": sheet, "bob": sheet}, {"source": "factor_text"}, DataError, "no column 'factor_text'"),
    ],
)
def test_wrong_sheets_are_told(
    responses: Responses, make: Any, options: dict[str, Any], error: Any, message: str
) -> None:
    with pytest.raises(error, match=message):
        code_rationales(responses, make(rationale_sheet(responses)), **options)
