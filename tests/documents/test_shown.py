"""What a page shows is compared with what is printed, and recorded again where that has changed."""

from __future__ import annotations

import pytest

from documents.commands import blocks, prose
from documents.shown import difference, shown_again

PRINTED = "web.yaml\n  1:1  warning  PQ101\n    why  no limit\n\n1 finding\n"


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        pytest.param(["web.yaml", "  1:1  warning  PQ101", "    why  no limit", "1 finding"], None, id="all"),
        pytest.param(["web.yaml", "…"], None, id="beginning"),
        pytest.param(["…", "1 finding"], None, id="end"),
        pytest.param(["web.yaml", "…", "1 finding"], None, id="middle-left-out"),
        pytest.param(["web.yaml"], "not shown:   1:1  warning  PQ101", id="more-is-printed"),
        pytest.param(["web.yaml", "1 finding"], "not shown:   1:1  warning  PQ101", id="gap"),
        pytest.param(["…", "2 findings"], "not printed: 2 findings", id="another-line"),
        pytest.param(["…", "1 finding", "web.yaml"], "not printed: web.yaml", id="another-order"),
    ],
)
def test_the_first_difference_is_named(shown, said):
    assert difference(shown, PRINTED) == said


@pytest.mark.parametrize(
    ("shown", "again"),
    [
        pytest.param(["old", "lines"], PRINTED.splitlines(), id="all"),
        pytest.param(
            ["web.yaml", "  1:1  warning", "…"],
            ["web.yaml", "  1:1  warning  PQ101", "…"],
            id="beginning",
        ),
        pytest.param(["…", "    why  no limits", "…"], ["…", "    why  no limit", "…"], id="middle"),
        pytest.param(["…", "3 findings"], ["…", "1 finding"], id="end"),
    ],
)
def test_a_page_shows_the_same_part_of_a_new_output(shown, again):
    recorded = shown_again(shown, PRINTED)
    assert recorded == again
    assert difference([line for line in recorded if line], PRINTED) is None


def test_blocks_are_found_with_their_lines_and_prose_without_them():
    page = "Text\n\n    $ podqos help\n    out\n\nMore `code`\n\n```sh\nls\n```\n- item\n\n      make x\n"
    assert [*blocks(page)] == [(3, "", ["$ podqos help", "out"]), (9, "sh", ["ls"]), (13, "", ["make x"])]
    assert prose(page).split() == ["Text", "More", "`code`", "-", "item"]
