"""How often the verdict on parity by effort is wrong: the lowest of many bins, true parity at the limit in all of them.

Two or four groups in each bin, scores from beta distributions with means in the ratio 0.8; the limit is 0.8, so every
"does not meet" is wrong. Nominal: 5 %, of which half at most can fall on this side for two groups.

    python benchmarks/effort_parity_level.py [--quick]
"""

from __future__ import annotations

import argparse

import numpy as np

from evenhand.audits.effort.estimate import bin_records
from evenhand.audits.effort.findings import SENTENCES, make_claims
from evenhand.audits.effort.group_means import GroupedMeans, group_means
from evenhand.audits.effort.spec import EffortSpec
from evenhand.core.findings import FindingMaker
from evenhand.stats.types import FloatArray, IntArray

LIMIT = [{"audit": "effort", "metric": "eagf", "min": 0.8}]
SPEC = EffortSpec(trajectory=("a", "b", "c"), width=0.01, thresholds=LIMIT)


def verdict(bins: IntArray, group: IntArray, score: FloatArray, groups: int) -> str:
    """Return the verdict on one sample."""
    labels = tuple(f"g{number}" for number in range(groups))
    by_bin = group_means(bins, group, score, None, (int(bins.max()) + 1, groups))
    whole = group_means(np.zeros_like(bins), group, score, None, (1, groups))
    values, gaps = bin_records(GroupedMeans(by_bin, whole, labels), "m", "g", SPEC)
    return FindingMaker(SPEC, SENTENCES).findings(list(make_claims(values, gaps, (), SPEC)))[0].verdict


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="200 samples a line instead of 2,000")
    samples = 200 if parser.parse_args().quick else 2_000
    rng = np.random.default_rng(0)
    print(f"{samples:,} samples a line; two standard errors are {2 * np.sqrt(0.05 * 0.95 / samples):.3f}\n")
    print(f"{'groups':>6} {'bins':>5} {'people a group':>15} {'does not meet':>14} {'insufficient':>13}")
    for groups in (2, 4):
        for bins in (1, 5, 10, 20):
            for each in (15, 30, 100):
                place = np.repeat(np.arange(bins), groups * each)
                group = np.tile(np.repeat(np.arange(groups), each), bins)
                mean = np.where(group == 0, 0.4, 0.5)
                found = [verdict(place, group, rng.beta(4 * mean, 4 * (1 - mean)), groups) for _ in range(samples)]
                shares = [found.count(name) / samples for name in ("does_not_meet", "insufficient_evidence")]
                print(f"{groups:>6} {bins:>5} {each:>15} {shares[0]:>14.3f} {shares[1]:>13.3f}", flush=True)


if __name__ == "__main__":
    main()
