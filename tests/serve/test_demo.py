"""The demo that an empty page offers: files that podqos carries, read as if a visitor had uploaded them."""

from __future__ import annotations

from podqos.page.session import views_of
from podqos.serve.sources import demo_files, read_given


def test_the_demo_is_a_scenario_without_problems_whose_names_tell_nothing_of_the_server():
    files = demo_files()
    source = read_given(files)
    assert source.name == "accidental-burstable.yaml"
    assert source.problems == ()
    assert {"cluster", "run", "forecast"} <= {*views_of(source)}
    assert not [name for name in files if name.startswith("/") or ".." in name]
