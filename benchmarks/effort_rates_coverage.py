"""Coverage of individual fairness and of parity by effort when the rates of inertia are estimates.

    python benchmarks/effort_rates_coverage.py [--anew] [--only WORDS] [--minutes 20]

People of three groups have rates of inertia 13, 25 and 39; every sample knows them with a standard error. The truth is
the value of a population of 20,000 people at the true rates. Beside the pooled interval: the same audit with the rates
taken as given. All numbers come from `eh.effort`.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
from promises import Book, run

import evenhand as eh

RATES = {"a": 13.0, "b": 25.0, "c": 39.0}
YEARS = ["y1", "y2", "y3"]
POPULATION = 20_000


def table(n: int, rng: np.random.Generator) -> eh.Table:
    """Return people whose scores follow their change, their group and chance."""
    group, sex = rng.choice(list(RATES), n), rng.choice(["f", "m"], n)
    values = rng.gamma(3.0, 1.0, (n, 3))
    inner = 0.6 * (values[:, 1] - values[:, 2]) + 0.5 * (sex == "m") + (group == "c") + rng.standard_normal(n)
    columns = dict(zip(YEARS, values.T, strict=True))
    data = {"group": group, "sex": sex, "risk": 1 / (1 + np.exp(1 - inner)), **columns}
    return eh.Table(data, groups=["group", "sex"], predictions="risk")


def found(people: eh.Table, inertia: Any) -> tuple[Any, Any]:
    """Return individual fairness, and the parity of men and women of middle effort."""
    result = eh.effort(people, trajectory=YEARS, scale=10, width=0.25, inertia=inertia, inertia_by="group", worst=0)
    return result.get("values", metric="eaif"), result.get("gaps", metric="eagf", grouping="sex", bin_low=0.25)


@cache
def truth() -> tuple[float, float]:
    """Return both in the population, at the true rates."""
    fairness, parity = found(table(POPULATION, np.random.default_rng(0)), RATES)
    return fairness.value, parity.value


def covers(samples: int, rng: np.random.Generator, n: int, error: float, which: int) -> tuple[list[bool], list[bool]]:
    """Tell whether the interval holds the truth: pooled over rates, and with the rates as given."""
    ours: list[bool] = []
    given: list[bool] = []
    for _ in range(samples):
        people = table(n, rng)
        rates = {name: rate * float(np.exp(error * rng.standard_normal())) for name, rate in RATES.items()}
        errors = {name: error * rate for name, rate in rates.items()}
        sources = {"sources": {"poverty": {"by": "group", "rates": rates, "errors": errors}}}
        for inertia, told in ((sources, ours), (rates, given)):
            record = found(people, inertia)[which]
            if record.low is not None and record.high is not None:
                told.append(record.low <= truth()[which] <= record.high)
    return ours, given


def promises(book: Book) -> None:
    """Declare the lines."""
    for which, what in enumerate(("individual fairness", "parity by effort")):
        for n, error in ((200, 0.1), (200, 0.3), (1_000, 0.3)):
            book.measure(
                f"{what} with uncertain rates of inertia, 95 % interval",
                f"{n:,} people, rates known to {error:.0%}",
                partial(covers, n=n, error=error, which=which),
                kind="interval",
                nominal=0.95,
                samples=200,
                oracle="rates taken as given",
            )


if __name__ == "__main__":
    run(promises, __file__, "stats/imputation.py", "audits/effort/imputation.py")
