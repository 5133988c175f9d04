"""Bounds from agree/disagree feedback: published against sharp.

First, random systems of 2 to 10 labels: whether the bounds of a rate contain the true rate (sharp bounds always do),
beside the published bounds. Second, the 95 % interval of a pooled gap when critics share cases, for three possible true
values: the true gap of the population, and the two bounds implied by its answers; the line reports the value with the
lowest coverage. Beside it are Imbens and Manski's interval for the two bounds alone, and our interval when only critics
are resampled although the cases are also a sample.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from benchmarks.coverage._lines import Book, Line
from evenhand.stats.feedback import (
    INDEFINITE,
    Answers,
    Feedback,
    FeedbackKind,
    FeedbackMetric,
    gap,
    gap_intervals,
    rates,
    set_interval,
)
from evenhand.stats.types import FloatArray

MEASURED = ("stats/feedback",)

CONFIDENT = 1e-12


def systems(samples: int, rng: Generator, *, labels: int) -> list[Line]:
    """Return a line per metric for pairs of groups with random labels of system and critic."""
    joint = rng.dirichlet(np.ones(labels**2), (samples, 2)).reshape(samples, 2, labels, labels)
    feedback, label = Feedback(labels), Feedback(labels, "label")
    masses = feedback.answers_of(joint)
    lines = []
    for metric in INDEFINITE:
        truth, true_gap = rates(joint, label, metric).lower, gap(joint, label, metric).estimate
        holds, width, error = {}, {}, {}
        for bounds in ("sharp", "published"):
            each: Any = {"bounds": bounds}
            found, apart = rates(masses, feedback, metric, **each), gap(masses, feedback, metric, **each)
            outside = (truth < found.lower - CONFIDENT) | (truth > found.upper + CONFIDENT)
            holds[bounds] = 1.0 - outside.reshape(samples, -1).mean(axis=1)
            width[bounds] = float((found.upper - found.lower).mean())
            error[bounds] = float(np.abs(apart.estimate - true_gap).mean())
        gained = "; ".join(
            f"{name} {own['sharp']:.3f} against {own['published']:.3f}"
            for name, own in (("mean width", width), ("mean error of the gap", error))
        )
        who = f"random systems of {labels} labels ({gained})"
        line = Line(what=f"{metric}: bounds of a rate", population=who, kind="interval", nominal=1.0)
        lines.append(line.seen(holds["sharp"]).held_against({"published": holds["published"]}))
    return lines


class Design(NamedTuple):
    """A population: numbers of labels, cases and critics, the kind of answers, and the critics' bias by group."""

    labels: int
    kind: FeedbackKind
    bias: tuple[float, ...]
    metrics: tuple[FeedbackMetric, ...]
    cases: int = 200
    critics: int = 60


DESIGNS = [
    Design(2, "agreement", (0.0, 0.0), ("calibration", "equal_opportunity")),
    Design(2, "agreement", (0.0, 0.6), ("calibration", "equal_opportunity")),
    Design(2, "agreement", (0.0, 0.3, -0.3), ("calibration", "equal_opportunity")),
    Design(4, "agreement", (0.0, 0.0), ("calibration", "accuracy_equality")),
    Design(3, "agreement", (0.0, 0.8), ("equal_opportunity", "predictive_equality")),
    Design(3, "direction", (0.0, 0.8), ("equal_opportunity", "predictive_equality")),
    Design(2, "agreement", (0.0, 0.2), ("calibration", "equal_opportunity"), cases=3_000, critics=3_000),
    Design(4, "agreement", (0.0, 0.0), ("calibration", "accuracy_equality"), cases=3_000, critics=3_000),
]
METHODS = ("ours", "Imbens and Manski", "critics alone drawn")
EACH = 20
SYSTEM, NATURE, IMPRESSION, NOISE = 0.5, 0.3, 0.3, 0.5
"""Noise of the system; spread of critics' natures, of the impressions that cases make on all, and of single answers."""


def cuts(labels: int) -> FloatArray:
    """Return the quality cut-offs between neighbouring labels."""
    return np.linspace(-0.7, 0.7, labels - 1) if labels > 2 else np.array([0.3])


def population(design: Design) -> FloatArray:
    """Return the joint shares (groups, K, K) of the system's and the critic's label, by integration over quality."""
    from scipy.special import ndtr

    node, weight = np.polynomial.hermite_e.hermegauss(160)
    edges = np.array([-np.inf, *cuts(design.labels), np.inf])
    system = np.diff(ndtr((edges - node[:, np.newaxis]) / SYSTEM), axis=1)
    spread = np.sqrt(NATURE**2 + IMPRESSION**2 + NOISE**2)
    joint = []
    for bias in design.bias:
        critic = np.diff(ndtr((edges - node[:, np.newaxis] - bias) / spread), axis=1)
        joint.append(np.einsum("z,zl,zk->lk", weight / weight.sum(), system, critic))
    return np.array(joint)


def sample(design: Design, rng: Generator) -> Answers:
    """Return random answers of critics; cases are assigned to critics in turn."""
    edges = cuts(design.labels)
    group, quality = rng.integers(0, len(design.bias), design.cases), rng.standard_normal(design.cases)
    label = np.searchsorted(edges, quality + SYSTEM * rng.standard_normal(design.cases))
    view = quality + IMPRESSION * rng.standard_normal(design.cases) + np.array(design.bias)[group]
    critic = np.repeat(np.arange(design.critics), EACH)
    case = rng.permutation(design.cases)[np.arange(critic.size) % design.cases]
    noise = NATURE * rng.standard_normal(design.critics)[critic] + NOISE * rng.standard_normal(critic.size)
    step = np.searchsorted(edges, view[case] + noise) - label[case]
    answer = (step != 0).astype(np.int64) if design.kind == "agreement" else np.sign(-step) % 3
    return Answers(
        critic=critic,
        case=case,
        answer=answer,
        group=group,
        label=label,
        groups=len(design.bias),
        critics=design.critics,
        feedback=Feedback(design.labels, design.kind),
    )


def pooled_gaps(samples: int, rng: Generator, *, design: Design) -> list[Line]:
    """Return a line per metric with the lowest coverage among the true gap and the two bounds."""
    joint, feedback = population(design), Feedback(design.labels, design.kind)
    limits = np.empty((samples, len(METHODS), len(design.metrics), 2))
    for i in range(samples):
        answers = sample(design, rng)
        both = gap_intervals(answers, design.metrics, rng=rng, draws=200)
        critics = gap_intervals(answers, design.metrics, rng=rng, draws=200, resampled="critics")
        for n, metric in enumerate(design.metrics):
            estimates = both[metric].gap.lower, both[metric].gap.upper, *both[metric].stderr
            plain = set_interval(*(float(x) for x in estimates), method="imbens_manski")
            limits[i, :, n] = [(found.low, found.high) for found in (both[metric], plain, critics[metric])]
    bias = ", ".join(f"{b:g}" for b in design.bias)
    who = f"{design.labels} labels, answers of {design.kind}, groups off by {bias}; {design.cases} cases, "
    who += f"{design.critics} critics"
    lines = []
    for n, metric in enumerate(design.metrics):
        truth = float(gap(joint, Feedback(design.labels, "label"), metric).estimate)
        ends = gap(feedback.answers_of(joint), feedback, metric)
        values = np.array([truth, float(ends.lower), float(ends.upper)])[:, np.newaxis]
        ends_of = (limits[:, m, n].T for m in range(len(METHODS)))
        covered = [(low <= values + 1e-9) & (values - 1e-9 <= high) for low, high in ends_of]
        least = [each[int(each.mean(axis=1).argmin())] for each in covered]
        line = Line(what=f"{metric}: gap that critics see", population=who, kind="interval", nominal=0.95)
        lines.append(line.seen(least[0]).held_against(dict(zip(METHODS[1:], least[1:], strict=True))))
    return lines


def promises(book: Book) -> None:
    """Declare the lines of random systems and of samples of critics and cases."""
    for labels in (2, 3, 5, 10):
        book.several(f"random systems, {labels} labels", partial(systems, labels=labels), samples=200)
    for design in DESIGNS:
        size = "" if design.cases == 200 else f", {design.cases} cases"  # more answers than are drawn again one by one
        book.several(
            f"pooled, {design.labels} labels, {design.kind}, {design.bias}{size}",
            partial(pooled_gaps, design=design),
            samples=200,
        )
