"""What people see is a function of the study, the condition and the place; and it is balanced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.study.flow.design import Design, sets_of_place

Make = Callable[..., Design]


def test_a_person_of_an_effort_study_sees_four_pairs_of_each_of_three_sets(effort: Make) -> None:
    design = effort()
    plan = design.plan("income", 4)
    pairs = [step for step in plan.steps if step.kind == "pair"]
    assert len(pairs) == 12
    assert len({step.key for step in plan.steps}) == len(plan.steps)
    assert [step.position for step in pairs] == [1] * 4 + [2] * 4 + [3] * 4
    for position in (1, 2, 3):
        assert {step.subject for step in pairs if step.position == position} == set("ABCD")
        assert len({step.item for step in pairs if step.position == position}) == 1


def test_a_plan_is_the_same_after_a_restart_and_differs_between_people(effort: Make) -> None:
    before = [effort().plan("income", place) for place in range(8)]
    after = [effort().plan("income", place) for place in range(8)]
    assert before == after
    assert len({plan.steps for plan in before}) == 8
    assert effort().plan("arrests", 0).steps != before[0].steps


def test_every_set_and_every_order_of_roles_is_shown_equally_often(effort: Make) -> None:
    design = effort()
    plans = [design.plan("income", place) for place in range(400)]
    shown = Counter(step.item for plan in plans for step in plan.steps if step.subject == "A")
    assert set(shown.values()) == {400 * 3 // 5}
    firsts = Counter(
        next(step.subject for step in plan.steps if step.position == position)
        for plan in plans
        for position in (1, 2, 3)
    )
    assert all(abs(times - 300) < 60 for times in firsts.values()), firsts


@given(pool=st.integers(1, 20), data=st.data())
def test_sets_are_balanced_over_every_block_of_places(pool: int, data: st.DataObject) -> None:
    wanted = data.draw(st.integers(1, pool))
    block = data.draw(st.integers(0, 3))
    seen = [sets_of_place(pool, wanted, block * pool + person, [7]) for person in range(pool)]
    assert all(len(set(one)) == wanted for one in seen)
    assert Counter(item for one in seen for item in one) == dict.fromkeys(range(pool), wanted)


def test_checks_come_after_the_item_they_name(effort: Make) -> None:
    design = effort(**{"after = 1": "after = 0", "after = 3": "after = 2"})
    kinds = [(step.kind, step.position, step.check) for step in design.plan("income", 0).steps]
    assert kinds[:3] == [("practice", None, None), ("check", None, 1), ("pair", 1, None)]
    assert kinds[kinds.index(("check", None, 2)) - 1 :][:4] == [
        ("pair", 2, None),
        ("check", None, 2),
        ("check", None, 3),
        ("pair", 3, None),
    ]
    last = effort().plan("income", 0).steps[-1]
    assert (last.kind, last.check) == ("check", 3)


def test_critics_see_their_cases_and_practise_on_another(feedback: Make) -> None:
    design = feedback()
    assert design.places == 12
    for place in range(12):
        plan = design.plan("", place)
        cases = [step.item for step in plan.steps if step.kind == "case"]
        assert tuple(cases) == design.critics[place]
        assert plan.steps[0].kind == "practice"
        assert design.practice_case(place) not in cases


def test_no_practice_where_every_case_is_seen(feedback: Make) -> None:
    design = feedback(cases=10)
    assert design.plan("", 0).steps[0].kind == "case"


def test_instructions_and_practice_can_be_set(effort: Make) -> None:
    with_text = effort(**{"sets_per_person = 3": 'sets_per_person = 3\ninstructions = "Read."'})
    assert with_text.plan("income", 0).steps[0].key == "instructions"
    without = effort(**{"sets_per_person = 3": "sets_per_person = 3\npractice = false"})
    assert without.plan("income", 0).steps[0].kind == "pair"


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"failed_checks = 2": "failed_checks = 1"}, True),
        ({"Thank you. Your answers were saved.": "Bye."}, True),
        ({"seed = 0": "seed = 1"}, False),
        ({"annual income": "yearly income"}, False),
        ({"sets_per_person = 3": "sets_per_person = 4"}, False),
    ],
)
def test_the_fingerprint_is_of_what_people_are_asked(change: dict[str, str], same: bool, effort: Make) -> None:
    assert (effort().fingerprint == effort(**change).fingerprint) is same


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"Thank you. Your answers were saved.": "Bye."}, []),
        ({"seed = 0": "seed = 1"}, ["seed"]),
        ({"annual income": "yearly income", "after = 3": "after = 2"}, ["conditions.income", "attention"]),
        ({"[payment]": "[questions]\noverall = 'Alike?'\n[payment]"}, ["questions.overall"]),
    ],
)
def test_the_parts_tell_what_changed(change: dict[str, str], parts: list[str], effort: Make) -> None:
    before, after = effort().parts, effort(**change).parts
    assert [name for name in before if before[name] != after[name]] == parts


def test_the_parts_tell_of_the_dealing_and_of_the_cases(feedback: Make) -> None:
    before = feedback().parts
    after = feedback(cases=44, **{"seed = 0": "seed = 0", "per_case = 20": "per_case = 2"}).parts
    assert [name for name in before if before[name] != after[name]] == [
        "disagreement.assignment",
        "the file of the cases",
    ]
