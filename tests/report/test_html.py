"""The page with a run in it."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from podqos.manifest.encoding import SLOT, embedded
from podqos.runs.view import RunView
from runs.small import RUN


def test_the_data_comes_back_out_of_the_page_as_it_went_in():
    data = embedded(f"<html>{SLOT}</html>", RUN).removeprefix('<html><script id="run" type="application/json">')
    shown = msgspec.json.decode(data.removesuffix("</script></html>"), type=RunView)
    assert shown == RUN


def test_no_name_can_end_the_script_it_stands_in():
    odd = replace(RUN, name="</script><script>alert(1)</script>", description="<!--")
    assert embedded(SLOT, odd).count("<") == SLOT.count("<")


def test_a_page_without_a_slot_is_not_the_viewer():
    with pytest.raises(AssertionError):
        embedded("<html></html>", RUN)
