"""The findings of the page, grouped by check."""

from __future__ import annotations

import json

from podqos.advice.checks import trying
from podqos.answers.page.check import FixRequest
from podqos.web.ui.pages import page_about
from podqos.web.ui.source_files import read_given

GUARANTEED = {"cpu": "1", "memory": "1Gi"}


def _pod(name: str, container: dict[str, object], **spec: object) -> dict[str, object]:
    main = {"name": "app", "image": "app", **container}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"containers": [main], **spec},
    }


def _page(*objects: dict[str, object]):
    text = json.dumps({"kind": "List", "apiVersion": "v1", "items": objects})
    return page_about(read_given({"all.json": text.encode()}))


def _limited(name: str) -> dict[str, object]:
    return _pod(name, {"resources": {"limits": GUARANTEED}})


def _bare(name: str) -> dict[str, object]:
    return _pod(name, {})


def test_every_finding_is_in_exactly_one_group_and_the_most_severe_come_first():
    view = _page(*(_limited(f"web-{number}") for number in range(4)), _bare("shell")).check()
    assert sorted(index for group in view.groups for index in group.items) == list(range(len(view.items)))
    for group in view.groups:
        assert {view.items[index].check for index in group.items} == {group.check}
    order = ["error", "warning", "info"]
    severities = [order.index(group.severity) for group in view.groups]
    assert severities == sorted(severities)
    same = [len(group.items) for group in view.groups if group.severity == "info"]
    assert same == sorted(same, reverse=True)


def test_a_group_names_some_objects_and_counts_the_rest():
    view = _page(*(_limited(f"web-{number}") for number in range(4))).check()
    group = next(group for group in view.groups if group.check == "PQ106")
    assert group.objects == 4
    assert group.subjects == "Pod shop/web-0, Pod shop/web-1 and 2 more"


def test_what_all_findings_of_a_group_have_in_common_is_in_the_group():
    view = _page(_limited("web-0"), _limited("web-1")).check()
    group = next(group for group in view.groups if group.check == "PQ106")
    assert group.reason == view.items[group.items[0]].reason == view.items[group.items[1]].reason
    assert "resources.requests.memory: 1Gi" in group.patch
    other = _pod("web-2", {"resources": {"limits": {"cpu": "1", "memory": "2Gi"}}})
    mixed = next(each for each in _page(_limited("web-0"), other).check().groups if each.check == "PQ106")
    assert mixed.reason == ""
    assert "requests.memory" not in mixed.patch


def test_one_request_fixes_all_findings_of_a_group():
    page = _page(*(_limited(f"web-{number}") for number in range(3)), _bare("shell"))
    group = next(group for group in page.check().groups if group.check == "PQ106")
    assert (group.fixable, group.fix) == (3, "Fix all 3")
    fixed = page.fix(FixRequest(checks=("PQ106",)))
    assert fixed.remaining == 0
    assert len(fixed.files[0].findings) == 3
    unfixable = next(group for group in page.check().groups if group.check == "PQ102")
    assert (unfixable.fixable, unfixable.fix) == (0, "")


def test_in_a_large_tree_a_fix_is_tried_when_it_is_asked_for(monkeypatch):
    monkeypatch.setattr(trying, "_TREE", 1)
    monkeypatch.setattr(trying, "_LARGEST_TREE", 2)
    page = _page(*(_limited(f"web-{number}") for number in range(3)))
    view = page.check()
    group = next(group for group in view.groups if group.check == "PQ106")
    assert not any(view.items[index].is_fixed for index in group.items)
    assert group.patch == "With this many objects, a fix is tried only when you ask for it."
    assert group.fix == "Fix all 3"
    assert len(page.fix(FixRequest(checks=("PQ106",))).files[0].findings) == 3
