"""A pod's violations as data; ``words`` puts them into words."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from podqos.model.quantity import Quantity
from podqos.policy.model import Action


class Why(StrEnum):
    """The kind of a violation."""

    CLASS_TOO_LOW = "ClassTooLow"
    CLASS_TOO_HIGH = "ClassTooHigh"
    NO_SUCH_CLASS = "NoSuchClass"
    """A label or annotation for the required class has an unknown value."""
    NO_REQUEST = "NoRequest"
    NO_LIMIT = "NoLimit"
    RATIO_TOO_HIGH = "RatioTooHigh"
    NO_PRIORITY_CLASS = "NoPriorityClass"
    PRIORITY_CLASS_NOT_ALLOWED = "PriorityClassNotAllowed"
    PRIORITY_TOO_LOW = "PriorityTooLow"
    PRIORITY_TOO_HIGH = "PriorityTooHigh"


class Amounts(Struct, frozen=True, gc=False):
    """The request and limit of a container, or of the pod itself, for one resource."""

    path: str
    """Path of its resources in the object: ``spec.template.spec.containers[0].resources``."""
    container: str
    """Empty for the pod itself."""
    resource: str
    request: Quantity | None
    limit: Quantity | None


class Violation(Struct, frozen=True, gc=False):
    """One requirement of a rule that a pod does not meet."""

    policy: str
    rule: str
    action: Action
    why: Why
    path: str
    """Path of the field at fault in the object; empty if it is in another object."""
    actual: str = ""
    """The class, ratio, priority class or priority the pod has."""
    wanted: str = ""
    """The required value."""
    amounts: tuple[Amounts, ...] = ()
    """For a class, every container and resource that determined it; else the one at fault."""
    message: str = ""
    """The rule's own message."""

    @property
    def container(self) -> str:
        """The container at fault, if there is one."""
        names = {amount.container for amount in self.amounts}
        return names.pop() if len(names) == 1 else ""


class Exempted(Struct, frozen=True, gc=False):
    """A violation that an exemption covers."""

    violation: Violation
    reason: str


class Judgement(Struct, frozen=True, gc=False):
    """The result of validating a pod."""

    violations: tuple[Violation, ...] = ()
    """The strictest first."""
    exempted: tuple[Exempted, ...] = ()
    unknown_priority: bool = False
    """Whether a rule needs the pod's priority, which is unknown; the rule is then skipped."""

    @property
    def action(self) -> Action | None:
        """The strictest action; None without violations."""
        return self.violations[0].action if self.violations else None

    @property
    def allowed(self) -> bool:
        """Whether the pod may be created."""
        return self.action is not Action.DENY
