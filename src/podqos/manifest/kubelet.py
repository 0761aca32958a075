"""A kubelet's settings in the notations they come in, all read as one ``KubeletConfiguration``.

``KubeletConfiguration`` is the kubelet's own file. Its ``/configz`` answers with the same fields below
``kubeletconfig``. OpenShift 4 has them in a ``KubeletConfig``, and OpenShift 3 in a ``NodeConfig`` (node-config.yaml),
as flags below ``kubeletArguments``. The path of each field in each notation is here, too, for messages.

Sources: openshift/origin 3.9 pkg/cmd/server/apis/config/v1/types.go (NodeConfig); openshift/api
machineconfiguration/v1/types.go (KubeletConfig); Kubernetes pkg/kubelet/server (/configz).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from podqos.errors import InputError, InvalidConfiguration
from podqos.manifest.kinds import is_kubelet
from podqos.manifest.plain import FieldPath, Plain, format_path, parse_path
from podqos.manifest.problems import Position
from podqos.model.kubelet_config import API_VERSION, KIND, KubeletConfiguration, kubelet_configuration
from podqos.model.kubelet_flags import arguments_from_words, fields_from_arguments, flag_of
from podqos.model.kubelet_ignored import Ignored, Reader, ignored_settings

_HOW = "give a KubeletConfiguration, the output of /configz, or OKD's kubeletArguments"


class Notation(Enum):
    """How a kubelet's settings are written; the value is the way from the document to them."""

    CONFIGURATION = ""
    CONFIGZ = "kubeletconfig"
    KUBELET_CONFIG = "spec.kubeletConfig"
    ARGUMENTS = "kubeletArguments"

    @property
    def path(self) -> tuple[str, ...]:
        """The way from the document to the settings, step by step."""
        return tuple(self.value.split(".")) if self.value else ()

    def place(self, field: str) -> str:
        """Return where a field of the configuration is in a document of this notation."""
        path: FieldPath = parse_path(field.replace('"', ""))
        if self is Notation.ARGUMENTS:
            path = (flag_of(str(path[0])) or "",) if path else ()
        return format_path(step for step in (*self.path, *path) if step != "")

    def words(self, text: str) -> str:
        """Return a text with the fields that it names as this notation writes them."""
        if self is not Notation.ARGUMENTS:
            return text
        # A flag without a value has its default; an empty one has nothing.
        return re.sub(r"\w+", lambda each: flag_of(each[0]) or each[0], text).replace(": []", ': [""]')


class KubeletSettings(Struct, frozen=True):
    """A kubelet's settings and how they were written."""

    configuration: KubeletConfiguration
    notation: Notation = Notation.CONFIGURATION
    fields: Mapping[str, object] = {}
    """All settings, as fields of a ``KubeletConfiguration``, including unknown ones."""
    arguments: dict[str, list[str]] | None = None
    """Where they are written as flags: the values of each, as written; none if all are one text."""
    other_flags: tuple[str, ...] = ()
    """Flags that do not affect pods."""

    def ignored_by(self, reader: Reader, version: tuple[int, int] | None = None) -> Ignored:
        """Return what ``reader`` ignores of them in a version, or in any, in the words of their notation."""
        ignored = ignored_settings(self.fields, reader, version)
        if self.notation is not Notation.ARGUMENTS:
            return ignored
        return Ignored(
            tuple(flag_of(name) or name for name in ignored.fields),
            ignored.gates,
            tuple(replace(gated, field=flag_of(gated.field) or gated.field) for gated in ignored.without_gate),
            self.other_flags,
        )


def kubelet_settings(value: Plain) -> KubeletSettings | None:
    """Return the settings that a document holds; None if it holds none. Errors name the place in the document."""
    notation = _notation(value) if isinstance(value, dict) else None
    if notation is None:
        return None
    assert isinstance(value, dict)
    return _read(value, notation)


def holds_settings(value: Plain) -> bool:
    """Whether a document holds the settings of a kubelet, readable or not."""
    return isinstance(value, dict) and _notation(value) is not None


def kubelet_settings_in(source: str, data: bytes) -> KubeletSettings:
    """Return the one kubelet's settings in a text; ``source`` is the name to report it under."""
    try:
        return settings_in(source, data)
    except InvalidConfiguration as error:
        raise located(error, source, data) from None


def settings_in(source: str, data: bytes) -> KubeletSettings:
    """Return the same; errors about settings name their place in the document only."""
    from podqos.manifest.documents import plain_documents  # not wanted where only a notation is asked for

    documents = plain_documents(source, data)
    found = [settings for each in documents if (settings := kubelet_settings(each.value)) is not None]
    if not found:
        raise InputError("contains no kubelet configuration", where=source, fix=_HOW)
    if len(found) > 1:
        raise InputError(f"contains {len(found)} kubelet configurations", where=source, fix="use one per file")
    return found[0]


def located(error: InvalidConfiguration, source: str, data: bytes) -> InvalidConfiguration:
    """Return the errors of the one kubelet's settings in a text with file, line and column."""
    from podqos.manifest.documents import plain_documents

    document = next(document for document in plain_documents(source, data) if holds_settings(document.value))

    def position(where: str) -> Position:
        return document.locate(parse_path(where.replace('"', "")))

    ordered = InvalidConfiguration.of(sorted(error.all, key=lambda each: position(each.where)))
    assert ordered is not None

    def placed(where: str) -> str:
        line, column = position(where)
        return f"{source}:{line}:{column}: {where}".removesuffix(": ")

    return ordered.placed(placed)


def _notation(value: Mapping[str, Plain]) -> Notation | None:
    kind, version = value.get("kind"), str(value.get("apiVersion"))
    if kind == KIND:
        return Notation.CONFIGURATION
    if kind == "KubeletConfig" and is_kubelet(kind, version):
        return Notation.KUBELET_CONFIG
    if "kubeletArguments" in value or (kind == "NodeConfig" and is_kubelet(kind, version)):
        return Notation.ARGUMENTS
    return Notation.CONFIGZ if "kubeletconfig" in value else None


def _read(document: dict[str, Plain], notation: Notation) -> KubeletSettings:
    value: Plain = document
    for step in notation.path:
        value = value.get(step) if isinstance(value, dict) else None
    arguments = None
    if notation is Notation.ARGUMENTS:
        fields, other_flags = _from_arguments(value)
        given = value if isinstance(value, dict) else {}
        arguments = {
            name: [str(value) for value in values] for name, values in given.items() if isinstance(values, list)
        }
    elif isinstance(value, dict) or value is None:
        fields, other_flags = dict(value or {}), ()
    else:
        raise InvalidConfiguration("must be a mapping", where=format_path(notation.path), fix="write its fields below")
    # Only the kubelet's own file says what it is.
    identity = {} if notation is Notation.CONFIGURATION else {"apiVersion": API_VERSION, "kind": KIND}
    try:
        configuration = kubelet_configuration(
            {**identity, **fields}, "", is_defaulted=notation is not Notation.ARGUMENTS
        )
    except InvalidConfiguration as error:
        refused = error.placed(notation.place)
        if isinstance(error.rest, KubeletConfiguration):
            refused.rest = KubeletSettings(error.rest, notation)
        raise refused from None
    return KubeletSettings(configuration, notation, fields, arguments, other_flags)


def _from_arguments(value: Plain) -> tuple[dict[str, object], tuple[str, ...]]:
    try:
        given = fields_from_arguments(_arguments(value))
    except InvalidConfiguration as error:
        path = (*Notation.ARGUMENTS.path, *filter(None, (error.where,)))
        raise InvalidConfiguration(error.what, where=format_path(path), fix=error.fix) from None
    return given.fields, given.ignored


def _arguments(value: Plain) -> Mapping[str, object]:
    """Return the flags with their values, also from one text: ``eviction-pressure-transition-period="5m"``."""
    if value is None:
        return {}
    if isinstance(value, dict):
        return value
    if not isinstance(value, str):
        raise InvalidConfiguration("must be a mapping from flags to lists", fix='write name: ["value"] for each flag')
    import shlex

    try:
        return arguments_from_words(shlex.split(value))
    except ValueError:
        raise InvalidConfiguration("a quotation mark is missing", fix="add the closing quote") from None
