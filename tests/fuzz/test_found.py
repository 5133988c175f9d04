"""What the fuzzers found once, each as small as it can be."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import duckdb
import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.cli.main import main
from evenhand.errors import ConfigError, DataError, EvenhandError, brief
from evenhand.evidence.power import plan_power
from evenhand.report.formats import make_files
from evenhand.stats.draws import Draws
from evenhand.stats.effort import aggregate_scores
from evenhand.stats.feedback.limits import critical_values, set_interval
from evenhand.stats.improvability import ValueDraws, frontier_region
from evenhand.stats.reliability.gaps import gap_of
from evenhand.stats.truth_serum import bonus
from evenhand.study.analysis.estimate import share_estimates

from .commands import AUDIT_TOML, Command, run_command
from .laws import require_lawful
from .others import answers, copy_of_saved, sound_columns
from .tables import as_kind


def table(**roles: Any) -> eh.Table:
    return eh.Table(sound_columns(), **{"groups": "g", "outcome": "y", **roles})


def seal(place: Path, results: str) -> None:
    run = json.loads((place / "run.json").read_text(encoding="utf-8"))
    run["sha256"]["results.json"] = hashlib.sha256(results.encode()).hexdigest()
    (place / "run.json").write_text(json.dumps(run), encoding="utf-8")
    (place / "results.json").write_text(results, encoding="utf-8")


@pytest.mark.parametrize("confidence", [0.01, 0.3, 0.5, 0.51])
def test_limits_of_a_set_never_lie_within_it_at_a_low_confidence(confidence: float) -> None:
    below, above = critical_values(
        0.2, 0.4, lower_stderr=0.05, upper_stderr=0.05, correlation=0.5, confidence=confidence
    )
    assert 0 < below < 0.1
    assert 0 < above < 0.1
    found = set_interval(0.2, 0.4, 0.05, 0.05, 0.5, confidence=confidence)
    assert found.low <= 0.2 <= 0.4 <= found.high


def test_a_frontier_with_an_undefined_draw_is_unbounded() -> None:
    values = np.full((50, 3, 1, 2), 0.5)
    values[0, 0] = np.nan
    region = frontier_region(
        ValueDraws(estimate=values[1], values=values, spread=None, spreads=None, rows=9, cells=9, method="cells"),
        0,
        0.99,
    )
    assert region[:, :, 2].tolist() == [[np.inf, np.inf], [np.inf, np.inf]]


def test_limits_of_shares_end_where_shares_end() -> None:
    settings: dict[str, Any] = {"noise": {"features": {"age": 5}, "noise_levels": [0.3]}, "replicates": 2}
    found = eh.reliability("logistic", table(), features=["age"], folds=2, min_count=1, resamples=100, **settings)
    for record in found.rows("values", metric="agreement"):
        for number in (record.low, record.high, record.replicate_low, record.replicate_high):
            assert number is None or 0 <= number <= 1, record
    ticked = share_estimates(np.array([1.0, 1, 1, 0, 1, 1]), np.array([0, 0, 1, 1, 2, 2]), 0.95)["clustered"]
    assert 0 <= ticked.low < ticked.value < ticked.high <= 1


def test_an_interval_holds_its_value_at_a_low_confidence() -> None:
    settings: dict[str, Any] = {"status_quo": "d", "candidates": {"c": {"column": "e"}}, "resamples": 200}
    found = eh.improvability(table(groups="h"), min_count=1, confidence=0.01, **settings)
    for record in cast("tuple[Any, ...]", found.rows("values")):
        assert record.value is None or record.low <= record.value <= record.high, record


def test_no_metric_is_no_choice_of_metrics() -> None:
    with pytest.raises(ConfigError, match=r"`metrics` .* must not be empty"):
        eh.agreement(table(), raters=["r1", "r2"], metrics=[])


def test_data_too_large_to_make_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"`n` must be at most 1,000,000,000; got 1180591620717411303424\."):
        eh.datasets.make_patients(2**70)


def test_no_message_shows_an_address() -> None:
    assert brief(object()) == "<object object>"


@pytest.mark.parametrize("file", ["run.json", "results.json"])
@pytest.mark.parametrize("content", [None, [], 3, {"sha256": 3}, {"schema": 2, "audits": 3}])
def test_files_of_an_audit_that_hold_something_else(file: str, content: Any, tmp_path: Path) -> None:
    place = copy_of_saved(tmp_path)
    (place / file).write_text(json.dumps(content), encoding="utf-8")
    if file == "results.json":
        run = json.loads((place / "run.json").read_text(encoding="utf-8"))
        (place / "run.json").write_text(json.dumps(run | {"sha256": {}}), encoding="utf-8")
        with pytest.raises(EvenhandError, match=r"not a file of a saved audit|holds results of format|not whole"):
            eh.Audit.load(place)
    with pytest.raises(SystemExit) as left:
        main(["verify", str(place)])
    assert left.value.code in (0, 1, 2)


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_saved_results_hold_finite_numbers_alone(number: str, tmp_path: Path) -> None:
    place = copy_of_saved(tmp_path)
    written = (place / "results.json").read_text(encoding="utf-8")
    seal(place, written.replace('"schema": ', f'"odd": {number}, "schema": ', 1))
    with pytest.raises(EvenhandError, match=f"it holds {number}, which is not a finite number"):
        eh.Audit.load(place)


@pytest.mark.parametrize("findings", ["kept", "removed"])
def test_saved_results_without_their_audits_are_refused(findings: str, tmp_path: Path) -> None:
    place = copy_of_saved(tmp_path)
    written = json.loads((place / "results.json").read_text(encoding="utf-8"))
    written["audits"] = {}
    if findings == "removed":
        written["findings"] = []
    seal(place, json.dumps(written))
    with pytest.raises(EvenhandError, match=r"not whole \(an audit is missing\)"):
        eh.Audit.load(place)


def test_json_goes_to_a_stream_of_text_too(tmp_path: Path) -> None:
    words = ("audit", "people.csv", "--groups", "g", "--decisions", "d", "--out", "out", "--json")
    run_command(Command(words, sound_columns()), tmp_path)  # what it prints is caught as text


def test_a_folder_may_be_called_nan(tmp_path: Path) -> None:
    words = ("audit", "people.csv", "--groups", "g", "--decisions", "d", "--out", "nan", "--format", "csv")
    run_command(Command(words, sound_columns()), tmp_path)


def test_a_group_that_is_an_infinite_number_is_called_by_its_column() -> None:
    columns = sound_columns() | {"g": [float(row % 2) or float("inf") for row in range(24)]}
    found = eh.parity(eh.Table(columns, groups="g", predictions="d"), metrics=["selection_rate"], min_count=1)
    require_lawful(found)
    assert {record.group for record in found.rows("values")} >= {"g = 1", "g = inf"}


@pytest.mark.parametrize("kind", ["mapping", "pandas", "polars", "pyarrow", "duckdb"])
def test_ids_may_be_numbers_beyond_all_whole_ones(kind: str, tmp_path: Path) -> None:
    columns = sound_columns() | {"id": [1e308, *map(float, range(1, 24))]}
    roles: dict[str, Any] = {"groups": "g", "predictions": "s", "id": "id"}
    found = eh.effort(eh.Table(as_kind(columns, kind, tmp_path), **roles), trajectory=["y1", "y2", "y3"], min_count=1)
    assert {found.rows("values")[0].n} == {24}


@pytest.mark.parametrize("limits", [None, 3, float("inf"), {"metric": "selection_rate"}, "x", [None]])
def test_what_are_no_thresholds_is_told(limits: Any) -> None:
    with pytest.raises(ConfigError, match="threshold"):
        eh.testing.assert_meets(table(predictions="s"), limits)


def test_a_scale_of_next_to_nothing_gives_the_largest_aggregate_and_such_a_unit_is_refused() -> None:
    assert aggregate_scores([[1.0, 2.0], [-1.0, 0.0]], scale=5e-324).tolist() == [1.0, -1.0]
    with pytest.raises(EvenhandError, match=r"`unit` is too small for these values; got 4\.94066e-324"):
        eh.effort(table(predictions="s"), trajectory=["y1", "y2", "y3"], unit=5e-324, min_count=1)


def test_lists_in_place_of_a_column_are_of_one_length() -> None:
    with pytest.raises(EvenhandError, match="must be one a row; got lists of several lengths"):
        table(predictions=[[], "s"])


def test_a_relation_over_a_column_of_several_types_is_refused() -> None:
    mixed = duckdb.from_df(pd.DataFrame({"g": ["a", "b"] * 6, "d": [True, *[0, 1] * 5, 0]}))
    with pytest.raises(DataError, match="a column of it holds Python values of several types; give it one"):
        eh.Table(mixed, groups="g", predictions="d")


@pytest.mark.parametrize("odd", [None, -1, "x", [1], {"g": 1}])
@pytest.mark.parametrize(
    "path",
    [
        *[("data",), ("plan",), ("data", "rows"), ("data", "groups", "g"), ("data", "groups", "g", "a")],
        *[("data", "files"), ("config", "data"), ("config", "data", "predictions", "m")],
        *[("config", "data", "predictions", "m", "threshold"), ("config", "data", "predictions", "m", "favourable")],
        *[("findings", 0, name) for name in ("verdict", "metric", "model", "sentence_id", "arguments", "reason")],
        *[("findings", 0, name) for name in ("value", "joint_low", "family", "threshold", "limit")],
        *[("findings", 0, "headline", "args"), ("findings", 0, "threshold", "args"), ("config", "data", "outcome")],
        *[("audits", "parity", "values", 0, name) for name in ("n", "value", "metric", "group", "status")],
        *[("audits", "parity", "gaps", 0, name) for name in ("kind", "low", "p_value", "metric", "grouping")],
        *[("audits", "parity", "notes"), ("audits", "parity", "calibration"), ("profiles",), ("extras",)],
    ],
)
def test_saved_results_are_refused_or_can_be_shown(path: tuple[Any, ...], odd: Any, tmp_path: Path) -> None:
    place = copy_of_saved(tmp_path)
    written = json.loads((place / "results.json").read_text(encoding="utf-8"))
    inner = written
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = odd
    seal(place, json.dumps(written))
    with suppress(EvenhandError):  # some of the values are as sound as those they replace
        make_files(eh.Audit.load(place), ("html", "md"))


def test_a_gap_in_effort_without_its_model_is_refused(tmp_path: Path) -> None:
    audit = eh.audit(table(predictions="s"), effort={"trajectory": ["y1", "y2", "y3"], "min_count": 1})
    audit.save(tmp_path, formats=())
    written = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    written["audits"]["effort"]["gaps"][0]["model"] = None
    seal(tmp_path, json.dumps(written))
    with pytest.raises(EvenhandError, match="model"):
        eh.Audit.load(tmp_path)


def test_a_sentence_that_is_unknown_is_refused(tmp_path: Path) -> None:
    place = copy_of_saved(tmp_path)
    written = json.loads((place / "results.json").read_text(encoding="utf-8"))
    written["findings"][0]["headline"] = {"id": "x", "args": {}, "text": "y"}
    seal(place, json.dumps(written))
    with pytest.raises(EvenhandError, match="the sentence 'x' cannot be written with its arguments"):
        eh.Audit.load(place)


def test_a_sentence_without_an_argument_is_refused(tmp_path: Path) -> None:
    place = copy_of_saved(tmp_path)
    written = json.loads((place / "results.json").read_text(encoding="utf-8"))
    headline = written["findings"][0]["headline"]
    headline["args"].popitem()
    seal(place, json.dumps(written))
    with pytest.raises(EvenhandError, match=rf"the sentence '{headline['id']}' cannot be written with its arguments"):
        eh.Audit.load(place)


@pytest.mark.parametrize("groups", ["1", "[1]", "{ a = 1 }", '["g", "g"]'])
def test_groups_of_a_plan_are_names_of_columns(groups: str, tmp_path: Path) -> None:
    (tmp_path / "audit.toml").write_text(AUDIT_TOML.replace('["g"]', groups, 1), encoding="utf-8")
    with pytest.raises(EvenhandError, match="`groups"):
        plan_power(tmp_path / "audit.toml", 200)


@pytest.mark.parametrize("confidence", [0.01, 0.1])
def test_limits_of_a_study_hold_their_value_at_a_low_confidence(confidence: float) -> None:
    require_lawful(eh.study.analyze(answers(), resamples=100, min_count=1, confidence=confidence))


def test_a_bonus_by_huge_scores_goes_to_the_highest() -> None:
    found = bonus([1e300, 2e300, np.nan, -1e305, 0.5], share=0.25)
    assert found.chosen.tolist() == [False, True, False, False, False]
    assert found.rank.tolist() == [2, 1, 0, 4, 3]


def test_a_plan_of_a_name_that_no_file_can_have_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("audit.toml").write_text(AUDIT_TOML, encoding="utf-8")
    with pytest.raises(SystemExit, match="2"):
        main(["plan", "audit.toml", "--out", "x" * 300])
    assert capsys.readouterr().err == "Error: the folder '.' cannot be written to: File name too long.\n"


@pytest.mark.parametrize("confidence", [5e-324, 1e-9])
def test_a_confidence_of_nothing_is_refused(confidence: float) -> None:
    with pytest.raises(ConfigError, match=r"`confidence` .* greater than or equal to 0\.001"):
        eh.parity(table(predictions="d"), confidence=confidence)


def test_joint_limits_are_no_narrower_than_those_of_one_gap() -> None:
    columns = {
        "g": list("abaaaaaaaaaaaaabbbbabbbabaa"),
        "s": [0, 1, 0, 1, *[0] * 15, 1, 1, 1, 1, 0, 1, 0, 1],
        "d": [0, 1, *[0] * 22, 1, 0, 0],
    }
    people = eh.Table(columns, groups="g", predictions={"m": {"column": "s", "kind": "score"}}, outcome="d")
    require_lawful(eh.parity(people, metrics=["selection_rate", "tpr"], resamples=100, min_count=1))


def test_limits_at_a_level_without_spread_are_unbounded_if_those_of_the_mean_are() -> None:
    draws = Draws(np.zeros(3), np.column_stack([np.zeros(200), *np.random.default_rng(1).normal(size=(2, 200))]))
    found = gap_of(draws, mean_limits=(-np.inf, np.inf))
    assert np.isneginf(found.pointwise.low).all()
    assert np.isposinf(found.pointwise.high).all()
