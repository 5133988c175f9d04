"""A plan is sealed once, an audit says whether it followed it, and a pack can be checked by anybody."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand.cli.main import main
from evenhand.errors import ConfigError
from evenhand.evidence.pack import pack, sign
from evenhand.evidence.verify import verify
from evenhand.run.plan import differences, other_settings, read_plan, seal

SETTINGS = """
[data]
source = "d.csv"
groups = ["sex"]
predictions = "hired"
[parity]
resamples = 100
[[thresholds]]
metric = "selection_rate"
max = 0.3
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with settings, the plan that was sealed before there were data, and then the data."""
    (tmp_path / "audit.toml").write_text(SETTINGS, encoding="utf-8")
    (tmp_path / "plan.json").write_text(json.dumps(seal(tmp_path / "audit.toml")), encoding="utf-8")
    rows = "\n".join(f"{'FM'[i % 2]},{'1011010100'[i % 10]}" for i in range(600))
    (tmp_path / "d.csv").write_text(f"sex,hired\n{rows}\n", encoding="utf-8")
    return tmp_path


def run(place: Path, change: Callable[[str], str] = str) -> eh.Audit:
    (place / "audit.toml").write_text(change(SETTINGS), encoding="utf-8")
    return eh.audit(place / "audit.toml", plan=place / "plan.json")


def test_an_audit_that_follows_its_plan_says_so(place: Path) -> None:
    audit = run(place)
    assert audit.plan is not None
    assert (audit.plan["followed"], audit.plan["changes"]) == (True, [])
    assert not any(finding.exploratory for finding in audit.findings)
    assert "followed" in audit.to_html()


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("resamples = 100", "resamples = 200", "`resamples` in [parity] was planned as 100 and is 200."),
        ('["sex"]', '["sex"]\nmissing = "drop"', "`missing` in [data] was planned as 'error' and is 'drop'."),
        (
            '"hired"',
            '"hired"\nfavourable = "selected"',
            "`favourable` in [data.predictions.hired] was planned as None and",
        ),
    ],
)
def test_a_setting_that_was_changed_makes_the_findings_exploratory(place: Path, old: str, new: str, told: str) -> None:
    audit = run(place, lambda text: text.replace(old, new))
    assert audit.plan is not None
    assert audit.plan["followed"] is False
    assert audit.plan["changes"][0]["text"].startswith(told)
    assert all(finding.exploratory for finding in audit.findings)
    assert "Exploratory: the plan did not foresee it." in audit.to_html()


def test_a_threshold_that_was_added_is_exploratory_alone(place: Path) -> None:
    audit = run(place, lambda text: f'{text}[[thresholds]]\nmetric = "selection_rate"\nmin = 0.8\n')
    assert audit.plan is not None
    (change,) = audit.plan["changes"]
    assert change["text"] == "The threshold 'selection_rate, min = 0.8' of parity was not planned."
    assert {str(finding.threshold): finding.exploratory for finding in audit.findings} == {
        "at least 0.8": True,
        "at most 30 points": False,
    }
    audit.save(place / "out")
    told = [check.text for check in verify(place / "out", plan=place / "plan.json")]
    assert f"The results state how they differ from the plan: {change['text']}" in told


def test_what_was_planned_and_left_out_is_told(place: Path) -> None:
    audit = run(place, lambda text: text.partition("[[thresholds]]")[0])
    assert audit.plan is not None
    assert [change["text"] for change in audit.plan["changes"]] == [
        "The threshold 'selection_rate, max = 0.3' of parity was planned and is not there."
    ]


def test_the_name_of_the_file_is_no_part_of_the_plan(place: Path) -> None:
    (place / "d.csv").rename(place / "e.csv")
    audit = run(place, lambda text: text.replace("d.csv", "e.csv"))
    assert audit.plan is not None
    assert audit.plan["followed"] is True


def test_words_of_the_report_are_no_part_of_the_plan(place: Path) -> None:
    words = '"hired"\npeople = "applicants"\nselected_word = "hires"'
    audit = run(place, lambda text: text.replace('"hired"', words))
    assert audit.plan is not None
    assert (audit.plan["followed"], audit.plan["changes"]) == (True, [])
    assert not any(finding.exploratory for finding in audit.findings)


def test_a_plan_that_was_changed_after_sealing_is_refused(place: Path) -> None:
    path = place / "plan.json"
    path.write_text(path.read_text(encoding="utf-8").replace("0.3", "0.4"), encoding="utf-8")
    with pytest.raises(ConfigError, match="was changed after it was sealed"):
        read_plan(path)
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(ConfigError, match="is not a plan"):
        read_plan(path)


def test_a_plan_is_sealed_once(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    with pytest.raises(SystemExit) as left:
        main(["plan", "audit.toml"])
    assert left.value.code == 2
    assert "a plan is sealed once" in capsys.readouterr().err.replace("\n", " ")
    with pytest.raises(SystemExit) as left:
        main(["plan", "audit.toml", "--out", "second.json"])
    assert left.value.code == 0
    assert read_plan(place / "second.json")["settings"] == read_plan(place / "plan.json")["settings"]


def test_verify_computes_again_and_finds_every_change(place: Path) -> None:
    out = place / "out"
    run(place).save(out)
    settings, plan = place / "audit.toml", place / "plan.json"
    assert [check.holds for check in verify(out, settings=settings, plan=plan)] == [True] * 6
    with (place / "d.csv").open("a", encoding="utf-8") as data:
        data.write("F,1\n")
    last = verify(out, settings=settings, plan=plan)[-1]
    assert (last.holds, last.text[:34]) == (False, "These are not the data of the audi")
    (out / "report.html").write_text("nothing wrong here", encoding="utf-8")
    first = verify(out)[0]
    assert first.holds is False
    assert first.text.startswith("report.html is not the file that the run wrote")


def test_verify_computes_again_with_the_plan_in_the_folder(place: Path) -> None:
    out = place / "out"
    run(place, lambda text: text.replace("max = 0.3", "max = 0.4")).save(out)
    shutil.copy(place / "plan.json", out)
    last = verify(out, settings=place / "audit.toml")[-1]
    assert (last.holds, last.text) == (True, "Computed again from the data, every number is the same.")
    for name in ("audit.toml", "d.csv"):
        shutil.copy(place / name, out)
    pack(out, place / "pack.zip")
    with zipfile.ZipFile(place / "pack.zip") as held:
        held.extractall(place / "unpacked")
    shutil.copy(place / "d.csv", place / "unpacked")
    last = verify(place / "unpacked", settings=place / "unpacked" / "audit.toml")[-1]
    assert last.holds is True


def test_verify_tells_other_settings_from_other_data(place: Path) -> None:
    run(place).save(place / "out")
    other = place / "other.toml"
    other.write_text(SETTINGS.replace('"hired"', '{ hired = { column = "hired", selected = 0 } }'), encoding="utf-8")
    last = verify(place / "out", settings=other)[-1]
    assert last.holds is False
    assert last.text.startswith("These are not the settings of the audit: [data] predictions hired selected: none in")
    assert last.text.endswith("The data file is the same.")


def test_verify_finds_a_report_that_was_made_from_other_results(place: Path) -> None:
    out = place / "out"
    run(place).save(out)
    (out / "report.html").write_text("another page", encoding="utf-8")
    told = json.loads((out / "run.json").read_text(encoding="utf-8"))
    told["sha256"]["report.html"] = hashlib.sha256(b"another page").hexdigest()
    (out / "run.json").write_text(json.dumps(told), encoding="utf-8")
    assert [check.text for check in verify(out) if check.holds is False] == [
        "report.html is not the page that this evenhand makes of results.json: the page was changed, or evenhand was "
        f"since the run, with the same version {eh.__version__}."
    ]


def test_verify_knows_the_page_of_a_number_that_lies_half_way(place: Path) -> None:
    whole = run(place)
    result: Any = whole.results["parity"]
    first, *others = result.values
    close = replace(first, value=0.003499999999997)  # 0.3% with all its digits, 0.4% with those of results.json
    near = replace(whole, results={"parity": replace(result, values=(close, *others))})
    near.save(place / "out", ["html", "md"])
    page = (place / "out" / "report.html").read_text(encoding="utf-8")
    assert page == near.to_html() == eh.Audit.load(place / "out").to_html()
    assert not any(check.holds is False for check in verify(place / "out"))


def test_a_pack_holds_what_is_needed_and_its_sums_are_right(place: Path) -> None:
    out = place / "out"
    run(place).save(out)
    path, again = (
        pack(out, place / name, settings=place / "audit.toml", plan=place / "plan.json") for name in ("a.zip", "b.zip")
    )
    assert path.read_bytes() == again.read_bytes()
    with zipfile.ZipFile(path) as held:
        files = {name: held.read(name) for name in held.namelist()}
    wanted = {"report.html", "report.md", "results.json", "run.json", "plan.json", "audit.toml", "VERIFY.md"}
    assert wanted | {"manifest.json", "versions.txt", "SHA256SUMS"} <= files.keys()
    assert not any(name.endswith("d.csv") for name in files)
    sums = {line[66:]: line[:64] for line in files["SHA256SUMS"].decode().splitlines()}
    assert sums == {name: hashlib.sha256(files[name]).hexdigest() for name in files if name != "SHA256SUMS"}
    for name, content in files.items():
        (place / "unpacked").mkdir(exist_ok=True)
        (place / "unpacked" / name).write_bytes(content)
    assert not any(check.holds is False for check in verify(place / "unpacked"))


def test_a_pack_holds_the_files_of_the_run_and_passes_its_own_check(place: Path) -> None:
    out, there = place / "out", place / "unpacked"
    run(place).save(out, ["html", "xlsx", "card"])
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.name != "run.json"}
    pack(out, place / "pack.zip", settings=place / "audit.toml", plan=place / "plan.json", formats=["html", "md"])
    with zipfile.ZipFile(place / "pack.zip") as held:
        held.extractall(there)
    assert {name: (there / name).read_bytes() for name in before} == before
    shutil.copy(place / "d.csv", there)
    checks = verify(there, settings=there / "audit.toml")
    assert {check.holds for check in checks} == {True}
    assert {f"{name} is the file that the run wrote." for name in [*before, "report.md"]} <= {c.text for c in checks}
    source = json.loads((there / "model-card-hired.json").read_text(encoding="utf-8"))["evaluation_data"]["source"]
    assert source == f"d.csv (SHA-256 {hashlib.sha256((place / 'd.csv').read_bytes()).hexdigest()})"


def test_a_pack_takes_nothing_from_outside_its_folder(place: Path) -> None:
    run(place).save(place / "out")
    path = place / "out" / "run.json"
    told = json.loads(path.read_text(encoding="utf-8"))
    told["sha256"]["../d.csv"] = hashlib.sha256((place / "d.csv").read_bytes()).hexdigest()
    path.write_text(json.dumps(told), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"its run.json names the file '../d.csv', which is not in it"):
        pack(place / "out", place / "pack.zip", formats=["md"])


def test_a_pack_that_is_there_is_not_overwritten(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, path = place / "out", place / "pack.zip"
    run(place).save(out)
    path.write_bytes(b"handed over")
    command = ["pack", str(out), "--out", str(path), "--format", "md"]
    with pytest.raises(SystemExit) as left:
        main(command)
    assert (left.value.code, path.read_bytes()) == (2, b"handed over")
    assert "exists already; give --force" in " ".join(capsys.readouterr().err.split())
    with pytest.raises(SystemExit) as left:
        main([*command, "--force"])
    assert (left.value.code, zipfile.is_zipfile(path)) == (0, True)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("d.csv", "e.csv", r"\[data\] source: 'd.csv' in results.json, 'e.csv' in '.*b.toml'\."),
        ("resamples = 100", "resamples = 200", r"\[parity\] resamples: 100 in results.json, 200 in"),
        ("max = 0.3", "max = 0.4", r"thresholds, selection_rate, max: 0.3 in results.json, 0.4 in"),
        ("[parity]", "[report]\ntitle = 'Another'\n[parity]", r"\[report\] title: 'Fairness audit' in results.json"),
    ],
)
def test_settings_of_another_audit_are_not_packed(place: Path, old: str, new: str, told: str) -> None:
    run(place).save(place / "out")
    (place / "b.toml").write_text(SETTINGS.replace(old, new), encoding="utf-8")
    with pytest.raises(ConfigError, match=f"is not the audit.toml that this audit was run with; .*{told}"):
        pack(place / "out", place / "pack.zip", settings=place / "b.toml")
    assert not (place / "pack.zip").exists()


def test_a_model_that_was_planned_and_fitted_follows_the_plan(place: Path) -> None:
    settings = SETTINGS.replace('predictions = "hired"', 'outcome = "hired"\n[models]\nfit = ["logistic"]\nfolds = 2')
    settings = settings.replace("folds = 2", 'folds = 2\nfeatures = ["sex"]')
    (place / "audit.toml").write_text(settings, encoding="utf-8")
    audit = eh.audit(place / "audit.toml")
    assert differences(audit, seal(place / "audit.toml")) == []
    assert other_settings(audit, place / "audit.toml") == []


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")
def test_a_pack_can_be_signed_with_a_key_of_ssh(place: Path) -> None:
    out, key = place / "out", place / "key"
    run(place).save(out)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    with zipfile.ZipFile(pack(out, place / "pack.zip", key=key)) as held:
        sums, signature = held.read("SHA256SUMS"), held.read("SHA256SUMS.sig")
    (place / "sums.sig").write_bytes(signature)
    (place / "signers").write_text(f"me {Path(f'{key}.pub').read_text(encoding='utf-8')}", encoding="utf-8")
    check = ["ssh-keygen", "-Y", "verify", "-f", str(place / "signers"), "-I", "me", "-n", "evenhand", "-s"]
    for content, code in ((sums, 0), (sums + b"x", 255)):
        done = subprocess.run([*check, str(place / "sums.sig")], input=content, check=False, capture_output=True)
        assert done.returncode == code
    with pytest.raises(ConfigError, match="there is no key"):
        sign(b"", place / "nokey")
