"""Options shared by several commands: same spelling and help everywhere, and the functions that parse their values.

An option that holds a value is read while the command line is parsed (``add_value_option``): a command sees the value.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from podqos.cli.spelling import spelled
from podqos.errors import InputError, InvalidOption, InvalidQuantity
from podqos.manifest.written_amounts import positive_number
from podqos.model.node import LEAST_NODE_BYTES, MOST_NODE_BYTES
from podqos.model.profile import NEWEST, RECORDED, parse_version, version_text
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY, ResourceList

if TYPE_CHECKING:
    from fractions import Fraction

    from podqos.model.policy import PriorityClass, RuntimeClass
    from podqos.objects.kubelet_node import Kubelet
    from podqos.reading.files import Rendering

Parser = argparse._ActionsContainer  # noqa: SLF001 - what a parser and a group of options have in common
_DEFAULT = version_text(RECORDED)
_NEWEST = version_text(NEWEST)
_MOST_IN_BRACES = 6
_MOST_PORT, _PORT_DIGITS = 65_535, 5
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_PER_US = {
    **dict.fromkeys(("", "s", "sec", "second", "seconds"), 10**6),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60 * 10**6),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3600 * 10**6),
}
_LONG_UNIT = re.compile(r"(?<=[0-9]) *(secs?|seconds?|mins?|minutes?|hrs?|hours?|days?)\b", re.IGNORECASE)
_UNKNOWN = frozenset({"n/a", "na", "unknown", "?", "null"})
_MOST_NODES = 1_000_000
_RATE = "for example 128Mi/s, 2Gi/h or 8Gi/2s"

# ---- declared ----------------------------------------------------------------------------------------------------


def add_class_options(parser: Parser) -> None:
    """Declare ``--priority`` and ``--runtime-class``, for classes of the cluster that are in no file."""
    about = "value of a PriorityClass of the cluster (default: 0 if it is in no file)"
    add_list_option(parser, "--priority", "NAME=VALUE", about)
    about = "overhead of a RuntimeClass of the cluster (default: none if it is in no file)"
    add_list_option(parser, "--runtime-class", "NAME=cpu=250m,memory=120Mi", about)


def add_version_option(parser: Parser) -> None:
    """Declare ``--kubernetes-version``."""
    about = f"apply the rules of this Kubernetes version; {_NEWEST} is approximate"
    parser.add_argument("--kubernetes-version", metavar="X.Y", help=f"{about} (default: the cluster's, or {_DEFAULT})")


def add_layout_option(parser: Parser) -> None:
    """Declare ``--layout``."""
    from podqos.eviction.signals import Layout

    about = (
        "separate filesystems: for images and containers (dedicated), images only (split), containers "
        "only (containers-apart)"
    )
    add_choice_option(parser, "--layout", Layout, about, Layout.SINGLE)


def add_cgroup_option(parser: Parser) -> None:
    """Declare ``--cgroup``."""
    from podqos.qos.cgroup_settings import CgroupVersion

    add_choice_option(parser, "--cgroup", CgroupVersion, "cgroup version", CgroupVersion.V2)


def add_policy_option(parser: Parser, about: str = "how the kubelet ranks pods") -> None:
    """Declare ``--policy``."""
    from podqos.eviction.ranking import Policy

    add_choice_option(parser, "--policy", Policy, f"{about} (default: by Kubernetes version)")


def add_kubelet_option(
    parser: Parser,
    *other_names: str,
    dest: str = "kubelet_config",
    metavar: str = "FILE",
    default: str = "the kubelet's defaults",
) -> None:
    """Declare ``--kubelet-config``; ``other_names`` are additional spellings of a command."""
    parser.add_argument(
        *other_names,
        "--kubelet-config",
        dest=dest,
        metavar=metavar,
        help=(
            "the kubelet's configuration: a KubeletConfiguration, the output of /configz, or OKD's "
            f"kubeletArguments (default: {default})"
        ),
    )


def add_node_memory_option(
    parser: Parser, about: str = "the node's memory", default: str = "that of the smallest Node in the files, or 64Gi"
) -> None:
    """Declare ``--node-memory``; for the default see ``objects.assumptions``."""
    about = f"{about} (default: {default})"
    parser.add_argument("--node-memory", metavar="QUANTITY", type=stated_node_memory, help=about)


def add_cores_option(parser: Parser, about: str) -> None:
    """Declare ``--cores``."""
    add_value_option(parser, "--cores", cores_option, about, "N")


def add_counted_nodes_options(parser: Parser) -> None:
    """Declare both options."""
    parser.add_argument(
        "--nodes", type=int, metavar="N", help="add N nodes of --node-capacity to those in the manifests"
    )
    about = "capacity of each of the --nodes"
    add_value_option(parser, "--node-capacity", capacity_option, about, "cpu=16,memory=64Gi,pods=110")


def add_scenario_argument(
    parser: Parser, about: str = "a scenario file, or the name of a built-in scenario", metavar: str = "SCENARIO"
) -> None:
    """Declare the scenario argument."""
    parser.add_argument("scenario", nargs="?", metavar=metavar, help=about)


def add_render_option(parser: Parser, about: str) -> None:
    """Declare ``--render``, which does what ``about`` says."""
    parser.add_argument("--render", action="store_true", help=f"{about} (default: skip them)")


def rendering_of(arguments: argparse.Namespace) -> Rendering:
    """Return which kustomizations and charts a command renders."""
    from podqos.reading.files import Rendering

    return Rendering(arguments.render, tuple(getattr(arguments, "kustomize", ())))


def add_hold_placement_option(parser: Parser) -> None:
    """Declare ``--hold-placement``, with which a raised threshold displaces no pod."""
    about = (
        "place pods by the scenario's own kubelet settings: changed thresholds and reservations then affect "
        "when pods are evicted, not which pods fit"
    )
    parser.add_argument("--hold-placement", action="store_true", help=about)


def add_patch_option(parser: Parser) -> None:
    """Declare ``--patch``."""
    about = "print patches: kubectl commands, kustomize files, or JSON patches"
    parser.add_argument("--patch", choices=("kubectl", "kustomize", "json"), help=about)


def add_list_option(parser: Parser, name: str, metavar: str, about: str) -> None:
    """Declare an option that may be repeated."""
    parser.add_argument(name, metavar=metavar, action="append", default=[], help=f"{about}; may be repeated")


def add_choice_option(
    parser: Parser, name: str, kind: type[StrEnum], about: str, default: StrEnum | None = None
) -> None:
    """Declare an option whose value is a member of an enumeration."""
    choices = [each.value for each in kind]

    def read(text: str) -> StrEnum | str:
        return kind(text) if text in choices else text

    # Many choices are listed in the help, where they can be wrapped.
    is_long = len(choices) > _MOST_IN_BRACES
    about = f"{about}: {', '.join(choices)}" if is_long else about
    metavar = name.lstrip("-").upper() if is_long else None
    parser.add_argument(
        name, choices=choices, type=read, default=default, metavar=metavar, help=_with_default(about, default)
    )


def add_value_option(
    parser: Parser,
    name: str,
    read: Callable[[str, str], object],
    about: str,
    metavar: str = "QUANTITY",
    *,
    default: str | None = None,
) -> None:
    """Declare an option whose value ``read`` parses, given its text and the option's name."""
    described = _with_default(about, default)
    parser.add_argument(name, metavar=metavar, type=lambda text: read(text, name), default=default, help=described)


def _with_default(about: str, default: str | None) -> str:
    return about if default is None else f"{about} (default: {default})"


# ---- read --------------------------------------------------------------------------------------------------------


def cpu_option(text: str, option: str, example: str = "16") -> Quantity:
    """Read an amount above zero, such as of cores: ``16`` or ``3500m``."""
    amount = _quantity(text, option, f"for example {example}")
    if amount.sign <= 0:
        raise InvalidOption(f"must be above zero, not {text}", where=option, fix=f"for example {example}")
    return amount


def _quantity(text: str, option: str, example: str) -> Quantity:
    try:
        return Quantity.parse(text.strip())
    except InvalidQuantity as error:
        is_unknown = text.strip().lower() in _UNKNOWN
        fix = "leave the option out if it is unknown" if is_unknown else error.fix or example
        raise InvalidOption(f"{text!r} is not a valid quantity", where=option, fix=fix) from error


def amount_option(text: str, option: str, example: str = "64Gi") -> int:
    """Read a quantity above zero, such as an amount of memory, in whole units."""
    return cpu_option(text, option, example).value


def amount_or_zero_option(text: str, option: str) -> int:
    """Read a quantity that may be zero, such as memory used outside pods, in whole units."""
    amount = _quantity(text, option, "for example 1Gi")
    if amount.sign < 0:
        raise InvalidOption(f"{text} is below zero", where=option, fix="for example 1Gi")
    return amount.value


def milli_option(text: str, option: str) -> int:
    """Read a number of cores above zero, in thousandths."""
    return cpu_option(text, option, "16 or 500m").milli_value


def stated_node_memory(text: str) -> int:
    """Read the memory of a node."""
    given = amount_option(text, "--node-memory")
    if not LEAST_NODE_BYTES <= given <= MOST_NODE_BYTES:
        what = f"{given} bytes is too little memory for a node"
        if given > MOST_NODE_BYTES:
            what = f"{text} is more memory than any node has"
        raise InvalidOption(what, where="--node-memory", fix="for example 64Gi")
    return given


def cores_option(text: str, option: str) -> Fraction:
    """Read a number of cores."""
    from fractions import Fraction

    return Fraction(milli_option(text, option), 1000)


def address_option(text: str, option: str) -> tuple[str, int]:
    """Return the address and port to listen on; port 0 is any free port."""
    host, colon, port = text.rpartition(":")
    if not colon or not is_port(port):
        raise InvalidOption(f"{text!r} is not a valid address", where=option, fix="for example 0.0.0.0:8443")
    return host.strip("[]"), int(port)


def count_option(text: str, option: str) -> int:
    """Read how many of something are shown."""
    if not text.isdecimal() or not int(text):
        raise InvalidOption(f"{text!r} is not a number above zero", where=option, fix="for example 10")
    return int(text)


def node_count(arguments: argparse.Namespace) -> int | None:
    """Return how many nodes are added, or None."""
    count: int | None = arguments.nodes
    if count is None:
        if arguments.node_capacity:
            raise InvalidOption("the number of nodes is missing", where="--node-capacity", fix="add --nodes N")
        return None
    if not 0 <= count <= _MOST_NODES:
        raise InvalidOption(f"{count} is not a valid number of nodes", where="--nodes", fix=f"use 1 to {_MOST_NODES}")
    if not arguments.node_capacity:
        raise InvalidOption(
            "the capacity of the nodes is missing", where="--nodes", fix="add --node-capacity cpu=16,memory=64Gi"
        )
    return count


def check_name(name: str) -> None:
    """Raise if a text cannot name a file and the object in it."""
    if not _NAME.fullmatch(name):
        raise InvalidOption(
            f"{name!r} is not a valid name", where="NAME", fix="use lower-case letters, digits and hyphens"
        )


def port_option(text: str, option: str) -> int:
    """Read the number of a port; 0 is any that is free."""
    if not is_port(text):
        raise InvalidOption(f"{text!r} is not a port", where=option, fix="a number up to 65535, for example 8080")
    return int(text)


def is_port(text: str) -> bool:
    """Whether it is the number of a port; 0 is any that is free."""
    return text.isdecimal() and len(text) <= _PORT_DIGITS and int(text) <= _MOST_PORT


def duration_option(text: str, option: str, least_us: int = 1) -> int:
    """Return a time above zero in microseconds."""
    from podqos.manifest.times import parse_duration_us

    try:
        duration_us = parse_duration_us(_LONG_UNIT.sub(lambda unit: unit[1][0].lower(), text))
    except InputError as error:
        raise InvalidOption(error.what, where=option, fix=error.fix) from error
    if duration_us < least_us:
        raise InvalidOption(f"{text} is not positive", where=option, fix="for example 90s or 2h")
    return duration_us


def rate_option(text: str, option: str) -> int:
    """Read a growth rate, such as ``128Mi/s`` or ``8Gi/2s``, as bytes per second."""
    quantity, slash, per = text.partition("/")
    if (slash and not per) or not quantity:
        raise InvalidOption(f"{text!r} is not a valid rate", where=option, fix=_RATE)
    try:
        per_us = _PER_US.get(per.strip().lower()) or duration_option(per.strip(), option)
    except InvalidOption:
        raise InvalidOption(f"{text!r} is not a valid rate", where=option, fix=_RATE) from None
    try:
        amount = amount_option(quantity, option, "128Mi/s")
    except InvalidOption as error:
        meant = re.sub(r"([0-9.]+[A-Za-z]+)(?=[ ?])", rf"\1/{per.strip()}" if slash else r"\1", error.fix)
        raise InvalidOption(f"{text!r} is not a valid rate", where=option, fix=meant) from None
    rate = amount * 10**6 // per_us
    if not rate:
        raise InvalidOption(f"{text!r} is less than a byte per second", where=option, fix="for example 128Mi/s")
    return rate


def share_option(text: str, option: str) -> Fraction:
    """Read a percentage, as a share."""
    return positive_number(text.removesuffix("%"), option, "percentage above 0, up to 100", "99", most=100) / 100


def growing_option(given: Sequence[str]) -> dict[str, int | None]:
    """Read what grows, each with its own rate, if any: ``pod:container=128Mi/s``."""
    found: dict[str, int | None] = {}
    for text in given:
        name, equals, rate = text.partition("=")
        if name in found:
            raise InvalidOption(f"{name} is given twice", where="--growing", fix="give each pod once")
        found[name] = rate_option(rate, "--growing") if equals else None
    return found


def kubelet_option(path: str | None, kubernetes_version: str | None = None) -> Kubelet | None:
    """Return the kubelet that a file describes; print a note about settings that have no effect in that version."""
    if path is None:
        return None
    version = None if kubernetes_version is None else parse_version(kubernetes_version).version
    # What reads a configuration takes longer to load than a pod to explain.
    from podqos.reading.kubelet_file import load_kubelet

    kubelet = load_kubelet(path, version)
    for problem in kubelet.problems:
        print(problem.worded(spelled), file=sys.stderr)
    return kubelet


def stated_classes(arguments: argparse.Namespace) -> tuple[PriorityClass | RuntimeClass, ...]:
    """Return the classes given with ``--priority`` and ``--runtime-class``."""
    if not arguments.priority and not arguments.runtime_class:
        return ()
    priorities = map(_stated_priority, arguments.priority)
    return (*priorities, *map(_stated_runtime_class, arguments.runtime_class))


def _stated_priority(text: str) -> PriorityClass:
    from podqos.admission.priority import validate_priority_class
    from podqos.model.pod import ObjectMeta
    from podqos.model.policy import PriorityClass

    name, _, value = text.rpartition("=")
    try:
        stated = PriorityClass(ObjectMeta(name), int(value))
    except ValueError:
        stated = PriorityClass()
    errors = validate_priority_class(stated)
    if errors or stated.value < -(1 << 31):
        what = errors[0].words if name and errors else f"{text!r} is not NAME=VALUE"
        raise InvalidOption(what, where="--priority", fix="for example --priority batch=1000")
    return stated


def _stated_runtime_class(text: str) -> RuntimeClass:
    from podqos.model.pod import ObjectMeta
    from podqos.model.policy import Overhead, RuntimeClass

    name, _, amounts = text.partition("=")
    overhead = {}
    for part in filter(None, amounts.split(",")):
        resource, _, amount = part.partition("=")
        fix = "for example --runtime-class kata=cpu=250m,memory=120Mi"
        overhead[resource.strip()] = _quantity(amount, "--runtime-class", fix)
    if not name:
        raise InvalidOption(
            f"{text!r} does not name a class", where="--runtime-class", fix="write NAME=cpu=250m,memory=120Mi"
        )
    return RuntimeClass(ObjectMeta(name), overhead=Overhead(overhead) if overhead else None)


def capacity_option(text: str, option: str) -> ResourceList:
    """Read ``cpu=16,memory=64Gi``."""
    capacity: ResourceList = {}
    for part in text.split(","):
        name, equals, amount = part.strip().partition("=")
        if not equals:
            raise InvalidOption(f"{part!r} is not NAME=QUANTITY", where=option, fix="write cpu=16,memory=64Gi")
        capacity[name.strip()] = _quantity(amount, option, "write cpu=16,memory=64Gi")
    missing = [name for name in (CPU, MEMORY) if not capacity.get(name)]
    if missing:
        raise InvalidOption(f"missing {' and '.join(missing)}", where=option, fix="write cpu=16,memory=64Gi")
    return capacity
