"""What an answer says about the label that a critic has in mind: the set of labels that it leaves open.

The system gives label l, the critic thinks of a label z that nobody sees, and answers. Each pair of label and answer
leaves a set of labels open. That set is all that the bounds need to know, so every kind of feedback is one kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from evenhand.errors import ConfigError, DataError, require_choice
from evenhand.stats.types import BoolArray, FloatArray

FeedbackKind = Literal["agreement", "direction", "label"]
FEEDBACK_KINDS: tuple[FeedbackKind, ...] = ("agreement", "direction", "label")

AGREE, DISAGREE = 0, 1
"""The codes of the answers in agreement feedback."""
RIGHT, TOO_HIGH, TOO_LOW = 0, 1, 2
"""The codes of the answers in feedback with a direction."""


@dataclass(frozen=True)
class Feedback:
    """The kind of feedback on a system with K labels.

    Attributes
    ----------
    labels
        The number of labels K that the system may give, seen or not; numbered from 0, in order where they have one.
    kind
        'agreement': agree or disagree. 'direction': right, too high or too low, for ordered labels. 'label': the
        critic says the label itself, as in validation data; nothing is left open, and every rate is exact.
    tolerance
        A critic agrees when the two labels are at most this many steps apart; needs ordered labels.

    Examples
    --------
    >>> Feedback(3).admissible[1].astype(int)  # the system said 1: agree leaves {1} open, disagree {0, 2}
    array([[0, 1, 0],
           [1, 0, 1]])
    >>> Feedback(3, "direction").admissible[1].astype(int)  # right {1}, too high {0}, too low {2}
    array([[0, 1, 0],
           [1, 0, 0],
           [0, 0, 1]])
    """

    labels: int
    kind: FeedbackKind = "agreement"
    tolerance: int = 0

    def __post_init__(self) -> None:
        require_choice("kind", self.kind, FEEDBACK_KINDS)
        if self.labels < 2:
            raise ConfigError(
                f"`labels` must be at least 2; got {self.labels}: with one label there is nothing to disagree about."
            )
        if not 0 <= self.tolerance < self.labels - 1:
            raise ConfigError(
                f"`tolerance` must be from 0 to {self.labels - 2} steps with {self.labels} labels, or nobody could "
                f"disagree; got {self.tolerance}."
            )
        if self.tolerance and self.kind == "label":
            raise ConfigError("`tolerance` has no meaning when critics say the label itself; leave it at 0.")

    @property
    def answers(self) -> int:
        """The number of possible answers: 2, 3, or one for each label."""
        return {"agreement": 2, "direction": 3, "label": self.labels}[self.kind]

    @cached_property
    def admissible(self) -> BoolArray:
        """(K, answers, K) whether the critic's label may be z when the system gave l and the critic answered f."""
        step = np.arange(self.labels) - np.arange(self.labels)[:, np.newaxis]
        if self.kind == "label":
            return np.broadcast_to(np.eye(self.labels, dtype=np.bool_), (self.labels,) * 3).copy()
        agree = np.abs(step) <= self.tolerance
        rest = (~agree,) if self.kind == "agreement" else (step < -self.tolerance, step > self.tolerance)
        return np.stack([agree, *rest], axis=1)

    @cached_property
    def possible(self) -> BoolArray:
        """(K, answers) whether the answer can be given: nothing is too high at the lowest label."""
        return np.asarray(self.admissible.any(axis=2))

    @cached_property
    def agreeing(self) -> BoolArray:
        """(K, answers) whether the answer is the one that agrees with the system."""
        if self.kind == "label":
            return np.eye(self.labels, dtype=np.bool_)
        return np.broadcast_to(np.arange(self.answers) == AGREE, (self.labels, self.answers))

    def answers_of(self, joint: npt.ArrayLike) -> FloatArray:
        """Return the masses (..., K, answers) that critics give whose labels have the masses (..., K, K).

        Parameters
        ----------
        joint
            (..., K, K) the mass of each pair of the system's label and the critic's.

        Examples
        --------
        >>> Feedback(3, "direction").answers_of([[4, 1, 0], [2, 5, 0], [1, 1, 3]])
        array([[4., 0., 1.],
               [5., 2., 0.],
               [3., 2., 0.]])
        """
        mass = np.asarray(joint, dtype=np.float64)
        return np.asarray(np.einsum("...lz,lfz->...lf", mass, self.admissible.astype(np.float64)))

    def check(self, masses: npt.ArrayLike) -> FloatArray:
        """Return the masses as an array of floats (..., K, answers); refuse what cannot be.

        Examples
        --------
        >>> Feedback(2, "direction").check([[3, 1, 0], [2, 0, 0]])
        Traceback (most recent call last):
        evenhand.errors.DataError: answer 1 (too high) cannot be given to label 0; correct or remove such answers.
        """
        mass = np.asarray(masses, dtype=np.float64)
        if mass.shape[-2:] != (self.labels, self.answers):
            raise DataError(
                f"`masses` must have the shape (..., {self.labels} labels, {self.answers} answers); got {mass.shape}."
            )
        if not np.all(mass >= 0):
            raise DataError("`masses` must not be negative or missing; count the answers again.")
        wrong = np.argwhere((mass > 0).any(axis=tuple(range(mass.ndim - 2))) & ~self.possible)
        if wrong.size:
            label, answer = wrong[0]
            name = ("agree", "disagree") if self.kind == "agreement" else ("right", "too high", "too low")
            raise DataError(
                f"answer {answer} ({name[answer]}) cannot be given to label {label}; correct or remove such answers."
            )
        return mass
