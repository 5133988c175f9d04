"""Seconds for the rates, gaps and resamples of agree/disagree feedback.

Ten million answers, five labels, four groups, 100 answers per critic.
"""

from __future__ import annotations

import argparse
from time import perf_counter

import numpy as np

from evenhand.stats.feedback import METRICS, Answers, Feedback, crossed_bootstrap, gap, rates


def print_speed(answers: int) -> None:
    """Print the table for this number of answers."""
    rng = np.random.default_rng(0)
    critics, cases = answers // 100, answers // 10
    made = Answers(
        critic=np.repeat(np.arange(critics), 100),
        case=rng.integers(0, cases, critics * 100),
        answer=rng.integers(0, 2, critics * 100),
        group=rng.integers(0, 4, cases),
        label=rng.integers(0, 5, cases),
        groups=4,
        critics=critics,
        feedback=Feedback(5),
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
    print(f"{'answers':>12}{'critics':>10}{'cases':>12}  {'step':44}{'seconds':>8}")
    sizes = f"{critics * 100:>12,}{critics:>10,}{cases:>12,}  "
    print(f"{sizes}{'reduced to 40 masses':44}{reduced - start:>8.2f}")
    print(f"{sizes}{'rates and gaps of all metrics':44}{evaluated - reduced:>8.2f}")
    print(f"{sizes}{'gap in calibration for each critic':44}{by_critic - evaluated:>8.2f}")
    print(f"{sizes}{'100 resamples of critics and cases':44}{resampled - by_critic:>8.2f}", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the answers: a look, not a measurement")
    print_speed(1_000_000 if parser.parse_args().quick else 10_000_000)


if __name__ == "__main__":
    main()
