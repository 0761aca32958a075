"""Pure: converts lists from an API server to values of the model, the same as reading them from a file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from podqos.cluster.refusals import as_line
from podqos.cluster.resources import Model, Resource
from podqos.errors import BadAnswer, InvalidManifest
from podqos.manifest.decode import REFUSALS, decode_pod, model_decoder
from podqos.manifest.problems import Severity
from podqos.model.pod import Pod, Workload

_Decoded = TypeVar("_Decoded")


class ListMeta(Struct, frozen=True, rename="camel"):
    """The metadata of a list."""

    continue_: str = msgspec.field(default="", name="continue")
    resource_version: str = ""
    remaining_item_count: int | None = None


class _Envelope(Struct, frozen=True):
    """A list without its items."""

    kind: str
    metadata: ListMeta = ListMeta()


class _RawItems(Struct, frozen=True):
    items: tuple[msgspec.Raw, ...] | None = None


@cache
def _list_type(model: type) -> type[Struct]:
    """Return the type of a list of some model: one pass over the bytes gives metadata and items."""
    items = list[model] | None  # type: ignore[valid-type] # the model is a value here
    fields: list[tuple[str, object, object]] = [
        ("kind", str, ""),
        ("metadata", ListMeta, ListMeta()),
        ("items", items, None),
    ]
    return msgspec.defstruct(f"{model.__name__}List", fields, frozen=True, gc=False)


def _decoder(model: type[_Decoded]) -> msgspec.json.Decoder[_Decoded]:
    return model_decoder(model)  # type: ignore[arg-type] # types are hashable


def prepare(resource: Resource[Any]) -> None:
    """Make the decoders of a resource, before threads need them.

    msgspec shares what it knows of a type before it knows all of it: threads that make decoders at once, of types that
    have a type in common, can crash the process.
    """
    model: type = resource.model
    for each in (_Envelope, _RawItems, model, _list_type(model)):
        _decoder(each)


class ListPage(Generic[Model]):
    """Some of the objects of a list, in the server's order. It is decoded when asked for, and once."""

    def __init__(self, resource: Resource[Model], data: bytes, *, where: str = "", is_first: bool = True) -> None:
        """Take the bytes of a page; ``where`` names the server in errors."""
        self.resource = resource
        self.data = data
        """The bytes as the server sent them."""
        self.is_first = is_first
        """Whether the list starts here. It can restart: earlier pages are then void."""
        self._where = where
        self._metadata: ListMeta | None = None

    @property
    def metadata(self) -> ListMeta:
        """What the list says about itself."""
        if self._metadata is None:
            self._metadata = self._decode(_Envelope).metadata
        return self._metadata

    @cached_property
    def items(self) -> Sequence[Model]:
        """The objects."""
        model: type = self.resource.model
        if model is Workload:
            self._check(self._decode(_Envelope).kind)
            return _workloads(self.data, self._where)  # type: ignore[return-value] # the model is Workload
        try:
            typed: Any = _decoder(_list_type(model)).decode(self.data)
        except msgspec.ValidationError:
            return self._one_by_one()
        except REFUSALS as error:
            raise self._broken(error) from None
        self._check(typed.kind)
        self._metadata = typed.metadata
        return typed.items or ()

    def _decode(self, model: type[_Decoded]) -> _Decoded:
        try:
            return _decoder(model).decode(self.data)
        except REFUSALS as error:
            raise self._broken(error) from None

    def check(self) -> None:
        """Raise BadAnswer unless this is the requested list."""
        self._check(self._decode(_Envelope).kind)

    def _check(self, kind: str) -> None:
        check_list(kind, self.resource, self._where)

    def _broken(self, error: Exception) -> BadAnswer:
        return BadAnswer(f"its list of {self.resource.plural} cannot be read: {error}", where=self._where)

    def _one_by_one(self) -> Sequence[Model]:
        """Decode again what the fast decoder rejected, to find the object and field at fault."""
        self._check(self._decode(_Envelope).kind)
        return [self._one(number, item) for number, item in enumerate(self._decode(_RawItems).items or ())]

    def _one(self, number: int, item: msgspec.Raw) -> Model:
        return decode_object(self.resource, bytes(item), where=f"{self._where}: items[{number}]")


def check_list(kind: str, resource: Resource[Any], where: str) -> None:
    """Raise BadAnswer unless a list is of the requested kind: read as another kind, it would seem empty."""
    if kind != f"{resource.kind}List":
        what = f"it sent {kind or 'something else'} instead of a list of {resource.plural}"
        raise BadAnswer(what, where=where)


def decode_object(resource: Resource[Model], data: bytes, *, where: str = "") -> Model:
    """Return one object as a value of the model; ``where`` names the server in errors."""
    try:
        if resource.model is Workload:
            (workload,) = _workloads(data, where)
            return workload  # type: ignore[return-value] # the model is Workload
        if resource.model is Pod:
            return decode_pod(data)  # type: ignore[return-value] # the model is Pod
        return _decoder(resource.model).decode(data)
    except InvalidManifest as error:
        what = f"{resource.kind} {error.where}: {error.what}" if error.where else error.what
        raise BadAnswer(as_line(what), where=where, fix=error.fix) from None
    except (*REFUSALS, ValueError) as error:
        raise BadAnswer(f"its {resource.kind} cannot be read: {error}", where=where) from None


def _workloads(data: bytes, where: str) -> Sequence[Workload]:
    """Read workloads as from a file."""
    from podqos.manifest.reading import read

    found = read(where, data)
    for problem in found.problems:
        if problem.severity is Severity.ERROR:
            raise BadAnswer(as_line(f"{problem.field}: {problem.what}"), where=where, fix=problem.fix)
    return found.workloads
