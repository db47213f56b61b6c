"""Calibration profiles: found by scorer, honest about the settings they were made with."""

from dataclasses import replace

import pytest

from gasp_engine import GroundingChecker
from gasp_engine.detectors import Profile, load_profile, packaged_profiles
from gasp_engine.errors import ModelLoadError
from gasp_engine.scorers.base import ScorerInfo
from gasp_engine.scorers.table import TableScorer

EMBEDDED = ScorerInfo("embedded", "x", "float32", "cpu", "mask", "paper")
DAM = "The dam opened in 1931."


@pytest.fixture
def scorer():
    return TableScorer.from_log_prob(lambda q, context, i, t: -0.01 if DAM in context else -5.0)


def test_every_packaged_profile_says_how_it_was_made_and_reads_back():
    profiles = packaged_profiles()
    assert {"embedded", "Qwen/Qwen2.5-0.5B-Instruct"} <= {p.scorer for p in profiles}
    for profile in profiles:
        assert profile.source["command"].startswith("gasp-engine calibrate ")
        assert profile.source["data"]
        assert profile.source["date"]
        assert Profile.from_dict(profile.to_dict()) == profile


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_profile_nearest_in_settings_is_found(dtype):
    profile = load_profile(replace(EMBEDDED, dtype=dtype))
    assert profile.settings["dtype"] == dtype
    assert profile.mismatches(replace(EMBEDDED, dtype=dtype)) == []
    assert load_profile(replace(EMBEDDED, name="another")) is None


def test_other_settings_give_a_warning_that_names_both(scorer):
    (warning,) = load_profile(EMBEDDED).mismatches(replace(EMBEDDED, mode="cached", prompt="chat"))
    for named in ("'mask'", "'cached'", "'paper'", "'chat'"):
        assert named in warning
    report = GroundingChecker(scorer, profile=load_profile(EMBEDDED)).check("q", [DAM], DAM)
    assert any("'embedded'" in w and "'table'" in w for w in report.warnings)
    assert report.probability is not None


def test_a_profile_of_published_features_lends_its_statistics_alone(scorer):
    profile = next(p for p in packaged_profiles() if p.is_partial)
    report = GroundingChecker(scorer, profile=profile).check("q", [DAM], DAM)
    assert any("likelihoods alone" in w for w in report.warnings)
    assert report.probability is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": 1'])
def test_a_file_that_is_no_profile_is_refused_with_its_path(tmp_path, text):
    path = tmp_path / "p.json"
    path.write_text(text)
    with pytest.raises(ModelLoadError, match=r"p\.json is not a calibration profile"):
        Profile.load(path)


def test_a_profile_is_found_by_its_name_and_a_missing_one_names_them_all():
    assert Profile.load("embedded-mask-paper-float32").scorer == "embedded"
    with pytest.raises(ModelLoadError, match="neither a file nor one of embedded-mask"):
        Profile.load("nowhere.json")
