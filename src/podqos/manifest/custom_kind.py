"""How a kind of custom resource states the pods that its controller makes.

A ``Template`` leads to a pod template, to a pod's spec, or to a part of an object from which an operator builds pods:
then ``containers`` says where the resources of each container are. Paths are relative to the template's, or, with a
leading ``/``, to the object. Only what is plainly stated is read: amounts that an operator has defaults for, and
containers that it adds, leave a pod without an answer where they could change its class.
"""

from __future__ import annotations

from msgspec import Struct

FROM_CLUSTER = "use the running pods: kubectl get pods -o yaml"
ANY = ("*",)
"""The operator may have defaults for a container that states nothing."""
EVERY_RESOURCE = ("cpu", "memory")
"""The operator fills in cpu, and memory, where neither a request nor a limit is stated."""
EVERY_AMOUNT = ("requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
"""The operator fills in every amount that is not stated."""


class Stated(Struct, frozen=True):
    """A container that an operator makes, and where its resources are stated."""

    name: str
    path: str = "resources"
    """To what has requests and limits, ``.`` for the part itself; of several, separated by ``|``, one may be stated."""
    when: str = ""
    """It exists only under this condition: see ``Template.when``."""
    needs: tuple[str, ...] = ANY
    """What has to be stated, as the operator has defaults otherwise: ``limits.cpu``, ``limits``, cpu on either side, or
    anything at all. Empty if a container that states nothing has nothing."""
    is_init: bool = False


class Added(Struct, frozen=True):
    """A container that an operator adds, and whose resources the object does not state."""

    name: str
    when: str = ""
    keeps_guaranteed: bool = False
    """Whether its limits are its requests: a Guaranteed pod stays so, and a BestEffort one does not."""


class Template(Struct, frozen=True):
    """Where a kind keeps a pod template, or what pods are built from."""

    path: str
    """From the object, such as ``spec.workerGroupSpecs.*.template``."""
    replicas: tuple[str, ...] = ()
    """Paths of the numbers that multiply to how many pods there are; ``*`` is what it is in ``path``."""
    part: str = ""
    """What distinguishes the pods from those of the kind's other templates: a suffix, or ``rfr-{}`` around the name."""
    containers: tuple[Stated, ...] = ()
    """What the pods are built from; of a pod template, the containers that have defaults where it states nothing."""
    added: tuple[Added, ...] = ()
    lists: tuple[tuple[str, str], ...] = ()
    """Where whole containers are stated: a field of pods, and the path of its items."""
    patches: tuple[str, ...] = ()
    """Fields that change the pods in ways that are not read: an object that has one is not judged."""
    when: str = ""
    """There are pods only if this holds: a switch that is on, something that is stated, ``path=value`` or
    ``path!=value``."""
    default_replicas: int | None = None
    """How many pods there are if that is not stated; None for one."""
    priority: str = "priorityClassName"
    """Where the name of the PriorityClass is stated."""
    workflow: str = ""
    """The path of the workflow's spec, if it is a template of Argo's, out of which its controller builds a pod."""


class Built(Template, frozen=True):
    """What an operator builds pods from, without a pod template: a part of an object, such as ``spec.redis``."""


class CustomKind(Struct, frozen=True):
    """A kind of custom resource that holds pods, or makes them."""

    kind: str
    group: str
    """Its API group; empty for a kind that a user names, whatever its group is."""
    templates: tuple[Template, ...] = ()
    adds: str = ""
    """Containers that the controller adds to every pod."""
    settings: str = ""
    """Settings of the controller that change its pods, and are assumed not to be set."""
    built: str = ""
    """What the pods are built from, if they cannot be read from the object."""
    hint: str = FROM_CLUSTER
    """What to give to podqos instead."""

    @property
    def is_of_operator(self) -> bool:
        """Whether an operator builds pods from what the object states."""
        return any(isinstance(template, Built) for template in self.templates)


def beside(path: str, part: str = "", *, count: str = "replicas") -> Template:
    """Return a template whose number of pods is next to it."""
    return Template(path, (f"{path.rpartition('.')[0]}.{count}",), part)
