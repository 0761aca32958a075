from __future__ import annotations

import pytest

from podqos.model.duration import InvalidDuration, parse_duration


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("0", 0),
        ("0s", 0),
        ("100ms", 100_000),
        ("1m30s", 90_000_000),
        ("1.5h", 5_400_000_000),
        (".5s", 500_000),
        ("1500ns", 1),
        ("7µs", 7),
        ("-2s", -2_000_000),
        ("+2s", 2_000_000),
    ],
)
def test_durations_are_read_as_go_writes_them(text, microseconds):
    assert parse_duration(text) == microseconds


@pytest.mark.parametrize("text", ["", "5", "5 minutes", "m", "1m 30s", "1d", "--1s", "s5"])
def test_what_go_would_not_read_is_refused(text):
    with pytest.raises(InvalidDuration, match="not a duration"):
        parse_duration(text)
