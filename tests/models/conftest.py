"""Invented people to fit models to."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest


@pytest.fixture(scope="session")
def people() -> pd.DataFrame:
    """Return people whose outcome depends on a number, a text and a truth value."""
    rng = np.random.default_rng(11)
    n = 300
    income, job = rng.normal(50, 15, n).round(1), rng.choice(["clerk", "cook", "none"], n)
    owner = rng.random(n) < 0.4
    risk = -0.06 * (income - 50) + np.where(job == "none", 1.0, 0.0) - 0.8 * owner
    return pd.DataFrame(
        {
            "name": [f"p{i:03}" for i in rng.permutation(n)],
            "sex": rng.choice(["f", "m"], n),
            "income": income,
            "job": job,
            "owner": owner,
            "late": np.where(rng.random(n) < 1 / (1 + np.exp(-risk)), "yes", "no"),
        }
    )
