"""A run: the same data have the same hash, and its files are all written or none is."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.core.files import write_files
from evenhand.core.progress import step, timed
from evenhand.errors import ConfigError

ROWS = 120
SECTIONS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "parity": ({"resamples": 100, "within": ["district"]}, ("risk", "late", "district")),
    "effort": ({"trajectory": ["x1", "x2", "x3"], "inertia": "burden"}, ("x1", "x2", "x3", "burden", "risk")),
    "agreement": ({"raters": ["first", "second"], "resamples": 100}, ("first", "second")),
    "disagreement": ({"decision": "label", "disagree": "objects", "critic": "critic"}, ("label", "objects", "critic")),
}


def people() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({f"x{year}": rng.integers(1, 9, ROWS).astype(float) for year in (1, 2, 3)})
    return frame.assign(
        group=np.where(np.arange(ROWS) % 3 == 0, "a", "b"),
        late=rng.integers(0, 2, ROWS),
        risk=rng.random(ROWS).round(6),
        district=np.where(np.arange(ROWS) % 4 == 0, "north", "south"),
        burden=rng.integers(1, 4, ROWS).astype(float),
        first=rng.integers(0, 2, ROWS),
        second=rng.integers(0, 2, ROWS),
        label=rng.integers(0, 2, ROWS),
        objects=rng.integers(0, 2, ROWS),
        critic=[f"c{i % 6}" for i in range(ROWS)],
        unused=0,
    )


def data_hash(frame: Any, *names: str) -> str:
    table = eh.Table(frame, groups="group", outcome="late", predictions={"m": "risk"})
    sections: dict[str, Any] = {name: SECTIONS[name][0] for name in names}
    return str(eh.audit(table, **sections).data["hash"])


def changed(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the data with one column tripled, or where it is no amount, with some of its values changed."""
    if column.startswith("x") or column == "burden":
        return frame.assign(**{column: 3 * frame[column]})
    if column == "risk":
        return frame.assign(risk=frame["risk"] / 3)
    return frame.assign(**{column: [*frame[column][1:], frame[column][0]]})


def test_neither_the_order_of_rows_or_audits_nor_an_unused_column_changes_the_hash() -> None:
    frame = people()
    before = data_hash(frame, *SECTIONS)
    shuffled = frame.sample(frac=1, random_state=1).reset_index(drop=True)
    assert data_hash(shuffled.rename(columns={"unused": "useless"}), *reversed(SECTIONS)) == before


OLD = {"report.html": "old report", "results.json": "old results", "run.json": "old run"}
NEW = {name: text.replace("old", "new") for name, text in OLD.items()}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A folder with the last good files beside one of the user's own."""
    folder = tmp_path / "out"
    write_files(folder, OLD)
    (folder / "notes").mkdir()
    (folder / "notes" / "mine.txt").write_text("mine")
    return folder


def held(folder: Path) -> dict[str, str]:
    assert (folder / "notes" / "mine.txt").read_text() == "mine"
    assert sorted(os.listdir(folder)) == ["notes", *sorted(OLD)]
    return {name: (folder / name).read_text() for name in OLD}


def test_new_files_take_the_place_of_the_old_and_leave_all_others(out: Path) -> None:
    assert write_files(out, NEW) == {name: out / name for name in NEW}
    assert held(out) == NEW
    mask = os.umask(0)
    os.umask(mask)
    assert (out / "run.json").stat().st_mode & 0o777 == 0o666 & ~mask


@pytest.mark.parametrize("failing", range(3))
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_whatever_fails_leaves_the_last_good_files(
    out: Path, monkeypatch: pytest.MonkeyPatch, call: str, failing: int
) -> None:
    real, calls = getattr(os, call), []

    def fail(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == failing + 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*arguments)

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(ConfigError, match=r"the folder '.*out' cannot be written to: No space left on device\."):
        write_files(out, NEW)
    assert held(out) == OLD


def test_an_interruption_between_two_files_puts_the_old_ones_back(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.replace

    def stop(source: Path, target: Path) -> None:
        if Path(source).name == "results.json":
            raise KeyboardInterrupt
        real(source, target)

    monkeypatch.setattr(os, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        write_files(out, NEW)
    assert held(out) == OLD


def test_a_full_disk_leaves_the_last_good_files(out: Path) -> None:
    """The limit on the size of a file stands for the disk: what is written beyond it fails half-way."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(ConfigError, match="cannot be written to: File too large"):
            write_files(out, NEW | {"results.json": "x" * 200_000})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert held(out) == OLD


def test_a_killed_run_leaves_the_last_good_files(out: Path) -> None:
    program = textwrap.dedent("""
        import os, signal, sys
        from evenhand.core import files
        def stop(*_): os.kill(os.getpid(), signal.SIGKILL)
        files._put_in_place = stop
        files.write_files(sys.argv[1], {"report.html": "new", "results.json": "new", "run.json": "new"})
    """)
    assert subprocess.run([sys.executable, "-c", program, str(out)], check=False).returncode == -signal.SIGKILL
    (left,) = out.glob(".evenhand-*")
    assert {name: (out / name).read_text() for name in OLD} == OLD
    write_files(out, OLD)
    assert left.exists()  # another run may be at work in it
    os.utime(left, (0, 0))
    write_files(out, NEW)
    assert held(out) == NEW


def test_links_and_pipes_in_the_place_of_a_file_are_replaced(out: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim.txt"
    victim.write_text("precious")
    for name in ("report.html", "results.json"):
        (out / name).unlink()
    (out / "report.html").symlink_to(victim)
    os.mkfifo(out / "results.json")
    write_files(out, NEW)
    assert held(out) == NEW
    assert victim.read_text() == "precious"
    assert not (out / "report.html").is_symlink()


def test_what_cannot_be_the_folder_is_refused(out: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(out)
    (tmp_path / "file").write_text("mine")
    os.mkfifo(tmp_path / "pipe")
    for name, why in (
        ("link", "it is a link; give the folder itself"),
        ("file", "File exists|Not a directory"),
        ("pipe", "File exists|Not a directory"),
        ("nul\0", "embedded null"),
    ):
        with pytest.raises(ConfigError, match=rf"the folder '.*' cannot be written to: ({why})"):
            write_files(tmp_path / name, NEW)
    (out / "run.json").unlink()
    (out / "run.json").mkdir()
    with pytest.raises(ConfigError, match=r"'run\.json' in it is a folder; move it away"):
        write_files(out, NEW)
    assert (out / "report.html").read_text() == "old report"


def test_a_folder_that_could_not_be_filled_is_not_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(ConfigError):
        write_files(tmp_path / "out", NEW)
    assert os.listdir(tmp_path) == []


# A whole audit --------------------------------------------------------------------------------------------


def test_a_saved_audit_knows_its_own_files(tmp_path: Path) -> None:
    data = {"sex": ["F", "M"] * 50, "hired": [1, 0, 1, 1, 0, 1, 0, 1, 0, 0] * 10}
    audit = eh.audit(eh.Table(data, groups="sex", predictions="hired"), parity={"resamples": 100})
    files = audit.save(tmp_path)
    loaded = eh.Audit.load(tmp_path)
    assert loaded.run.pop("seconds").pop("report") > 0  # what writing took is known to the files only
    assert loaded.run.pop("steps")[: len(audit.run["steps"])] == audit.run["steps"]
    assert loaded.run == {name: value for name, value in audit.run.items() if name not in ("seconds", "steps")}
    assert loaded.to_json() == files["results.json"].read_text(encoding="utf-8")
    results = json.loads(files["results.json"].read_text(encoding="utf-8"))
    files["results.json"].write_text(json.dumps(results), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"results\.json' is not what the run of '.*run\.json' wrote; audit again"):
        eh.Audit.load(tmp_path)


def test_one_format_may_be_given_by_its_name(tmp_path: Path) -> None:
    data = {"sex": ["F", "M"] * 50, "hired": [1, 0, 1, 1, 0, 1, 0, 1, 0, 0] * 10}
    audit = eh.audit(eh.Table(data, groups="sex", predictions="hired"))
    assert set(audit.save(tmp_path, "md")) == {"report.md", "results.json", "run.json"}


def test_where_the_time_went_is_in_run_json_only(tmp_path: Path) -> None:
    table = eh.Table(people(), groups="group", outcome="late", predictions={"m": "risk"})
    sections: dict[str, Any] = {name: SECTIONS[name][0] for name in ("parity", "agreement")}
    files = eh.audit(table, **sections).save(tmp_path, [])
    run = json.loads(files["run.json"].read_text())
    assert list(run["seconds"]) == ["parity", "agreement", "verdicts", "hash", "report"]
    for section, seconds in run["seconds"].items():
        spent = [record["seconds"] for record in run["steps"] if record["section"] == section]
        assert seconds == pytest.approx(sum(spent), abs=0.002)
    assert '"seconds"' not in files["results.json"].read_text()


def test_steps_add_up_and_how_far_one_has_come_is_no_name() -> None:
    with timed() as clock:
        step("outside of all sections")
        with clock.timing("pairs"):
            for share in (10, 50, 100):
                step("Comparing", f"{share}%")
            with timed() as same, same.timing("inner"):
                step("Fitting")
        with clock.timing("pairs"):
            step("Comparing", "10%")
    found = [(record["section"], record["step"]) for record in clock.records()]
    assert found == [("pairs", ""), ("pairs", "Comparing"), ("inner", ""), ("inner", "Fitting")]
    assert all(record["seconds"] >= 0 and record["cpu"] >= 0 for record in clock.records())


def test_folders_above_the_folder_are_made(tmp_path: Path) -> None:
    written = write_files(tmp_path / "a" / "b", {"x.txt": "x"})
    assert written["x.txt"].read_text(encoding="utf-8") == "x"
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["b"]
