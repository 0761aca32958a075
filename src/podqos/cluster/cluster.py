"""Edge: a live cluster to read from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import msgspec
from msgspec import Struct

from podqos.cluster.access import find_access
from podqos.cluster.asking import Client, Query
from podqos.cluster.events import Event
from podqos.cluster.kubeconfig import Access
from podqos.cluster.pages import ListPage, decode_object
from podqos.cluster.patience import PATIENT, Patience
from podqos.cluster.refusals import GONE, RBACQuestion, question
from podqos.cluster.resources import Model, Resource
from podqos.cluster.watching import Trouble, Watch
from podqos.errors import BadAnswer, Refused

PAGE_ITEMS = 500
_MOST_RESTARTS = 5


class ServerVersion(Struct, frozen=True, rename="camel"):
    """The response of ``/version``."""

    git_version: str = ""
    major: str = ""
    minor: str = ""
    """Some clouds write ``29+``."""


def connect(context: str | None = None, *, kubeconfig: str | None = None, patience: Patience = PATIENT) -> Cluster:
    """Return the cluster of a context, of the current one, or of the pod this runs in, without connecting yet."""
    return Cluster(find_access(context, kubeconfig=kubeconfig), patience=patience)


class Cluster:
    """Reads one API server. Several threads may use it at once."""

    def __init__(self, access: Access, *, patience: Patience = PATIENT) -> None:
        """Keep how to reach it; connections are made on request."""
        self.access = access
        self.client = Client(access, patience=patience)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections. A watch in another thread ends."""
        self.client.close()

    @property
    def namespace(self) -> str:
        """The namespace of the context."""
        return self.access.namespace

    @property
    def name(self) -> str:
        """The name of its context, else the server's address."""
        return self.access.context or self.where

    @property
    def where(self) -> str:
        """The server's address, for people."""
        return self.client.where

    def version(self) -> ServerVersion:
        """Return the API server's version."""
        data = self.get("/version", asked=RBACQuestion("get", "/version"))
        try:
            return msgspec.json.decode(data, type=ServerVersion)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise BadAnswer(
                "/version is not a Kubernetes version", where=self.where, fix="is it an API server?"
            ) from None

    def get(self, path: str, query: Query = (), *, asked: RBACQuestion | None = None) -> bytes:
        """Return what the server has at a path; ``asked`` describes the request in errors."""
        return self.client.get(path, query, asked=asked).data

    def one(self, resource: Resource[Model], name: str, namespace: str = "") -> Model:
        """Return one object."""
        data = self.get(resource.path(namespace, name), asked=question("get", resource, namespace))
        return decode_object(resource, data, where=self.where)

    def read(
        self,
        resource: Resource[Model],
        namespace: str = "",
        *,
        selector: str = "",
        field_selector: str = "",
        patience: Patience | None = None,
    ) -> list[Model]:
        """Return all objects of a resource, of all namespaces or one."""
        items: list[Model] = []
        pages = self.pages(resource, namespace, selector=selector, field_selector=field_selector, patience=patience)
        for page in pages:
            if page.is_first:
                items.clear()
            items += page.items
        return items

    def pages(
        self,
        resource: Resource[Model],
        namespace: str = "",
        *,
        selector: str = "",
        field_selector: str = "",
        limit: int = PAGE_ITEMS,
        patience: Patience | None = None,
    ) -> Iterator[ListPage[Model]]:
        """Yield all objects in pages: a consistent view of one moment.

        A list that expires while it is read begins again with larger pages; that page ``is_first`` like the very first,
        and the caller drops what came before.
        """
        path = resource.path(namespace)
        asked = question("list", resource, namespace)
        token, restarts = "", 0
        while True:
            query = [("limit", str(limit << restarts)), *_selection(selector, field_selector)]
            if token:
                query.append(("continue", token))
            try:
                answer = self.client.get(path, query, asked=asked, patience=patience)
            except Refused as error:
                if error.status != GONE or not token or restarts == _MOST_RESTARTS:
                    raise
                token, restarts = "", restarts + 1
                continue
            page = ListPage(resource, answer.data, where=self.where, is_first=not token)
            del answer
            yield page
            token = page.metadata.continue_
            if not token:
                return
            del page

    def watch(
        self,
        resource: Resource[Model],
        namespace: str = "",
        *,
        selector: str = "",
        field_selector: str = "",
        on_trouble: Trouble | None = None,
    ) -> Iterator[Event[Model]]:
        """Yield existing objects, then all changes, forever; see ``events.EventType``.

        Interruptions are bridged, and told to ``on_trouble``, as is (None) that they are over. A refusal that will not
        go away is raised.
        """
        selection = _selection(selector, field_selector)

        def pages() -> Iterator[ListPage[Model]]:
            return self.pages(resource, namespace, selector=selector, field_selector=field_selector)

        return Watch(self.client, resource, namespace, selection, pages, on_trouble=on_trouble).events()


def _selection(selector: str, field_selector: str) -> list[tuple[str, str]]:
    pairs = (("labelSelector", selector), ("fieldSelector", field_selector))
    return [(name, value) for name, value in pairs if value]
