"""What critics may have meant: every allocation of small counts, programs for random masses, and crossed samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from evenhand.stats.feedback import Answers, Feedback, FeedbackMetric
from evenhand.stats.types import FloatArray

ByDefinition = Callable[[FloatArray, FeedbackMetric], FloatArray]
Allocations = Callable[[FloatArray, Feedback], FloatArray]
Program = Callable[[FloatArray, Feedback, FeedbackMetric, int, bool], float]
Sampler = Callable[..., Answers]


def _by_definition(joint: FloatArray, metric: FeedbackMetric) -> FloatArray:
    """The rates (..., K) of joint masses (..., K, K) of the system's label and the critic's; nan for 0 / 0."""
    system, critic = joint.sum(axis=-1), joint.sum(axis=-2)
    same, total = np.diagonal(joint, axis1=-2, axis2=-1), joint.sum(axis=(-2, -1))[..., np.newaxis]
    above, below = {
        "statistical_parity": (system, total),
        "calibration": (same, system),
        "accuracy_equality": (same.sum(axis=-1, keepdims=True), total),
        "equal_opportunity": (same, critic),
        "predictive_equality": (system - same, total - critic),
        "overall_misclassification": (critic - same, critic),
    }[metric]
    with np.errstate(all="ignore"):
        return np.asarray(np.where(below > 0, above / below, np.nan))


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _compositions(total - first, parts - 1):
            yield (first, *rest)


def _allocations(counts: FloatArray, feedback: Feedback) -> FloatArray:
    """All joint counts (n, K, K) that agree with whole counts (K, answers) of the answers."""
    cells = [(label, answer) for label in range(feedback.labels) for answer in range(feedback.answers)]
    meant = [np.flatnonzero(feedback.admissible[cell]) for cell in cells]
    ways = [
        list(_compositions(int(counts[cell]), len(open_))) if len(open_) else [()]
        for cell, open_ in zip(cells, meant, strict=True)
    ]
    found = []
    for way in product(*ways):
        joint = np.zeros((feedback.labels, feedback.labels))
        for (label, _), open_, split in zip(cells, meant, way, strict=True):
            joint[label, open_] += split
        found.append(joint)
    return np.array(found)


def _program(masses: FloatArray, feedback: Feedback, metric: FeedbackMetric, label: int, largest: bool) -> float:
    """The largest or smallest rate of a label by a linear-fractional program, after Charnes and Cooper.

    The unknowns are the masses v of (system's label, answer, critic's label) that the answers admit, times s > 0, with
    s chosen such that the denominator of the rate is 1.
    """
    known = [tuple(cell) for cell in np.argwhere(feedback.admissible)]
    above, below = np.zeros(len(known) + 1), np.zeros(len(known) + 1)
    for i, (system, _, critic) in enumerate(known):
        if metric == "calibration":
            above[i], below[i] = system == critic == label, system == label
        elif metric == "accuracy_equality":
            above[i], below[i] = system == critic, 1
        elif metric == "equal_opportunity":
            above[i], below[i] = system == critic == label, critic == label
        elif metric == "overall_misclassification":
            above[i], below[i] = system != critic == label, critic == label
        else:
            above[i], below[i] = (system == label) and (critic != label), critic != label
    equal, right = [below], [1.0]
    for cell in np.ndindex(feedback.labels, feedback.answers):
        row = np.array([*(float(each[:2] == cell) for each in known), -masses[cell]])
        equal.append(row)
        right.append(0.0)
    result = linprog(-above if largest else above, A_eq=np.array(equal), b_eq=np.array(right), method="highs")
    assert result.status == 0, result.message
    assert result.fun is not None
    return float(-result.fun if largest else result.fun)


def _crossed(
    rng: np.random.Generator,
    *,
    labels: int = 2,
    bias: tuple[float, ...] = (0.0, 0.0),
    cases: int = 120,
    critics: int = 40,
    each: int = 15,
    kind: str = "agreement",
    shift: FloatArray | None = None,
) -> Answers:
    """Answers of critics who are lenient or strict, on cases that impress all of them alike."""
    cuts = np.linspace(-0.9, 0.9, labels - 1) if labels > 2 else np.array([0.2])
    group, quality = rng.integers(0, len(bias), cases), rng.standard_normal(cases)
    label = np.searchsorted(cuts, quality + 0.5 * rng.standard_normal(cases))
    impression, nature = 0.3 * rng.standard_normal(cases), 0.3 * rng.standard_normal(critics)
    critic = np.repeat(np.arange(critics), each)
    case = rng.permutation(cases)[np.arange(critic.size) % cases]
    view = (quality + impression + np.array(bias)[group])[case] + nature[critic]
    if shift is not None:
        view += shift[critic] * group[case]
    meant = np.searchsorted(cuts, view + 0.5 * rng.standard_normal(critic.size))
    step = meant - label[case]
    answer = {"agreement": (step != 0).astype(np.int64), "direction": np.sign(-step) % 3, "label": meant}[kind]
    return Answers(
        critic=critic,
        case=case,
        answer=answer,
        group=group,
        label=label,
        groups=len(bias),
        critics=critics,
        feedback=Feedback(labels, kind),  # type: ignore[arg-type]
    )


@pytest.fixture(scope="session")
def by_definition() -> ByDefinition:
    return _by_definition


@pytest.fixture(scope="session")
def allocations() -> Allocations:
    return _allocations


@pytest.fixture(scope="session")
def program() -> Program:
    return _program


@pytest.fixture(scope="session")
def crossed() -> Sampler:
    return _crossed
