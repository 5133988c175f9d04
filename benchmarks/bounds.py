"""Bounds from agree/disagree feedback, published against sharp: `python benchmarks/bounds.py [--quick]`.

Three tables. (1) Random systems: the share of cells whose true rate lies outside of its interval, the mean width of the
intervals, and the mean bounds of the gap between two groups. (2) Seconds to reduce and evaluate many answers.
(3) Coverage of the interval of a pooled gap at nominal 95 % when critics share cases, of three values that the truth
may have: the true gap of the population, and the two ends of what its answers leave open. `cells` is the interval that
`gap_intervals` gives, `bounds` that of Imbens and Manski for the two bounds alone, `critics` that of `cells` when only
critics are drawn again although the cases are a sample too.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from evenhand.stats.feedback import (
    INDEFINITE,
    METRICS,
    Answers,
    Feedback,
    FeedbackKind,
    FeedbackMetric,
    crossed_bootstrap,
    gap,
    gap_intervals,
    rates,
    set_interval,
)
from evenhand.stats.types import FloatArray

SYSTEMS = 300
CONFIDENT = 1e-12


def compare_bounds(labels: int) -> list[str]:
    """Return a line for each metric: 300 pairs of groups with random labels of system and critic."""
    joint = np.random.default_rng(labels).dirichlet(np.ones(labels**2), (SYSTEMS, 2))
    joint = joint.reshape(SYSTEMS, 2, labels, labels)
    feedback, label = Feedback(labels), Feedback(labels, "label")
    masses = feedback.answers_of(joint)
    lines = []
    for metric in INDEFINITE:
        truth, true_gap = rates(joint, label, metric).lower, gap(joint, label, metric).estimate
        columns = []
        for bounds in ("published", "sharp"):
            each: Any = {"bounds": bounds}
            found, apart = rates(masses, feedback, metric, **each), gap(masses, feedback, metric, **each)
            outside = (truth < found.lower - CONFIDENT) | (truth > found.upper + CONFIDENT)
            width = (found.upper - found.lower).mean()
            error = np.abs(apart.estimate - true_gap).mean()
            span = f"[{apart.lower.mean():6.3f},{apart.upper.mean():6.3f}]"
            columns.append(f"{outside.mean():>9.3f}{width:>8.3f}{span:>17}{error:>8.3f}")
        lines.append(f"{labels:>6}  {metric:27}" + "  ".join(columns) + f"{true_gap.mean():>9.3f}")
    return lines


def print_bounds() -> None:
    """Print the first table."""
    columns = f"{'outside':>9}{'width':>8}{'mean gap bounds':>17}{'error':>8}"
    print(f"{'':35}{'published':^42}  {'sharp':^42}")
    print(f"{'labels':>6}  {'metric':27}{columns}  {columns}{'true gap':>9}")
    for labels in (2, 3, 5, 10):
        print("\n".join(compare_bounds(labels)), flush=True)


def print_speed(answers: int) -> None:
    """Print the second table: five labels, four groups, 100 answers a critic."""
    rng = np.random.default_rng(0)
    critics, cases = answers // 100, answers // 10
    made = Answers(
        np.repeat(np.arange(critics), 100),
        rng.integers(0, cases, critics * 100),
        rng.integers(0, 2, critics * 100),
        rng.integers(0, 4, cases),
        rng.integers(0, 5, cases),
        4,
        critics,
        Feedback(5),
    )
    start = perf_counter()
    masses = made.masses()
    reduced = perf_counter()
    for metric in METRICS:
        rates(masses, made.feedback, metric)
        gap(masses, made.feedback, metric)
    evaluated = perf_counter()
    gap(made.by_critic(), made.feedback, "calibration")
    by_critic = perf_counter()
    crossed_bootstrap(made, lambda mass: mass.reshape(*mass.shape[:-4], -1), rng=rng, draws=100)
    resampled = perf_counter()
    print(f"\n{'answers':>12}{'critics':>10}{'cases':>12}  {'step':44}{'seconds':>8}")
    sizes = f"{critics * 100:>12,}{critics:>10,}{cases:>12,}  "
    print(f"{sizes}{'reduced to 40 masses':44}{reduced - start:>8.2f}")
    print(f"{sizes}{'rates and gaps of all metrics':44}{evaluated - reduced:>8.2f}")
    print(f"{sizes}{'gap in calibration for each critic':44}{by_critic - evaluated:>8.2f}")
    print(f"{sizes}{'100 resamples of critics and cases':44}{resampled - by_critic:>8.2f}", flush=True)


class Design(NamedTuple):
    """A population: how far the critics' view of each group is off, and how many labels and what answers there are."""

    labels: int
    kind: FeedbackKind
    bias: tuple[float, ...]
    metrics: tuple[FeedbackMetric, ...]


DESIGNS = [
    Design(2, "agreement", (0.0, 0.0), ("calibration", "equal_opportunity")),
    Design(2, "agreement", (0.0, 0.6), ("calibration", "equal_opportunity")),
    Design(2, "agreement", (0.0, 0.3, -0.3), ("calibration", "equal_opportunity")),
    Design(4, "agreement", (0.0, 0.0), ("calibration", "accuracy_equality")),
    Design(3, "agreement", (0.0, 0.8), ("equal_opportunity", "predictive_equality")),
    Design(3, "direction", (0.0, 0.8), ("equal_opportunity", "predictive_equality")),
]
METHODS = ("cells", "bounds", "critics")
CASES, CRITICS, EACH = 200, 60, 20
SYSTEM, NATURE, IMPRESSION, NOISE = 0.5, 0.3, 0.3, 0.5
"""Noise of the system; spread of critics' natures, of the impressions that cases make on all, and of single answers."""


def cuts(labels: int) -> FloatArray:
    """Return where the quality of a case passes from one label to the next."""
    return np.linspace(-0.7, 0.7, labels - 1) if labels > 2 else np.array([0.3])


def population(design: Design) -> FloatArray:
    """Return the joint shares (groups, K, K) of the system's label and the critic's, by an integral over quality."""
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


def sample(design: Design, rng: np.random.Generator) -> Answers:
    """Draw critics and cases; cases are dealt to critics in turn."""
    edges = cuts(design.labels)
    group, quality = rng.integers(0, len(design.bias), CASES), rng.standard_normal(CASES)
    label = np.searchsorted(edges, quality + SYSTEM * rng.standard_normal(CASES))
    view = quality + IMPRESSION * rng.standard_normal(CASES) + np.array(design.bias)[group]
    critic = np.repeat(np.arange(CRITICS), EACH)
    case = rng.permutation(CASES)[np.arange(critic.size) % CASES]
    noise = NATURE * rng.standard_normal(CRITICS)[critic] + NOISE * rng.standard_normal(critic.size)
    step = np.searchsorted(edges, view[case] + noise) - label[case]
    answer = (step != 0).astype(np.int64) if design.kind == "agreement" else np.sign(-step) % 3
    return Answers(critic, case, answer, group, label, len(design.bias), CRITICS, Feedback(design.labels, design.kind))


def simulate(task: tuple[int, int, int]) -> str:
    """Return the lines of one design."""
    number, samples, draws = task
    design = DESIGNS[number]
    joint, feedback = population(design), Feedback(design.labels, design.kind)
    limits = np.empty((samples, len(METHODS), len(design.metrics), 2))
    for i in range(samples):
        rng = np.random.default_rng([number, i])
        answers = sample(design, rng)
        both = gap_intervals(answers, design.metrics, rng=rng, draws=draws)
        critics = gap_intervals(answers, design.metrics, rng=rng, draws=draws, resampled="critics")
        for n, metric in enumerate(design.metrics):
            estimates = both[metric].gap.lower, both[metric].gap.upper, *both[metric].stderr
            plain = set_interval(*(float(x) for x in estimates), method="imbens_manski")
            limits[i, :, n] = [(found.low, found.high) for found in (both[metric], plain, critics[metric])]
    lines = []
    for n, metric in enumerate(design.metrics):
        truth = float(gap(joint, Feedback(design.labels, "label"), metric).estimate)
        ends = gap(feedback.answers_of(joint), feedback, metric)
        columns = ""
        for m in range(len(METHODS)):
            low, high = limits[:, m, n].T
            values = np.array([truth, float(ends.lower), float(ends.upper)])[:, np.newaxis]
            covered = ((low <= values + 1e-9) & (values - 1e-9 <= high)).mean(axis=1)
            columns += f"{covered[0]:>8.3f}{covered.min():>7.3f}{np.nanmean(high - low):>7.3f}"
        bias = ",".join(f"{b:g}" for b in design.bias)
        named = f"{design.labels:>6}  {design.kind:10}{bias:12}{metric:20}"
        lines.append(f"{named}{truth:>6.3f} [{float(ends.lower):.3f},{float(ends.upper):.3f}]{columns}")
    return "\n".join(lines)


def print_coverage(samples: int, draws: int, processes: int) -> None:
    """Print the third table."""
    print(f"\n{'':71}" + "".join(f"{name:^22}" for name in METHODS))
    columns = f"{'truth':>8}{'worst':>7}{'length':>7}"
    print(f"{'labels':>6}  {'answers':10}{'bias':12}{'metric':20}{'gap':>6} {'answers allow':13}" + 3 * columns)
    tasks = [(number, samples, draws) for number in range(len(DESIGNS))]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for lines in pool.map(simulate, tasks):
            print(lines, flush=True)
    noise = 2 * np.sqrt(0.0475 / samples)
    print(
        f"{CASES} cases, {CRITICS} critics, {EACH} cases each; {samples} samples of {draws} resamples a line; "
        f"two standard errors: {noise:.3f}."
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few samples and answers: a look, not a measurement")
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--answers", type=int, default=10_000_000)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(argv)
    start = perf_counter()
    print_bounds()
    print_speed(1_000_000 if options.quick else options.answers)
    print_coverage(10 if options.quick else options.samples, 200, options.processes)
    print(f"In {perf_counter() - start:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
