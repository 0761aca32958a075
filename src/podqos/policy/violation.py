"""What a pod violates, as data; ``words`` words it."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from podqos.model.quantity import Quantity
from podqos.policy.model import Action


class Why(StrEnum):
    """What is wrong."""

    CLASS_TOO_LOW = "ClassTooLow"
    CLASS_TOO_HIGH = "ClassTooHigh"
    NO_SUCH_CLASS = "NoSuchClass"
    """A label or annotation that states the wanted class states none there is."""
    NO_REQUEST = "NoRequest"
    NO_LIMIT = "NoLimit"
    RATIO_TOO_HIGH = "RatioTooHigh"
    NO_PRIORITY_CLASS = "NoPriorityClass"
    PRIORITY_CLASS_NOT_ALLOWED = "PriorityClassNotAllowed"
    PRIORITY_TOO_LOW = "PriorityTooLow"
    PRIORITY_TOO_HIGH = "PriorityTooHigh"


class Amounts(Struct, frozen=True, gc=False):
    """What a container, or the pod itself, has of one resource."""

    path: str
    """Where its resources stand, from the root of the object: ``spec.template.spec.containers[0].resources``."""
    container: str
    """Empty for the pod itself."""
    resource: str
    request: Quantity | None
    limit: Quantity | None


class Violation(Struct, frozen=True, gc=False):
    """One demand of one rule that a pod does not meet."""

    policy: str
    rule: str
    action: Action
    why: Why
    path: str
    """The field at fault, from the root of the object; empty where it is in another object."""
    actual: str = ""
    """The class, ratio, priority class or priority the pod has."""
    wanted: str = ""
    """What the rule asks for instead."""
    amounts: tuple[Amounts, ...] = ()
    """Of a class, every container and resource that decided it; else the one that is meant."""
    message: str = ""
    """What the rule itself says to those who violate it."""

    @property
    def container(self) -> str:
        """The container at fault, where it is one."""
        names = {amount.container for amount in self.amounts}
        return names.pop() if len(names) == 1 else ""


class Exempted(Struct, frozen=True, gc=False):
    """A violation that an exemption covers."""

    violation: Violation
    reason: str


class Judgement(Struct, frozen=True, gc=False):
    """What policies say about a pod."""

    violations: tuple[Violation, ...] = ()
    """The strictest first."""
    exempted: tuple[Exempted, ...] = ()
    unknown_priority: bool = False
    """Whether a rule asks for the pod's priority, which is not known; it is then not judged."""

    @property
    def action(self) -> Action | None:
        """The strictest action; None where the pod violates nothing."""
        return self.violations[0].action if self.violations else None

    @property
    def allowed(self) -> bool:
        """Whether the pod may be created."""
        return self.action is not Action.DENY
