"""The hook writes what it is told and never gets in the way of a training."""

import json
from pathlib import Path

import pytest

from trainmaster import hook


def test_a_report_is_one_line_with_all_numbers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    file = tmp_path / "metrics.jsonl"
    monkeypatch.setenv("TM_METRICS_FILE", str(file))
    assert hook.report(10, loss=2.5, tokens_per_s=100)
    assert hook.report(11, loss=float("nan"))
    first, second = map(json.loads, file.read_text().splitlines())
    assert (first["step"], first["loss"], first["tokens_per_s"]) == (10, 2.5, 100)
    assert (second["step"], second["loss"]) == (11, "nan")


def test_outside_a_job_nothing_is_written(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("TM_METRICS_FILE", raising=False)
    assert not hook.report(1, loss=1.0)


def test_a_file_that_cannot_be_written_does_not_raise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("TM_METRICS_FILE", str(tmp_path / "no" / "such" / "folder"))
    assert not hook.report(1, loss=1.0)


def test_numbers_that_are_none_do_not_raise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("TM_METRICS_FILE", str(tmp_path / "m"))
    assert not hook.report(1, loss="much")  # pyright: ignore[reportArgumentType]


def test_the_restore_point_is_read_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("TM_RESUME_FROM", "/ckpt/step-5")
    monkeypatch.setenv("TM_RESUME_STEP", "5")
    assert (hook.resume_path(), hook.resume_step()) == ("/ckpt/step-5", 5)
    monkeypatch.setenv("TM_RESUME_FROM", "")
    monkeypatch.setenv("TM_RESUME_STEP", "")
    assert (hook.resume_path(), hook.resume_step()) == (None, 0)
