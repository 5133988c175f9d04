"""A headless Chromium, where the machine has one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("Chromium is not installed; EVENHAND_INSTALL=1 make test installs it (Debian, as root)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield running
        running.close()


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = eh.Table(
        eh.datasets.make_households(4_000, seed=4),
        outcome="missed_payment",
        groups=["race", "sex", ["race", "sex"]],
        predictions={"xgboost": "risk_xgboost", "logistic": "risk_logistic"},
    )
    audit = eh.audit(table, parity={"resamples": 200}, thresholds=[{"metric": "tpr", "max": 0.1}])
    return audit.save(tmp_path_factory.mktemp("report"))["report.html"]
