"""Strategic merge patches as the API machinery applies them."""

import pytest

from podqos.manifest.strategic_merge import UnknownDirective, merged


@pytest.mark.parametrize(
    ("original", "patch", "expected"),
    [
        pytest.param({"a": 1, "b": {"c": 2}}, {"b": {"d": 3}}, {"a": 1, "b": {"c": 2, "d": 3}}, id="mappings merge"),
        pytest.param({"a": 1, "b": 2}, {"a": None, "c": None}, {"b": 2}, id="null removes"),
        pytest.param({"args": [1, 2]}, {"args": [3]}, {"args": [3]}, id="a list without a key is replaced"),
        pytest.param({"a": {"b": 1}}, {"a": {"$patch": "replace", "c": 2}}, {"a": {"c": 2}}, id="replace"),
        pytest.param({"a": {"b": 1}}, {"a": {"$patch": "delete"}}, {"a": {}}, id="delete empties"),
        pytest.param({"a": {"b": 1}}, {"a": {"$patch": "merge", "c": 2}}, {"a": {"b": 1, "c": 2}}, id="merge"),
        pytest.param({"a": 1}, {"a": {"b": 2}}, {"a": {"b": 2}}, id="another type replaces"),
        pytest.param(
            {"containers": [{"name": "a", "image": "x"}, {"name": "b"}]},
            {"containers": [{"name": "c"}, {"name": "a", "tty": True}]},
            {"containers": [{"name": "a", "image": "x", "tty": True}, {"name": "b"}, {"name": "c"}]},
            id="items merge by name, others are added",
        ),
        pytest.param(
            {"containers": [{"name": "a"}, {"name": "b"}]},
            {"containers": [{"name": "a", "$patch": "delete"}]},
            {"containers": [{"name": "b"}]},
            id="an item is deleted",
        ),
        pytest.param(
            {"containers": [{"name": "a"}]},
            {"containers": [{"$patch": "replace"}, {"name": "b"}]},
            {"containers": [{"name": "b"}]},
            id="a list is replaced",
        ),
        pytest.param(
            {"ports": [{"containerPort": 80, "name": "web"}]},
            {"ports": [{"containerPort": 80, "protocol": "UDP"}]},
            {"ports": [{"containerPort": 80, "name": "web", "protocol": "UDP"}]},
            id="ports merge by number",
        ),
        pytest.param({"tolerations": [{"key": "a"}]}, {"tolerations": []}, {"tolerations": []}, id="tolerations"),
    ],
)
def test_a_patch_is_applied_as_the_api_machinery_does(original, patch, expected):
    assert merged(original, patch) == expected


def test_neither_side_is_changed():
    original, patch = {"containers": [{"name": "a"}]}, {"containers": [{"name": "a", "tty": True}]}
    merged(original, patch)
    assert (original, patch) == ({"containers": [{"name": "a"}]}, {"containers": [{"name": "a", "tty": True}]})


def test_a_directive_that_is_not_known_is_refused():
    with pytest.raises(UnknownDirective, match="setElementOrder"):
        merged({}, {"$setElementOrder/containers": [{"name": "a"}]})
