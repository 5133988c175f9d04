"""Which groups are compared, with whom, and who is left out and why."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.core.groups import _compared, largest_first, ranks_of_groups, reference_of, require_reference
from evenhand.core.records import OVERALL
from evenhand.errors import ConfigError, DataError
from evenhand.stats.types import IntArray
from evenhand.table.cells import Cells
from evenhand.table.roles import MISSING

LABELS = ("a", "b", MISSING, "c", "d")
CODE = np.repeat(np.arange(5), [3, 5, 9, 2, 4])


def test_groups_large_enough_are_compared_with_the_largest_and_the_rest_is_listed() -> None:
    found = _compared("sex", (CODE, LABELS), [CODE], None, 3)
    assert (found.name, found.groups, found.sizes) == ("sex", ("b", "d", "a"), (5, 4, 3))
    assert (found.reference, found.others) == (0, (1, 2))
    assert np.bincount(found.code + 1).tolist() == [11, 5, 4, 3]  # nine without a group and two of c are in none
    assert found.code[:3].tolist() == [2, 2, 2]
    assert found.code[-4:].tolist() == [1, 1, 1, 1]
    assert [(one.group, one.n, one.reason.text) for one in found.left_out] == [
        (MISSING, 9, "group not known; not compared"),
        ("c", 2, "fewer than 3 people; not compared"),
    ]


def test_a_group_that_was_asked_for_is_the_reference() -> None:
    found = _compared("sex", (CODE, LABELS), [CODE], "d", 3)
    assert (found.reference, found.others) == (1, (0, 2))
    with pytest.raises(ConfigError, match="'c' of 'sex' has 2 people, fewer than min_count 3; name a larger group"):
        _compared("sex", (CODE, LABELS), [CODE], "c", 3)
    nobody = _compared("sex", (CODE, LABELS), [CODE], None, 10)
    assert (nobody.groups, nobody.reference, set(nobody.code.tolist())) == ((), -1, {-1})


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_groups_depends_on_neither_their_numbers_nor_the_order_of_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    code = np.repeat(np.arange(6), [4, 4, 4, 3, 3, 5])
    score, yes = rng.choice([0.1, 0.2, np.nan], code.size), rng.random(code.size) < 0.5
    order = largest_first(np.bincount(code), code, [score, yes])
    assert np.bincount(code)[order].tolist() == [5, 4, 4, 4, 3, 3]
    number, rows = rng.permutation(6), rng.permutation(code.size)
    renumbered = number[code][rows]
    again = largest_first(np.bincount(renumbered), renumbered, [score[rows], yes[rows]])
    assert again.tolist() == number[order].tolist()


def test_ranks_of_groups_depend_on_no_name() -> None:
    rng = np.random.default_rng(2)
    score = rng.random(40)
    codes: dict[str, IntArray] = {"sex": np.arange(40) % 2, "age": np.arange(40) // 20}

    def ranks(columns: dict[str, IntArray]) -> list[list[int]]:
        labels: dict[str, tuple[str, ...]] = dict.fromkeys(columns, ("a", "b"))
        found = ranks_of_groups(Cells(columns, labels, np.ones(40, dtype=np.int64)), [score])
        return [each.tolist() for each in found]

    assert ranks({name: 1 - code for name, code in codes.items()}) == ranks(codes)


def test_a_reference_is_a_label_or_its_bare_value_of_any_or_of_one_grouping() -> None:
    labels = {"sex": ("F", "M"), "black": ("black = 0", "black = 1")}
    assert reference_of(None, "sex", labels["sex"]) is None
    assert reference_of("1", "black", labels["black"]) == "black = 1"
    assert reference_of({"black": "0"}, "sex", labels["sex"]) is None
    assert reference_of({"black": "0"}, "black", labels["black"]) == "black = 0"
    for known in (None, "F", "1", {"sex": "M"}, {"sex": "F", "black": "0"}):
        require_reference(labels, known)


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("X", r"`reference` 'X' is not a group; "),
        ({"sexx": "F"}, r"`reference` names the grouping 'sexx'; did you mean 'sex'\?"),
        ({"sex": "Mm"}, r"`reference` 'Mm' is not a group of 'sex'; did you mean 'M'\?"),
    ],
)
def test_a_reference_that_is_not_in_the_data_is_named(reference: dict[str, str] | str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        require_reference({"sex": ("F", "M"), "age": ("old",)}, reference)


def test_no_group_may_have_our_name_for_everybody() -> None:
    with pytest.raises(DataError, match="our name for everybody: rename it"):
        require_reference({"sex": ("F", OVERALL)}, None)
