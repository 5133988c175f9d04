"""Coverage of the intervals of rates in the disagreement audit: `python benchmarks/disagreement_rates.py [--quick]`.

Invented kidney offers whose true rates are known. For each metric, over all classes, groups and samples: the share of
intervals that hold the true rate, the least share over the cells, the share of the true rates that the bounds of the
sample alone hold, and the mean length. Nominal is 95 %.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from time import perf_counter

import numpy as np

import evenhand as eh
from evenhand.audits.disagreement.estimate import value_records
from evenhand.audits.disagreement.gather import gather
from evenhand.audits.disagreement.groups import answer_set, find_groupings
from evenhand.audits.disagreement.metrics import computed_metrics
from evenhand.audits.disagreement.result import DisagreementValue
from evenhand.audits.disagreement.spec import Answers, DisagreementSpec

CASES, CRITICS, EACH = 400, 80, 20


def rates_in(seed: int, grouping: str, answers: dict[str, str], resamples: int) -> list[DisagreementValue]:
    """Return the rates of one sample."""
    offers = eh.datasets.make_kidney_offers(CASES, CRITICS, seed, cases_per_critic=EACH)
    spec = DisagreementSpec(
        decision="quality",
        critic="critic",
        case="offer",
        answers=Answers(labels=(1, 2, 3, 4)),
        resamples=resamples,
        seed=seed,
        disagree=answers.get("disagree"),
        answer=answers.get("answer"),
    )
    table = eh.Table(offers, groups=grouping)
    panel = gather(table, spec)
    heard = answer_set(panel, find_groupings(table, panel, spec.min_count)[0], compared=False)
    return list(value_records(heard, computed_metrics(0), spec, 1))


def lines(samples: int, grouping: str, answers: dict[str, str], resamples: int) -> Iterator[str]:
    """Yield a line for each metric."""
    truth = eh.datasets.kidney_offers_truth()["all"][grouping]
    held, bounded, lengths = (defaultdict[tuple[str, str], list[float]](list) for _ in range(3))
    for seed in range(samples):
        for rate in rates_in(seed, grouping, answers, resamples):
            name = rate.metric if rate.label is None else f"{rate.metric}_{rate.label}"
            true = truth[rate.group][name]
            if rate.low is None or rate.high is None or rate.lower is None or rate.upper is None:
                continue
            cell = rate.metric, f"{rate.group} {rate.label}"
            held[cell].append(rate.low <= true <= rate.high)
            bounded[cell].append(rate.lower - 1e-9 <= true <= rate.upper + 1e-9)
            lengths[cell].append(rate.high - rate.low)
    for metric in dict.fromkeys(metric for metric, _ in held):
        own = [cell for cell in held if cell[0] == metric]
        shares = [float(np.mean(held[cell])) for cell in own]
        alone = float(np.mean([np.mean(bounded[cell]) for cell in own]))
        length = float(np.mean([np.mean(lengths[cell]) for cell in own]))
        said = next(iter(answers))
        yield f"{grouping:12} {said:9} {metric:26} {np.mean(shares):6.3f} {min(shares):6.3f} {alone:6.3f} {length:6.3f}"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few samples: a look, not a measurement")
    parser.add_argument("--samples", type=int, default=300)
    options = parser.parse_args(argv)
    samples, start = 10 if options.quick else options.samples, perf_counter()
    print(f"{'grouping':12} {'answers':9} {'metric':26} {'covers':>6} {'least':>6} {'bounds':>6} {'length':>6}")
    for answers in ({"disagree": "disagrees"}, {"answer": "answer"}):
        for line in lines(samples, "donor_age", answers, 200):
            print(line, flush=True)
    print(f"{CASES} cases, {CRITICS} critics, {EACH} cases each; {samples} samples. In {perf_counter() - start:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
