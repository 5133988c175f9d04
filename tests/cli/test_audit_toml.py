"""Mistakes in audit.toml, each told in one message; and that the same file gives the same bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import evenhand as eh
from evenhand.table import files
from evenhand.table.engines import connect

Cli = Callable[..., subprocess.CompletedProcess[str]]

DATA = """
[data]
source = "d.csv"
groups = ["g"]
predictions = { m = "y" }
"""
PARITY = "[parity]\nresamples = 100\nmetrics = ['selection_rate']\n"
GOOD = DATA + PARITY


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.csv").write_text("g,y\n" + "a,1\nb,1\na,0\nb,0\n" * 20)
    return tmp_path


def threshold(text: str) -> str:
    return f"{GOOD}\n[[thresholds]]\n{text}\n"


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("", "`source` in [data] of 'audit.toml' must be the path of the data; got None."),
        (DATA, "audit.toml asks for no audit; add a section such as [parity]."),
        (
            DATA + 'period = "month"\n[parity]\n',
            "there is no setting `period` in [data]; it belongs in [report].",
        ),
        (GOOD + "[partiy]\n", "there is no section [partiy] in audit.toml; did you mean 'parity'?"),
        (
            GOOD + "resample = 5\n",
            "`resample` in [parity] of audit.toml: there is no such setting; did you mean 'resamples'?",
        ),
        (
            GOOD + "confidence = 'high'\n",
            "`confidence` in [parity] of audit.toml: must be a number; got 'high'.",
        ),
        (GOOD + "confidence = 95\n", "`confidence` in [parity] of audit.toml: must be less than 1; got 95."),
        (
            GOOD.replace("selection_rate", "selectoin_rate"),
            "there is no metric 'selectoin_rate'; did you mean 'selection_rate'",
        ),
        (GOOD + "[report]\npeople = 'x'\n", "`people` in [report] of audit.toml belongs in [data]; move it there."),
        (
            GOOD + "[report]\ntitel = 'x'\n",
            "`titel` in [report] of audit.toml: there is no such setting; did you mean 'title'?",
        ),
        (GOOD.replace("groups =", "group ="), "there is no setting `group` in [data]; did you mean 'groups'?"),
        (GOOD.replace('["g"]', "3"), "`groups` in [data]: must be a list; got 3."),
        (GOOD.replace('"d.csv"', "3"), "`source` in [data] of 'audit.toml' must be the path of the data; got 3."),
        (GOOD.replace('"d.csv"', '"e.csv"'), "there is no file 'e.csv'; did you mean 'd.csv'?"),
        ("data = 3\n" + PARITY, "[data] in audit.toml must be a table of settings; got 3."),
        ("[data\n", "'audit.toml' is not valid TOML: "),
        (
            GOOD.replace("[data]", "thresholds = 3\n[data]"),
            "thresholds in audit.toml must be written as [[thresholds]] tables.",
        ),
        (threshold("metric = 'selection_rate'"), "a threshold needs exactly one of `min` and `max`"),
        (threshold("metric = 'auc'\nmin = 0.8\nmax = 1"), "a threshold needs exactly one of `min` and `max`"),
        (threshold("min = 0.8"), "it is required and was not given"),
        (
            threshold("metric = 'selection_rate'\nmin = 0.8\ngrouping = 'race'"),
            "`grouping` 'race' of a threshold is not known; known names: 'g'",
        ),
        (
            threshold("metric = 'tpr'\nmax = 0.1"),
            "a threshold limits 'tpr', which is not among `metrics`; add it there.",
        ),
        (
            threshold("metric = 'selection_rate'\nmin = 0.8\naudit = 'effort'"),
            "a threshold in audit.toml is for the audit 'effort', which is not run",
        ),
        (
            GOOD + "custom = { mine = 'os:getcwd' }\n",
            "audit.toml names code ('os:getcwd' for 'mine'); run it only if you trust it, with --allow-code.",
        ),
    ],
)
def test_mistakes(cli: Cli, place: Path, toml: str, message: str) -> None:
    (place / "audit.toml").write_text(toml)
    done = cli("audit", "audit.toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: ")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (place / "out").exists()


def test_bytes_that_are_no_text(cli: Cli, place: Path) -> None:
    (place / "audit.toml").write_bytes(b"\xff\xfe\x00")
    done = cli("audit", "audit.toml")
    assert done.returncode == 2
    assert "'audit.toml' is not in UTF-8; save it as UTF-8 in your editor." in done.stderr
    assert "is a folder" in cli("audit", _folder(place / "x.toml")).stderr


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def test_code_of_the_user(cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "mine.py").write_text("def share(cells):\n    return cells.n / cells.n.sum()\n")
    monkeypatch.syspath_prepend(place)
    (place / "audit.toml").write_text(GOOD + "custom = { share = 'mine:share' }\n")
    done = cli("audit", "audit.toml", "--allow-code", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    metrics = {record["metric"] for record in json.loads(done.stdout)["audits"]["parity"]["values"]}
    assert metrics == {"selection_rate", "share"}
    (place / "broken.py").write_text("def share(cells:\n")
    for name in ("nowhere:share", "mine:nothing", "mine", "", ".mine:share", "broken:share"):
        (place / "audit.toml").write_text(GOOD + f"custom = {{ share = '{name}' }}\n")
        done = cli("audit", "audit.toml", "--allow-code")
        assert done.returncode == 2
        told = " ".join(done.stderr.split())
        assert f"'share' names '{name}', which cannot be imported (" in told
        assert told.endswith(
            "name what is to be used as 'module:name', with the module installed or beside audit.toml."
        )


# The same file, the same bytes ----------------------------------------------------------------------------

SCORED = """
[data]
source = "people.csv"
outcome = "missed_payment"
groups = ["sex", "race"]
weight = "weight"
predictions = { xgboost = "risk_xgboost" }
favourable = "not_selected"

[parity]
resamples = 200
metrics = ["selection_rate", "mean_score", "auc"]

[[thresholds]]
metric = "selection_rate"
min = 0.8
"""


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scored")
    people = eh.datasets.make_households(600, seed=4, backend="pandas")
    people["weight"] = 1 + people["risk_logistic"] / 3
    people.to_csv(folder / "people.csv", index=False)
    people.to_parquet(folder / "people.parquet")
    (folder / "audit.toml").write_text(SCORED)
    (folder / "parquet.toml").write_text(SCORED.replace("people.csv", "people.parquet"))
    return folder


def saved(cli: Cli, scored: Path, out: Path, name: str = "audit.toml") -> bytes:
    done = cli("audit", scored / name, "--quiet", "--format", "csv", "--out", out)
    assert (done.returncode, done.stderr) == (0, "")
    return (out / "results.json").read_bytes()


def test_on_any_number_of_threads(cli: Cli, scored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = saved(cli, scored, tmp_path)
    for threads in (1, 2):

        def with_threads(memory_limit: str | None = None, threads: int = threads) -> duckdb.DuckDBPyConnection:
            connection = connect(memory_limit)
            connection.execute(f"set threads = {threads}")
            return connection

        monkeypatch.setattr(files, "connect", with_threads)
        assert saved(cli, scored, tmp_path) == first


@pytest.mark.slow
def test_in_other_processes_with_other_numbers_of_threads(scored: Path, tmp_path: Path) -> None:
    printed = []
    for threads in ("1", "2"):
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")
        environment = {**os.environ, **dict.fromkeys(names, threads), "PYTHONHASHSEED": threads}
        arguments = [
            sys.executable,
            "-m",
            "evenhand",
            "audit",
            str(scored / "audit.toml"),
            "--json",
            "-o",
            str(tmp_path),
        ]
        printed.append(subprocess.run(arguments, env=environment, capture_output=True, check=True).stdout)
    assert printed[0] == printed[1]
    assert len(printed[0]) > 1000


def test_csv_and_parquet_differ_in_their_names_only(cli: Cli, scored: Path, tmp_path: Path) -> None:
    def without_names(text: bytes) -> dict[str, Any]:
        results: dict[str, Any] = json.loads(text)
        assert results["config"]["data"].pop("source").startswith("people.")
        assert len(results["data"].pop("files")) == 1
        return results

    text, columns = (saved(cli, scored, tmp_path, name) for name in ("audit.toml", "parquet.toml"))
    assert text != columns
    assert without_names(text) == without_names(columns)
