"""The page of an overview: whole, escaped, and with everything that the table has."""

from __future__ import annotations

from html.parser import HTMLParser

from msgspec.structs import replace

from library import clusters
from podqos.library.overview import overview
from podqos.report.cluster.html import html


class _Reader(HTMLParser):
    """Collects the text, and what was opened and not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag, _attributes) -> None:
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        self.text += data


def read(lines) -> _Reader:
    reader = _Reader()
    reader.feed("\n".join(lines))
    assert reader.open == []
    return reader


def test_the_page_has_every_node_with_the_pods_that_die_next():
    whole = overview(clusters.snapshot())
    text = read(html(whole)).text

    for node in whole.nodes:
        assert node.name in text
        assert node.next_evicted.pod in text
    assert whole.verdict in text
    assert "headroom" in text


def test_names_are_escaped_and_nothing_is_fetched():
    whole = overview(clusters.snapshot())
    odd = replace(whole.nodes[0], name="<script>alert(1)</script>", conditions=("<b>",))
    page = "\n".join(html(replace(whole, nodes=(odd,), verdict="<i>")))

    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "http" not in page


def test_a_cluster_without_pods_or_figures_has_a_page():
    whole = overview(clusters.snapshot())
    bare = replace(whole.nodes[0], headroom_bytes=None, next_evicted=None, next_killed=None, most_pods=None, pods=0)
    lost = replace(bare, conditions=("NotReady",))

    assert "NotReady" in read(html(replace(whole, nodes=(lost,), namespaces=()))).text
