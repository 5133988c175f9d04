"""A headless Chromium, where the machine has one.

Playwright keeps an event loop running in its thread as long as it is open. So it has a thread of its own, in which the
tests of the browser run: any other test may call `asyncio.run` at any time.
"""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh

_THREAD = ThreadPoolExecutor(max_workers=1, thread_name_prefix="playwright")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that uses the browser in the browser's thread."""
    if "browser" not in pyfuncitem.fixturenames:
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    _THREAD.submit(pyfuncitem.obj, **arguments).result()
    return True


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("Chromium is not installed; EVENHAND_INSTALL=1 make test installs it (Debian, as root)")
    from playwright.sync_api import sync_playwright

    playwright = _THREAD.submit(sync_playwright().start).result()
    arguments = ["--no-sandbox", "--disable-gpu"]
    running = _THREAD.submit(playwright.chromium.launch, executable_path=chromium, args=arguments).result()
    yield running
    _THREAD.submit(running.close).result()
    _THREAD.submit(playwright.stop).result()


@pytest.fixture(scope="session")
def six_sections(six_audits: eh.Audit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of an audit with all six sections."""
    return six_audits.save(tmp_path_factory.mktemp("six"))["report.html"]


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = eh.Table(
        eh.datasets.make_households(4_000, seed=4),
        outcome="missed_payment",
        groups=["race", "sex", ["race", "sex"]],
        predictions={"xgboost": "risk_xgboost", "logistic": "risk_logistic"},
    )
    rates = ("selection_rate", "tpr", "fpr", "auc")  # tests of means take 5 s more
    audit = eh.audit(table, parity={"metrics": rates}, thresholds=[{"metric": "tpr", "max": 0.1}])
    return audit.save(tmp_path_factory.mktemp("report"))["report.html"]
