"""Explain every pod in manifests: its QoS class and why, the smallest edit that would make it Guaranteed, the
oom_score_adj of its containers, its cgroups, and the same as flags of `docker run` and `podman run`.

Reads Pods, everything that holds a pod template, Lists and kubectl output, as YAML or JSON. What cannot be read is
reported on standard error as file:line:column, and the rest is explained all the same.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from msgspec import Struct

from podqos.cli import inputs
from podqos.cli.fan_out import fan_out
from podqos.cli.terminal import add_colour_option, style_for
from podqos.errors import HostError, InputError, InvalidOption, InvalidQuantity
from podqos.model.pod import QOSClass
from podqos.model.profile import NEWEST, parse_version
from podqos.model.quantity import Quantity
from podqos.report.explanation import Explanation, Settings

if TYPE_CHECKING:
    from collections.abc import Callable

OUTPUTS = ("text", "table", "wide", "csv", "json", "yaml")
