from __future__ import annotations

import pytest

from podqos.model.selector import LabelSelector, LabelSelectorRequirement, selects


def requirement(key: str, operator: str, *values: str) -> LabelSelector:
    return LabelSelector(match_expressions=(LabelSelectorRequirement(key, operator, values),))


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        pytest.param(None, {}, False, id="an absent selector selects nothing"),
        pytest.param(LabelSelector(), {}, True, id="an empty one selects everything"),
        pytest.param(LabelSelector({"app": "web"}), {"app": "web", "tier": "front"}, True, id="label"),
        pytest.param(LabelSelector({"app": "web"}), {"app": "db"}, False, id="another value"),
        pytest.param(LabelSelector({"app": "web", "v": "1"}), {"app": "web"}, False, id="every label counts"),
        pytest.param(requirement("app", "In", "a", "b"), {"app": "b"}, True, id="In"),
        pytest.param(requirement("app", "In", "a", "b"), {}, False, id="In needs the label"),
        pytest.param(requirement("app", "NotIn", "a"), {"app": "a"}, False, id="NotIn"),
        pytest.param(requirement("app", "NotIn", "a"), {}, True, id="NotIn holds without the label"),
        pytest.param(requirement("app", "Exists"), {"app": ""}, True, id="Exists"),
        pytest.param(requirement("app", "DoesNotExist"), {"app": ""}, False, id="DoesNotExist"),
        pytest.param(requirement("app", "Near", "a"), {"app": "a"}, False, id="an unknown operator selects nothing"),
    ],
)
def test_selectors_select_by_every_condition(selector, labels, expected):
    assert selects(selector, labels) is expected
