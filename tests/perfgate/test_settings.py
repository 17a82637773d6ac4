"""Settings: defaults, ranges, and errors that name the key."""

import pytest

from perfgate import settings
from perfgate.errors import SettingsError


def test_a_group_has_its_own_threshold():
    """Unless the metric has one."""
    made = settings.from_table({"groups": {"loaders": 0.5}, "thresholds": {"speedup": 0.3}})
    assert made.threshold_of("wall_seconds", "loaders") == 0.5
    assert made.threshold_of("wall_seconds", "amp") == 0.03
    assert made.threshold_of("speedup", "loaders") == 0.3


def test_defaults_without_a_file(tmp_path):
    """Nothing has to be configured."""
    assert settings.load(tmp_path) == settings.Settings()


def test_values_come_from_pyproject(tmp_path):
    """And thresholds of single metrics join the defaults."""
    text = "[tool.perfgate]\nthreshold = 0.07\n[tool.perfgate.thresholds]\noperators = 0.5\n"
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    loaded = settings.load(tmp_path)
    assert loaded.threshold_of("wall_seconds", "amp") == 0.07
    assert loaded.allowance_of("operators") == 0.5
    assert loaded.allowance_of("peak_bytes") == 0.01
    assert loaded.allowance_of("graph_breaks") == 0


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"thresold": 0.1}, "no setting 'thresold'"),
        ({"threshold": "5%"}, "threshold: expected float"),
        ({"threshold": True}, "threshold: expected float"),
        ({"threshold": -0.1}, "a fraction is expected"),
        ({"threshold": 50}, "a fraction is expected"),
        ({"threshold": float("nan")}, "a fraction is expected"),
        ({"timed_seconds": 0}, "must be more than 0"),
        ({"thresholds": {"peak_bytes": "1%"}}, "thresholds.peak_bytes: expected float"),
        ({"renamed": {"a": 1}}, "renamed.a: expected str"),
    ],
)
def test_wrong_values_name_the_key(table, said):
    """With what is expected there."""
    with pytest.raises(SettingsError, match=said):
        settings.from_table(table)


def test_a_broken_file_is_named(tmp_path):
    """Not a traceback of the TOML parser."""
    (tmp_path / "pyproject.toml").write_text("[tool.perfgate\n", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"pyproject.toml: not readable as TOML"):
        settings.load(tmp_path)
