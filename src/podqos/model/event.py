"""Events in the shape of the Kubernetes API (core/v1 and events.k8s.io/v1), as frozen values; only what is read."""

from __future__ import annotations

from msgspec import Struct

from podqos.model.pod import ObjectMeta


class ObjectReference(Struct, frozen=True, gc=False, rename="camel"):
    """The object an event is about."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    field_path: str = ""
    """Of a container: ``spec.containers{app}``."""


class EventSource(Struct, frozen=True, gc=False):
    """The component that reported it."""

    component: str = ""
    host: str = ""


class EventSeries(Struct, frozen=True, gc=False, rename="camel"):
    """An event that happened more than once."""

    count: int = 0
    last_observed_time: str | None = None


class Event(Struct, frozen=True, gc=False, rename="camel"):
    """An event reported by a component. The newer API has other names for the same fields."""

    metadata: ObjectMeta = ObjectMeta()
    reason: str = ""
    type: str = ""
    message: str = ""
    note: str = ""
    involved_object: ObjectReference | None = None
    regarding: ObjectReference | None = None
    source: EventSource | None = None
    deprecated_source: EventSource | None = None
    first_timestamp: str | None = None
    deprecated_first_timestamp: str | None = None
    last_timestamp: str | None = None
    deprecated_last_timestamp: str | None = None
    event_time: str | None = None
    count: int | None = None
    deprecated_count: int | None = None
    series: EventSeries | None = None
    reporting_component: str = ""
    reporting_instance: str = ""

    @property
    def about(self) -> ObjectReference:
        """The object it is about."""
        return self.involved_object or self.regarding or ObjectReference()

    @property
    def text(self) -> str:
        """The message."""
        return self.message or self.note

    @property
    def first_at(self) -> str:
        """When it was first seen, as written; empty if that is not said."""
        first = self.first_timestamp or self.deprecated_first_timestamp or self.event_time
        return first or self.last_timestamp or self.metadata.creation_timestamp or ""

    @property
    def component(self) -> str:
        """The component that reported it."""
        seen_by = self.source or self.deprecated_source or EventSource()
        return seen_by.component or self.reporting_component

    @property
    def host(self) -> str:
        """The node of the component that saw it."""
        seen_by = self.source or self.deprecated_source or EventSource()
        return seen_by.host or self.reporting_instance


TELLING = frozenset(
    (
        *("Evicted", "Preempting", "Preempted", "TaintManagerEviction", "Terminated", "NodeShutdown", "Rebooted"),
        *("Killing", "ExceededGracePeriod", "SystemOOM", "OOMKilling", "EvictionThresholdMet"),
        *("NodeNotReady", "NodeControllerEviction"),
        *("NodeHasInsufficientMemory", "NodeHasDiskPressure", "NodeHasInsufficientPID"),
        *("NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID"),
    )
)
"""Reasons of events that tell why something died, or that it would. Others may quote what a program wrote."""
