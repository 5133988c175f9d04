"""`[reliability]` and `[agreement]` in audit.toml: models as files, names and code, and what code needs."""

from __future__ import annotations

import json
import pickle
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

Cli = Callable[..., subprocess.CompletedProcess[str]]

DATA = """
[data]
source = "people.csv"
outcome = "again"
groups = "group"
"""
RELIABILITY = """
[reliability]
model = "MODEL"
features = ["age", "priors", "job"]
replicates = 3
resamples = 100

[reliability.noise]
noise_levels = [0.1, 0.2]
features = { age = 3, job = "flip", priors = { sd = 1, minimum = 0 } }
"""
MODULE = """
import numpy as np


def risk(rows):
    return 1 / (1 + np.exp(rows.age / 10 - 3 - rows.priors / 3))


def bins(columns):
    return {"older": (columns["age"] >= 40).astype(float)}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {
            "age": rng.integers(18, 60, 160),
            "priors": rng.poisson(2, 160),
            "job": rng.choice(["a", "b", "c"], 160),
            "group": rng.choice(["A", "B"], 160),
        }
    )
    people["again"] = (rng.random(160) < 1 / (1 + np.exp(people.age / 10 - 4))).astype(int)
    people["older"] = (people.age >= 40).astype(int)
    people["twice"] = np.where(rng.random(160) < 0.1, 1 - people.again, people.again)
    people.to_csv("people.csv", index=False)
    (tmp_path / "own_risk.py").write_text(MODULE)
    return tmp_path


def write(text: str) -> None:
    Path("audit.toml").write_text(text, encoding="utf-8")


def results(cli: Cli, *options: str) -> Any:
    done = cli("audit", "audit.toml", "--json", *options)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)["audits"]


@pytest.mark.slow
@pytest.mark.usefixtures("place")
def test_an_estimator_by_name(cli: Cli) -> None:
    pytest.importorskip("sklearn", reason="a model is fitted")
    write(DATA + RELIABILITY.replace("MODEL", "logistic"))
    found = results(cli)["reliability"]
    assert found["models"][0]["kind"] == "fitted here"
    assert {record["feature"] for record in found["attribution"]} == {"age", "priors", "job"}
    write(
        DATA
        + RELIABILITY.replace(
            '"MODEL"', '{ small = { estimator = "logistic", features = ["age"] }, tree = "decision_tree" }'
        )
    )
    assert [record["model"] for record in results(cli)["reliability"]["models"]] == ["small", "tree"]


@pytest.mark.usefixtures("place")
def test_code_needs_a_flag(cli: Cli) -> None:
    write(DATA + RELIABILITY.replace("MODEL", "own_risk:risk"))
    done = cli("audit", "audit.toml")
    assert done.returncode == 2
    assert "audit.toml names code ('own_risk:risk' for 'model'); run it only if you trust it" in done.stderr
    found = results(cli, "--allow-code")["reliability"]
    assert found["models"][0]["source"] == "own_risk:risk"
    more = 'derive = "own_risk:bins"\n'
    write(DATA + RELIABILITY.replace("MODEL", "own_risk:risk").replace('"job"]', '"job", "older"]') + more)
    assert results(cli, "--allow-code")["reliability"]["spec"]["noise"]["derive"] == "own_risk:bins"
    assert "names code ('own_risk:" in cli("audit", "audit.toml").stderr
    write(DATA + RELIABILITY.replace("MODEL", "logistic") + more)
    done = cli("audit", "audit.toml")
    assert done.returncode == 2
    assert "names code ('own_risk:bins' for 'derive')" in done.stderr


@pytest.mark.slow
def test_files_are_seen_from_the_folder_of_the_audit(cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    linear = pytest.importorskip("sklearn.linear_model", reason="a model is fitted")
    skops = pytest.importorskip("skops.io", reason="a model is written by skops")
    people = pd.read_csv("people.csv")
    model = linear.LogisticRegression().fit(people[["age", "priors"]].to_numpy(float), people.again)
    (place / "models").mkdir()
    skops.dump(model, place / "models" / "risk.skops")
    (place / "models" / "risk.pkl").write_bytes(pickle.dumps(model))
    plain = RELIABILITY.replace('features = ["age", "priors", "job"]', 'features = ["age", "priors"]').replace(
        'job = "flip", ', ""
    )
    write(DATA + plain.replace("MODEL", "models/risk.skops"))
    found = results(cli)["reliability"]
    assert (found["models"][0]["source"], len(found["models"][0]["sha256"])) == ("risk.skops", 64)
    assert found["spec"]["model"]["risk"]["file"] == "models/risk.skops"
    elsewhere = place / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert cli("audit", "../audit.toml", "--json").returncode == 0
    monkeypatch.chdir(place)
    write(DATA + plain.replace("MODEL", "models/risk.pkl"))
    assert "'risk.pkl' is a pickle" in cli("audit", "audit.toml").stderr
    write(DATA + plain.replace("MODEL", "models/risk.pkl") + "[reliability.scoring]\nallow_pickle = true\n")
    done = cli("audit", "audit.toml")
    assert done.returncode == 2
    assert "`scoring.allow_pickle` in audit.toml lets a file run code; allow it only if you trust it" in done.stderr
    assert results(cli, "--allow-code")["reliability"]["models"][0]["kind"] == "file"


@pytest.mark.usefixtures("place")
def test_a_pilot_from_a_file_and_thresholds(cli: Cli) -> None:
    pytest.importorskip("sklearn", reason="a model is fitted")
    rng = np.random.default_rng(1)
    people = pd.read_csv("people.csv").iloc[:50]
    pd.DataFrame({"age_a": people.age, "age_b": people.age + rng.integers(-9, 10, 50)}).to_csv("two.csv", index=False)
    noise = 'features = { age = 3, job = "flip", priors = { sd = 1, minimum = 0 } }\n'
    text = RELIABILITY.replace("MODEL", "logistic").replace(noise, "").replace("[0.1, 0.2]", "[0.3, 0.5]")
    pilot = '[reliability.noise.pilot]\nsource = "two.csv"\nsuffixes = ["_a", "_b"]\n'
    limit = '[[thresholds]]\naudit = "reliability"\nmetric = "pabak"\nmax = 1.5\n'
    write(DATA + text + pilot + limit)
    done = cli("audit", "audit.toml", "--check", "--json")
    assert done.returncode == 0
    findings = json.loads(done.stdout)["findings"]
    assert findings[0]["verdict"] == "meets"
    write(DATA + text + pilot.replace("two.csv", "three.csv"))
    assert cli("audit", "audit.toml").returncode == 2


@pytest.mark.usefixtures("place")
def test_agreement(cli: Cli) -> None:
    write(DATA + '[agreement]\nraters = ["again", "twice"]\nresamples = 200\n')
    found = results(cli)["agreement"]
    assert found["scale"] == "binary"
    assert {record["group"] for record in found["values"]} == {"(overall)", "A", "B"}
    write(DATA + '[agreement]\nraters = ["again", "twise"]\n')
    done = cli("audit", "audit.toml")
    assert done.returncode == 2
    assert "did you mean 'twice'" in done.stderr
