"""Options that several commands share, spelled and explained the same everywhere."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from podqos.errors import InputError, InvalidOption, InvalidQuantity
from podqos.library.inputs.assumptions import LEAST_NODE_BYTES
from podqos.model.profile import NEWEST
from podqos.model.quantity import Quantity

if TYPE_CHECKING:
    from podqos.model.policy import PriorityClass, RuntimeClass


def add_filename_option(parser: argparse.ArgumentParser) -> None:
    """Declare ``-f``, spelled as kubectl spells it."""
    parser.add_argument(
        "-f",
        "--filename",
        dest="files",
        metavar="FILE|DIR|-",
        action="append",
        help="manifests: a file, a directory (all YAML and JSON below it), or - for standard input; may be repeated",
    )
    parser.add_argument(
        "-k",
        "--kustomize",
        dest="kustomize",
        metavar="DIR",
        action="append",
        default=[],
        help="render a kustomization or a Helm chart and read the result: runs kubectl kustomize, kustomize build or "
        "helm template; may be repeated",
    )
    parser.add_argument(
        "--render",
        action="store_true",
        help="render every kustomization and chart in the directories of -f (default: they are skipped)",
    )
    add_class_options(parser)


def add_class_options(parser: argparse.ArgumentParser) -> None:
    """Declare ``--priority`` and ``--runtime-class``: classes of the cluster that are in no file."""
    parser.add_argument(
        "--priority",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="the value of a PriorityClass of the cluster (default: 0 where it is in no file); may be repeated",
    )
    parser.add_argument(
        "--runtime-class",
        metavar="NAME=cpu=250m,memory=120Mi",
        action="append",
        default=[],
        help="the overhead of a RuntimeClass of the cluster (default: none where it is in no file); may be repeated",
    )


def stated_classes(arguments: argparse.Namespace) -> tuple[PriorityClass | RuntimeClass, ...]:
    """Return the classes that ``--priority`` and ``--runtime-class`` state."""
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
        try:
            overhead[resource.strip()] = Quantity.parse(amount)
        except InvalidQuantity as error:
            fix = "for example --runtime-class kata=cpu=250m,memory=120Mi"
            raise InvalidOption(f"{part!r}: {error.what}", where="--runtime-class", fix=fix) from error
    if not name:
        raise InvalidOption(f"{text!r} names no class", where="--runtime-class", fix="write NAME=cpu=250m,memory=120Mi")
    return RuntimeClass(ObjectMeta(name), overhead=Overhead(overhead) if overhead else None)


def add_version_option(parser: argparse.ArgumentParser) -> None:
    """Declare ``--kubernetes-version``."""
    newest = ".".join(map(str, NEWEST))
    parser.add_argument(
        "--kubernetes-version", metavar="X.Y", default=newest, help=f"whose rules to use (default: {newest})"
    )


def add_layout_option(parser: argparse._ActionsContainer) -> None:
    """Declare ``--layout``."""
    from podqos.eviction.signals import Layout

    parser.add_argument(
        "--layout",
        choices=list(Layout),
        default=Layout.SINGLE.value,
        help="which filesystems are apart: of images and containers (dedicated), of images (split) (default: single)",
    )


def add_kubelet_option(
    parser: argparse._ActionsContainer, *other_names: str, dest: str = "kubelet_config", metavar: str = "FILE"
) -> None:
    """Declare ``--kubelet-config``; ``other_names`` are spellings that a command has besides."""
    parser.add_argument(
        *other_names,
        "--kubelet-config",
        dest=dest,
        metavar=metavar,
        help="the kubelet's configuration: a KubeletConfiguration, the answer of its /configz, or OKD's "
        "kubeletArguments (default: the kubelet's defaults)",
    )


def add_schema_option(parser: argparse.ArgumentParser) -> None:
    """Declare ``--schema``."""
    parser.add_argument("--schema", action="store_true", help="print the JSON Schema of -o json and exit")


def amount_option(text: str, option: str, example: str = "64Gi") -> int:
    """Read an amount above zero, such as of memory."""
    try:
        amount = Quantity.parse(text)
    except InvalidQuantity as error:
        raise InvalidOption(f"{text!r}: {error}", where=option, fix=f"for example {example}") from error
    if amount.value <= 0:
        raise InvalidOption(f"{text!r} is not an amount above zero", where=option, fix=f"for example {example}")
    return amount.value


def cpu_option(text: str, option: str) -> Quantity:
    """Read a number of cores above zero: ``16`` or ``3500m``."""
    try:
        cores = Quantity.parse(text)
    except InvalidQuantity as error:
        raise InvalidOption(f"{text!r}: {error}", where=option, fix="for example 16") from error
    if cores.sign <= 0:
        raise InvalidOption(f"{text!r} is not an amount above zero", where=option, fix="for example 16")
    return cores


def stated_node_memory(text: str | None) -> int | None:
    """Return the node's memory where it is stated; see ``library.inputs.assumptions`` for where it is not."""
    if text is None:
        return None
    given = amount_option(text, "--node-memory")
    if given < LEAST_NODE_BYTES:
        what = f"{given} bytes are not the memory of a node"
        raise InvalidOption(what, where="--node-memory", fix="for example 64Gi")
    return given


def cores_option(text: str) -> int:
    """Read a number of cores."""
    if not text.isdecimal() or not int(text):
        raise InvalidOption(f"{text!r} is no number of cores", where="--cores", fix="a whole number, for example 16")
    return int(text)


_PER_SECONDS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600}


def duration_option(text: str, option: str) -> int:
    """Return a time above zero in microseconds."""
    from podqos.sim.scenario_format.shape_text import parse_duration_us

    try:
        duration_us = parse_duration_us(text)
    except InputError as error:
        raise InvalidOption(error.what, where=option, fix=error.fix) from error
    if duration_us <= 0:
        raise InvalidOption(f"{text} is no time at all", where=option, fix="for example 90s or 2h")
    return duration_us


def rate_option(text: str, option: str) -> int:
    """Read a growth, such as ``128Mi/s``, as bytes per second."""
    quantity, slash, per = text.partition("/")
    if (slash and per not in _PER_SECONDS) or not quantity:
        raise InvalidOption(f"{text!r} is no rate", where=option, fix="for example 128Mi/s or 2Gi/h")
    rate = amount_option(quantity, option, "128Mi/s") // _PER_SECONDS[per]
    if not rate:
        raise InvalidOption(f"{text!r} is less than a byte per second", where=option, fix="for example 128Mi/s")
    return rate
