"""The colours of pods."""

from __future__ import annotations

import pytest

from podqos.answers.palette import SHADES, shade
from podqos.model.pod import QOSClass


@pytest.mark.parametrize(
    "pod", ["shop/web-0", "shop/web-0-r1", "shop/web-17", "shop/web-x2x4z", "shop/web-5d9c7bd4f-x2x4z"]
)
def test_replicas_have_the_colour_of_their_workload(pod):
    assert shade(QOSClass.BURSTABLE, pod) == shade(QOSClass.BURSTABLE, "shop/web")


def test_a_word_at_the_end_of_a_name_is_not_taken_for_what_a_controller_adds():
    assert len({shade(QOSClass.BURSTABLE, f"shop/{name}") for name in ("search-api", "search-worker", "search")}) > 1


@pytest.mark.parametrize("qos_class", list(QOSClass))
def test_pods_of_a_class_are_spread_over_all_of_its_shades(qos_class):
    found = {shade(qos_class, f"team-{number % 7}/service-{number}-api") for number in range(200)}
    assert found == set(SHADES[qos_class])


def test_no_two_classes_share_a_colour():
    assert len({colour for shades in SHADES.values() for colour in shades}) == sum(map(len, SHADES.values()))


@pytest.mark.parametrize("colour", [colour for shades in SHADES.values() for colour in shades])
def test_a_colour_stands_out_from_a_light_and_from_a_dark_page(colour):
    for page, least in (("#ffffff", 2.0), ("#171e27", 2.5)):
        one, other = sorted((_luminance(colour), _luminance(page)))
        assert (other + 0.05) / (one + 0.05) >= least


def _luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
