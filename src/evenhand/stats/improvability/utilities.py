"""Utilities of decisions as ratios of group sums of u and w, and selection up to a capacity.

The value of an algorithm for group g is U_g = sum u / sum w over the rows of g, with u and w functions of a row's
outcome and decision. Accuracy and fairness are computed from such values, possibly of different utilities.

Reference: E. Auerbach, A. Liang, M. Tabord-Meehan and K. Okumura (2024), Testing the fairness-improvability of
algorithms, section 2.1, examples 1 to 4.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from evenhand.errors import ConfigError, DataError, count, did_you_mean, problem
from evenhand.messages import Message
from evenhand.stats.types import BoolArray, FloatArray, IntArray

Term = Callable[..., ArrayLike]
"""term(outcome, decision), or term(outcome, decision, columns) -> one number per row."""

Better = Literal["higher", "lower"]


@dataclass(frozen=True)
class Utility:
    """A utility: functions u and w of outcome and decision, and whether higher values are better.

    Attributes
    ----------
    name
        The utility's name in reports.
    u, w
        Functions `(outcome, decision) -> one number per row`; the value of a group is sum u / sum w. They must return
        nan for a row with a missing (nan) outcome, unless the outcome does not matter there.
    better
        Whether accuracy rises ("higher") or falls ("lower", as for an error rate) with the value. Fairness compares
        values between groups, and does not use it.
    binary
        Which of "outcome" and "decision" must be 0 or 1.
    columns
        Names of further columns that u and w depend on; u and w then take a mapping of these columns as a third
        argument: u(y, d, x).
    of_predictions
        Whether the decision is a numeric prediction of the outcome, such as a salary.

    Examples
    --------
    >>> lives = Utility("life years", lambda y, d: y * d, lambda y, d: np.ones_like(d))
    >>> lives.terms([2.0, 5.0], [1, 0])
    (array([2., 0.]), array([1., 1.]))
    """

    name: str
    u: Term
    w: Term
    better: Better = "higher"
    binary: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    of_predictions: bool = False

    def terms(
        self, outcome: ArrayLike, decision: ArrayLike, columns: Mapping[str, FloatArray] | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return u and w of each row.

        Parameters
        ----------
        outcome
            (n,) outcomes; nan if unknown.
        decision
            (n,) decisions.
        columns
            The columns that the utility names; other columns are ignored.
        """
        y, d = np.asarray(outcome, dtype=np.float64), np.asarray(decision, dtype=np.float64)
        if y.ndim != 1 or y.shape != d.shape:
            raise DataError(
                "outcome and decision must have one value per row; got shapes {outcome} and {decision}.",
                outcome=str(y.shape),
                decision=str(d.shape),
            )
        if np.isnan(d).any():
            raise DataError("row {row} has no decision; leave such rows out.", row=int(np.flatnonzero(np.isnan(d))[0]))
        for role, values in (("outcome", y), ("decision", d)):
            if role in self.binary:
                self._check_binary(role, values)
        more = ({name: (columns or {})[name] for name in self.columns},) if self.columns else ()
        u, w = (self._column(name, term, y, d, *more) for name, term in (("u", self.u), ("w", self.w)))
        bad = ~(np.isfinite(u) & np.isfinite(w))
        if bad.any():
            raise DataError(self._why_undefined(bad, y))
        return u, w

    def _column(
        self, name: str, term: Term, y: FloatArray, d: FloatArray, *more: Mapping[str, FloatArray]
    ) -> FloatArray:
        try:
            values = np.asarray(term(y, d, *more), dtype=np.float64)
        except Exception as error:  # the user's function may raise anything
            reason = str(error).strip() or type(error).__name__
            raise ConfigError(
                "`{term}` of the utility '{utility}' gives no numbers: {reason}",
                term=name,
                utility=self.name,
                reason=reason,
            ) from error
        if values.shape not in (y.shape, ()):
            raise ConfigError(
                "`{term}` of the utility '{utility}' must return one number per row, {rows} here; got shape {shape}.",
                term=name,
                utility=self.name,
                rows=y.size,
                shape=str(values.shape),
            )
        return np.broadcast_to(values, y.shape).copy()

    def _check_binary(self, role: str, values: FloatArray) -> None:
        odd = ~np.isin(values, (0.0, 1.0)) & ~np.isnan(values)
        if odd.any():
            raise DataError(
                "the utility '{utility}' needs a {role} of 0 or 1; row {row} holds {value:g}.",
                utility=self.name,
                role=role,
                row=int(np.flatnonzero(odd)[0]),
                value=float(values[odd][0]),
            )

    def _why_undefined(self, bad: BoolArray, y: FloatArray) -> Message:
        unknown = bad & np.isnan(y)
        if unknown.any():
            return problem(
                "the utility '{utility}' needs the outcome of {rows} where it is missing, first row {first}; leave "
                "these rows out, or find their outcomes.",
                utility=self.name,
                rows=count(int(unknown.sum()), "row"),
                first=int(np.flatnonzero(unknown)[0]),
            )
        return problem(
            "the utility '{utility}' is not a finite number in row {row}; check its functions.",
            utility=self.name,
            row=int(np.flatnonzero(bad)[0]),
        )


def _nan_if_unknown(y: FloatArray, values: ArrayLike) -> FloatArray:
    return np.where(np.isnan(y), np.nan, values)


# Named functions, not lambdas: utilities are pickled for the processes that fit the splits.
def _right(y: FloatArray, d: FloatArray) -> FloatArray:
    return _nan_if_unknown(y, y == d)


def _each_row(_: FloatArray, d: FloatArray) -> FloatArray:
    return np.ones_like(d)


def _outcome_if_selected(y: FloatArray, d: FloatArray) -> FloatArray:
    return np.where(d == 1, y, 0.0)


def _selected(_: FloatArray, d: FloatArray) -> BoolArray:
    return np.asarray(d == 1)


def _outcome_if_not_selected(y: FloatArray, d: FloatArray) -> FloatArray:
    return np.where(d == 0, y, 0.0)


def _not_selected(_: FloatArray, d: FloatArray) -> BoolArray:
    return np.asarray(d == 0)


def _false_positive(y: FloatArray, d: FloatArray) -> BoolArray:
    return np.asarray((y == 0) & (d == 1))


def _negative(y: FloatArray, _: FloatArray) -> FloatArray:
    return _nan_if_unknown(y, y == 0)


def _false_negative(y: FloatArray, d: FloatArray) -> BoolArray:
    return np.asarray((y == 1) & (d == 0))


def _positive(y: FloatArray, _: FloatArray) -> FloatArray:
    return _nan_if_unknown(y, y == 1)


def _price_if_paid(y: FloatArray, d: FloatArray) -> FloatArray:
    return _nan_if_unknown(y, np.where(y >= d, d, 0.0))


def _absolute_error(y: FloatArray, d: FloatArray) -> FloatArray:
    return np.abs(y - d)


def _squared_error(y: FloatArray, d: FloatArray) -> FloatArray:
    return (y - d) ** 2


_BOTH = ("outcome", "decision")
UTILITIES: Mapping[str, Utility] = {
    utility.name: utility
    for utility in (
        Utility(name="classification", u=_right, w=_each_row),
        Utility(name="calibration", u=_outcome_if_selected, w=_selected, binary=("decision",)),
        Utility(
            name="mirrored_calibration",
            u=_outcome_if_not_selected,
            w=_not_selected,
            better="lower",
            binary=("decision",),
        ),
        Utility(name="false_positive_rate", u=_false_positive, w=_negative, better="lower", binary=_BOTH),
        Utility(name="false_negative_rate", u=_false_negative, w=_positive, better="lower", binary=_BOTH),
        Utility(name="profit", u=_price_if_paid, w=_each_row),
        Utility(name="absolute_error", u=_absolute_error, w=_each_row, better="lower", of_predictions=True),
        Utility(name="squared_error", u=_squared_error, w=_each_row, better="lower", of_predictions=True),
    )
}
"""The built-in utilities by name.

classification: u = [y = d], w = 1, the share of right decisions. calibration: u = y [d = 1], w = [d = 1], the mean
outcome of the selected; mirrored_calibration: u = y [d = 0], w = [d = 0], that of the others, better if lower (both
together are the property called calibration, footnote 7 of the reference). false_positive_rate: u = [y = 0, d = 1], w =
[y = 0]; false_negative_rate: u = [y = 1, d = 0], w = [y = 1]; lower is better for both. profit: u = d [y >= d], w = 1,
the price paid by those whose willingness to pay reaches it. absolute_error: u = abs(y - d), w = 1, and squared_error:
u = (y - d)², w = 1, of a predicted number d; lower is better.
"""


def get_utility(utility: str | Utility) -> Utility:
    """Return a built-in utility by its name, or a custom utility unchanged.

    Examples
    --------
    >>> get_utility("calibration").better
    'higher'
    >>> get_utility("acuracy")
    Traceback (most recent call last):
    evenhand.errors.ConfigError: there is no utility 'acuracy'; known names: 'classification', 'calibration', \
'mirrored_calibration', 'false_positive_rate', 'false_negative_rate', 'profit', 'absolute_error', 'squared_error'
    """
    if isinstance(utility, Utility):
        return utility
    if utility not in UTILITIES:
        raise ConfigError(
            "there is no utility {utility!r}; {hint}", utility=utility, hint=did_you_mean(utility, UTILITIES)
        )
    return UTILITIES[utility]


_OPERATIONS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
    ast.USub: np.negative,
    ast.Not: np.logical_not,
    ast.And: np.logical_and,
    ast.Or: np.logical_or,
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {"min": np.minimum, "max": np.maximum, "abs": np.abs}
_OWN_NAMES = ("outcome", "decision")


@dataclass(frozen=True)
class Formula:
    """A formula for u or w, such as ``(outcome >= decision) * (decision - cost)``.

    It may contain numbers, columns, ``outcome``, ``decision``, the signs ``+ - * / **``, comparisons, ``and``, ``or``,
    ``not``, ``min`` and ``max``. Nothing else is evaluated, so that a settings file cannot run code.

    Examples
    --------
    >>> paid = Formula("(outcome >= decision) * (decision - cost)")
    >>> paid.columns, paid(np.array([5.0, 1.0]), np.array([3.0, 3.0]), {"cost": np.array([1.0, 1.0])})
    (('cost',), array([2., 0.]))
    >>> Formula("open('secret')")
    Traceback (most recent call last):
    evenhand.errors.ConfigError: the formula "open('secret')" contains 'open(...)'; a formula may have numbers, names \
of columns, `outcome`, `decision`, + - * / **, comparisons, and, or, not, min, max and abs.
    """

    text: str

    def __post_init__(self) -> None:
        for node in ast.walk(self._tree):
            allowed = isinstance(node, (*_OPERATIONS, ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare))
            allowed |= isinstance(node, ast.Name | ast.Load)
            allowed |= isinstance(node, ast.Constant) and isinstance(node.value, int | float)
            allowed |= isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS
            if not allowed or (isinstance(node, ast.Call) and node.keywords):
                shown = f"{node.func.id}(...)" if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
                self._refuse(shown or ast.unparse(node) or type(node).__name__)

    @property
    def _tree(self) -> ast.Expression:
        try:
            return ast.parse(self.text.strip(), mode="eval")
        except (SyntaxError, ValueError):
            self._refuse(self.text)

    def _refuse(self, part: str) -> NoReturn:
        raise ConfigError(
            'the formula "{text}" contains {part!r}; a formula may have numbers, names of columns, `outcome`, '
            "`decision`, + - * / **, comparisons, and, or, not, min, max and abs.",
            text=self.text,
            part=part,
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns in the formula."""
        names = [node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)]
        return tuple(name for name in dict.fromkeys(names) if name not in (*_OWN_NAMES, *_FUNCTIONS))

    def __call__(
        self, outcome: FloatArray, decision: FloatArray, columns: Mapping[str, FloatArray] | None = None
    ) -> Any:
        """Return the value of the formula for each row."""
        names = {"outcome": outcome, "decision": decision, **(columns or {})}
        value = np.asarray(_evaluated(self._tree.body, names), dtype=np.float64)
        unknown = (
            np.isnan(outcome)
            if any(isinstance(n, ast.Name) and n.id == "outcome" for n in ast.walk(self._tree))
            else False
        )
        return np.where(unknown, np.nan, value)  # a comparison with nan is false, not unknown


def _evaluated(node: ast.expr, names: Mapping[str, FloatArray]) -> Any:
    def evaluate(part: ast.expr) -> Any:
        return _evaluated(part, names)

    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return names[name]
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATIONS[type(op)](*(np.asarray(evaluate(part), dtype=np.float64) for part in (left, right)))
        case ast.UnaryOp(op=op, operand=operand):
            return _OPERATIONS[type(op)](np.asarray(evaluate(operand), dtype=np.float64))
        case ast.BoolOp(op=op, values=values):
            return reduce(_OPERATIONS[type(op)], [evaluate(value) for value in values])
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            sides = [evaluate(left), *map(evaluate, comparators)]
            return reduce(
                np.logical_and, [_OPERATIONS[type(op)](*pair) for op, pair in zip(ops, pairwise(sides), strict=True)]
            )
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return (
                reduce(_FUNCTIONS[name], map(evaluate, arguments))
                if len(arguments) > 1
                else np.abs(evaluate(arguments[0]))
            )
    raise AssertionError(node)  # validated when the formula was made


def formula_utility(name: str, u: str, w: str = "1", better: Better = "higher") -> Utility:
    """Return a utility whose u and w are formulas.

    Examples
    --------
    >>> net = formula_utility("net value", "(outcome >= decision) * (decision - cost)")
    >>> net.columns, net.terms([5.0], [3.0], {"cost": np.array([1.0])})
    (('cost',), (array([2.]), array([1.])))
    """
    terms = Formula(u), Formula(w)
    columns = tuple(dict.fromkeys(column for term in terms for column in term.columns))
    return Utility(name, *terms, better=better, columns=columns)


def group_values(u: FloatArray, w: FloatArray, group: IntArray, groups: int) -> FloatArray:
    """Return U_g = sum u / sum w for each group; nan if sum w is 0.

    Parameters
    ----------
    u, w
        (n,) the terms of each row.
    group
        (n,) the group of each row, 0 to groups - 1.
    groups
        The number of groups.

    Examples
    --------
    >>> u, w = get_utility("calibration").terms([4.0, 6.0, 1.0], [1, 1, 0])
    >>> group_values(u, w, np.array([0, 0, 1]), 2)
    array([ 5., nan])
    """
    return ratios(np.stack([np.bincount(group, weights=term, minlength=groups) for term in (u, w)], axis=-1))


def ratios(sums: FloatArray) -> FloatArray:
    """Return the ratio of the two sums on the last axis; nan if the second is 0.

    Examples
    --------
    >>> ratios(np.array([[3.0, 2.0], [0.0, 0.0]]))
    array([1.5, nan])
    """
    with np.errstate(all="ignore"):
        return np.where(sums[..., 1] == 0, np.nan, sums[..., 0] / sums[..., 1])


@dataclass(frozen=True, eq=False)
class Selection:
    """The selected rows, and the number of ties broken at random.

    Attributes
    ----------
    selected
        (n,) mask of the selected rows.
    cut
        The lowest selected score.
    tied
        The number of rows with the lowest selected score.
    tied_selected
        The number of tied rows selected at random; fewer than `tied` if the capacity splits the tie.
    """

    selected: BoolArray
    cut: float
    tied: int
    tied_selected: int


def select_top(score: ArrayLike, capacity: float, rng: Generator) -> Selection:
    """Select the round(capacity * n) rows with the highest scores.

    Ties at the lowest selected score are broken at random with equal chances, whatever the rows' group or position in
    the table. Random numbers are drawn only if there are more tied rows than places.

    Parameters
    ----------
    score
        (n,) scores; a high score is selected.
    capacity
        The share of rows to select, above 0 and below 1.
    rng
        Source of randomness for ties.

    Examples
    --------
    >>> chosen = select_top([3, 1, 2, 2, 0], 0.4, np.random.default_rng(0))
    >>> int(chosen.selected.sum()), chosen.cut, chosen.tied, chosen.tied_selected
    (2, 2.0, 2, 1)
    """
    values = np.asarray(score, dtype=np.float64)
    if values.ndim != 1 or np.isnan(values).any():
        raise DataError("scores must be one number per row, none missing; leave rows without a score out.")
    places = capacity_count(capacity, values.size)
    cut = np.partition(values, values.size - places)[values.size - places]
    selected = values > cut
    tied = np.flatnonzero(values == cut)
    room = places - int(selected.sum())
    selected[tied if room == tied.size else rng.choice(tied, size=room, replace=False)] = True
    return Selection(selected, float(cut), tied.size, room)


def capacity_count(capacity: float, rows: int) -> int:
    """Return round(capacity * rows), with halves to even; raise if no rows or all rows would be selected.

    Examples
    --------
    >>> capacity_count(0.03, 16_099)
    483
    >>> capacity_count(0.001, 100)
    Traceback (most recent call last):
    evenhand.errors.ConfigError: a capacity of 0.001 selects nobody of 100 rows; raise it or use more rows.
    """
    if not 0.0 < capacity < 1.0:
        raise ConfigError("`capacity` must be a share above 0 and below 1; got {capacity!r}.", capacity=capacity)
    places = round(capacity * rows)
    if not 0 < places < rows:
        extreme = "nobody" if places == 0 else "everybody"
        change = "raise" if places == 0 else "lower"
        raise ConfigError(
            "a capacity of {capacity:g} selects {extreme} of {rows} rows; {change} it or use more rows.",
            capacity=capacity,
            extreme=extreme,
            rows=rows,
            change=change,
        )
    return places
