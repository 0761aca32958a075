"""A policy as the API server's own objects: ValidatingAdmissionPolicy and MutatingAdmissionPolicy, with bindings.

Every rule becomes one policy per shape, because what an expression reads has to be there: pods, workloads with a
template, CronJobs with a template of a template. One more checks the labels of namespaces that state a class.

- Pods are judged when they are created, as they will be stored: filled in, mutated, valid. Later nothing that matters
  can change but by a resize, which keeps the class.
- Templates are judged when they are created or changed, so that what is not changed can still be scaled or deleted.
  They are neither filled in nor mutated: what is refused as a pod is only warned about as a template, unless told
  otherwise.
- What another object made is not judged as a template: it was, as that object.

What CEL cannot say is returned beside the objects. Sources: Kubernetes v1.36
staging/src/k8s.io/api/admissionregistration/v1/types.go, apiserver/pkg/cel/environment/base.go (functions by version).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from enum import StrEnum
from fractions import Fraction
from itertools import chain

from msgspec import Struct

from podqos.manifest.plain import Plain
from podqos.model.pod import CLASS_RANK, QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.model.resources import QOS_RESOURCES, is_pod_level
from podqos.model.selector import LabelSelector
from podqos.policy import cel
from podqos.policy.judge import ALWAYS_USED
from podqos.policy.matching import has_expired, named
from podqos.policy.model import Action, Exemption, Match, Policy, Priority, Rule
from podqos.policy.words import LONGEST
from podqos.wording import listed

GROUP = "admissionregistration.k8s.io"
STABLE_SINCE = (1, 30)
"""ValidatingAdmissionPolicy v1."""
MANAGED_BY = {"app.kubernetes.io/managed-by": "podqos"}
POLICY_LABEL = "podqos.dev/policy"
_NAMESPACE_NAME = "kubernetes.io/metadata.name"
_MIRROR = "kubernetes.io/config.mirror"
_LONGEST_NAME = 253
_LONGEST_LABEL = 63


class Shape(Struct, frozen=True):
    """Objects whose pods stand in the same place."""

    name: str
    resources: dict[str, tuple[str, str]]
    """By kind, the API group and the resource."""
    pod: str
    """From the object to the pod or its template, in CEL."""

    @property
    def is_template(self) -> bool:
        """Whether it is about pods that are yet to be made."""
        return bool(self.pod)

    def pod_of(self, root: str) -> str:
        """Return where the pod is in ``object`` or ``oldObject``."""
        return root + self.pod


PODS = Shape("pods", {"Pod": ("", "pods")}, "")
WORKLOADS = Shape(
    "workloads",
    {
        "Deployment": ("apps", "deployments"),
        "StatefulSet": ("apps", "statefulsets"),
        "DaemonSet": ("apps", "daemonsets"),
        "ReplicaSet": ("apps", "replicasets"),
        "Job": ("batch", "jobs"),
        "ReplicationController": ("", "replicationcontrollers"),
    },
    ".spec.template",
)
CRON_JOBS = Shape("cronjobs", {"CronJob": ("batch", "cronjobs")}, ".spec.jobTemplate.spec.template")
SHAPES = (PODS, WORKLOADS, CRON_JOBS)


class Left(StrEnum):
    """What is not said in CEL."""

    BUDGET = "Budget"
    """It needs nodes and all other pods."""
    LIMIT_RANGE = "LimitRange"
    """What LimitRanges and mutation make of a template's pods."""
    TEMPLATE_PRIORITY = "TemplatePriority"
    """The value of a priority class, and the default, are in other objects."""
    TEMPLATE_POD_LIMITS = "TemplatePodLimits"
    """Since 1.37 limits of a pod as a whole follow from its containers'."""
    EXPIRY = "Expiry"
    """Expressions know no date."""
    EXPIRED = "Expired"
    KIND = "Kind"
    """Only Kubernetes' own pods, workloads and CronJobs are known by their resources."""
    RESIZE = "Resize"
    """A resize of a running pod is not judged."""
    MUTATION = "Mutation"
    """MutatingAdmissionPolicy came later."""
    MUTATION_OFF = "MutationOff"
    """It was there, and off by default."""


class NotExpressed(Struct, frozen=True, rename="camel"):
    """Something of a policy that its objects do not say."""

    what: Left
    of: tuple[str, ...]
    """The rules or budgets, or the reason of the exemption."""
    detail: str = ""
    """The kind or day that is meant, where it is one."""


class Printed(Struct, frozen=True):
    """One object to apply."""

    rule: str
    action: Action
    about: str
    """The shape, or what is mutated."""
    value: dict[str, Plain]


class AdmissionPolicies(Struct, frozen=True):
    """The objects of a policy, and what they do not say."""

    objects: tuple[Printed, ...]
    not_expressed: tuple[NotExpressed, ...]


class Wish(Struct, frozen=True, kw_only=True):
    """How a policy is to be put."""

    profile: Profile = LATEST
    today: date | None = None
    """What has expired by then is left out; without a day, nothing has."""
    templates: Action | None = None
    """What becomes of templates; none warns of what would be refused as a pod."""
    mutate: bool = False
    """Whether to fill in limits of pods that have to be Guaranteed."""
    limits: dict[str, str] = {}
    """The limits of their containers that state neither request nor limit; without, such pods are left alone."""


_PLAIN = Wish()


def admission_policies(policies: Sequence[Policy], wish: Wish = _PLAIN) -> AdmissionPolicies:
    """Return everything to apply, the same for the same policies."""
    objects: list[Printed] = []
    left: dict[tuple[Left, str], list[str]] = {}
    for policy in policies:
        rules = [_Putting(policy, rule, wish) for rule in policy.spec.rules]
        for what, of, detail in chain(_left_of_policy(policy, wish), *(each.left() for each in rules)):
            left.setdefault((what, detail), []).append(of)
        objects += chain.from_iterable(each.objects() for each in rules)
    not_expressed = (NotExpressed(what, tuple(dict.fromkeys(of)), detail) for (what, detail), of in left.items())
    return AdmissionPolicies(tuple(objects), tuple(not_expressed))


def mutation_version(profile: Profile) -> str | None:
    """Return the version that serves MutatingAdmissionPolicy; up to 1.33 it was an alpha we do not print."""
    return "v1" if profile.version >= (1, 36) else "v1beta1" if profile.version >= (1, 34) else None


def _left_of_policy(policy: Policy, wish: Wish) -> Iterator[tuple[Left, str, str]]:
    for budget in policy.spec.budgets:
        yield Left.BUDGET, budget.name, ""
    for exemption in policy.spec.exemptions:
        if exemption.until is not None:
            is_over = wish.today is not None and has_expired(exemption, wish.today)
            yield Left.EXPIRED if is_over else Left.EXPIRY, exemption.reason, exemption.until


class _Demand(Struct, frozen=True):
    """What every container, or the pod in their place, has to state of a resource."""

    variable: str
    """The variable of the amounts that violate it."""
    resource: str
    is_violated: str
    """Whether amounts ``a`` do."""
    must: str


class _Putting:
    """One rule, put into objects."""

    def __init__(self, policy: Policy, rule: Rule, wish: Wish) -> None:
        self._policy = policy
        self._rule = rule
        self._require = rule.require
        self._wish = wish
        self._profile = wish.profile
        exemptions = [
            each
            for each in policy.spec.exemptions
            if (not each.rules or named(each.rules, (rule.name,)))
            and not (wish.today is not None and has_expired(each, wish.today))
        ]
        self._exemptions = [each for each in exemptions if not each.containers]
        self._of_containers = [each for each in exemptions if each.containers]
        self._is_about_class = bool(self._require.class_label or self._require.min_class or self._require.max_class)

    def objects(self) -> Iterator[Printed]:
        """Yield the objects of the rule."""
        for shape in SHAPES:
            if self._kinds(shape) and (validations := list(self._validations(shape))):
                yield from self._validating(shape, validations)
        if self._require.class_label:
            yield from self._of_namespaces()
        if self._mutates and mutation_version(self._profile) is not None:
            yield from self._mutating()

    def left(self) -> Iterator[tuple[Left, str, str]]:
        """Yield what the objects do not say, of what, and which kind or day is meant."""
        rule, require = self._rule.name, self._require
        has_templates = any(shape.is_template and self._kinds(shape) for shape in SHAPES)
        known = [kind for shape in SHAPES for kind in shape.resources]
        for glob in self._rule.match.kinds:
            if not any(named((glob,), (kind,)) for kind in known):
                yield Left.KIND, rule, glob
        if has_templates and (
            self._is_about_class or require.requests or require.limits or require.max_limit_request_ratio
        ):
            yield Left.LIMIT_RANGE, rule, ""
            if self._profile.pod_level_defaults_last:
                yield Left.TEMPLATE_POD_LIMITS, rule, ""
        priority = require.priority
        asks = priority is not None and (
            priority.required or priority.classes or priority.min is not None or priority.max is not None
        )
        if has_templates and asks:
            yield Left.TEMPLATE_PRIORITY, rule, ""
        if self._kinds(PODS) and (require.requests or require.limits or require.max_limit_request_ratio):
            yield Left.RESIZE, rule, ""
        if self._mutates and mutation_version(self._profile) != "v1":
            is_there = mutation_version(self._profile) is not None
            yield Left.MUTATION_OFF if is_there else Left.MUTATION, rule, ""

    # ---- objects -----------------------------------------------------------------------------------------------------

    def _validating(self, shape: Shape, validations: list[Plain]) -> Iterator[Printed]:
        spec: dict[str, Plain] = {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": self._resource_rules(shape)},
            "matchConditions": self._conditions(shape),
            "variables": _needed(self._named_expressions(shape), validations),
            "validations": validations,
        }
        yield from self._bound("Validating", shape, spec, action=self._action(shape))

    def _of_namespaces(self) -> Iterator[Printed]:
        """Yield the check of what namespaces state as their class: a typing error would demand nothing."""
        rule, key = self._rule, self._require.class_label
        stated = _stated("object", key)
        changed = [f"{_stated('object', key)} != {_stated('oldObject', key)}"]
        conditions = [_condition("changed", cel.any_of(("request.operation == 'CREATE'", *changed)))]
        if any(map(cel.is_wild, rule.match.namespaces)):
            conditions.append(_condition("namespaces", cel.fits("object.metadata.name", rule.match.namespaces)))
        shape = Shape("namespaces", {"Namespace": ("", "namespaces")}, "")
        spec: dict[str, Plain] = {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [_resource_rule("", ("CREATE", "UPDATE"), ("namespaces",))]},
            "matchConditions": conditions,
            "validations": [self._no_such_class(stated, may_be_exempt=False)],
        }
        only_namespace = Match(namespaces=rule.match.namespaces, namespace_selector=rule.match.namespace_selector)
        yield from self._bound("Validating", shape, spec, action=rule.action, match=only_namespace)

    def _bound(
        self, kind: str, shape: Shape, spec: dict[str, Plain], *, action: Action, match: Match | None = None
    ) -> Iterator[Printed]:
        """Yield a policy and its binding, which says which namespaces and pods it is about."""
        version = "v1" if kind == "Validating" else mutation_version(self._profile)
        about = shape.name if kind == "Validating" else f"{shape.name}-limits"
        name = object_name(self._policy.name, self._rule.name, about)
        metadata: dict[str, Plain] = {
            "name": name,
            "labels": {**MANAGED_BY, POLICY_LABEL: _shortened(self._policy.name, _LONGEST_LABEL)},
        }
        matched = _match_resources(match or self._rule.match, shape)
        bound: dict[str, Plain] = {"policyName": name, "matchResources": matched}
        if kind == "Validating":
            bound["validationActions"] = _actions(action)
        for suffix, content in (("", spec), ("Binding", bound)):
            value: dict[str, Plain] = {
                "apiVersion": f"{GROUP}/{version}",
                "kind": f"{kind}AdmissionPolicy{suffix}",
                "metadata": metadata,
                "spec": {key: each for key, each in content.items() if each not in ([], {})},
            }
            yield Printed(self._rule.name, action, about, value)

    def _action(self, shape: Shape) -> Action:
        """Return what becomes of a violation: as a template it is warned about where its pods are refused."""
        action = self._rule.action
        if not shape.is_template or action is Action.AUDIT:
            return action
        if self._wish.templates is not None:
            return max(action, self._wish.templates, key=lambda each: each.rank)
        return Action.WARN if self._kinds(PODS) else action

    def _kinds(self, shape: Shape) -> list[str]:
        kinds = self._rule.match.kinds
        return [kind for kind in shape.resources if not kinds or named(kinds, (kind,))]

    def _resource_rules(self, shape: Shape) -> list[Plain]:
        operations = ("CREATE", "UPDATE") if shape.is_template else ("CREATE",)
        groups: dict[str, list[str]] = {}
        for kind in self._kinds(shape):
            group, resource = shape.resources[kind]
            groups.setdefault(group, []).append(resource)
        return [_resource_rule(group, operations, resources) for group, resources in groups.items()]

    # ---- which objects -----------------------------------------------------------------------------------------------

    def _conditions(self, shape: Shape) -> list[Plain]:
        """Return conditions that are cheaper than a judgement; namespaces' labels are not known to them."""
        match = self._rule.match
        conditions = []
        if shape.is_template:
            conditions += [
                _condition("not-being-deleted", "!has(object.metadata.deletionTimestamp)"),
                _condition("not-made-by-another", f"{cel.OWNERS}.size() == 0"),
                _condition("changed", cel.any_of(("request.operation == 'CREATE'", *self._changes(shape)))),
            ]
        else:
            conditions.append(_condition("no-mirror", f"!({cel.quoted(_MIRROR)} in {cel.annotations_of('object')})"))
        if any(map(cel.is_wild, match.namespaces)):
            conditions.append(_condition("namespaces", cel.fits("request.namespace", match.namespaces)))
        if match.names:
            conditions.append(_condition("names", cel.fits(cel.NAME, match.names)))
        if match.object_selector is not None and shape.is_template:
            labels = _both(cel.labels_of, shape)
            conditions.append(_condition("labels", f"{labels}.exists(l, {cel.selected('l', match.object_selector)})"))
        if match.annotations:
            annotations = _both(cel.annotations_of, shape)
            conditions.append(
                _condition("annotations", f"{annotations}.exists(l, {cel.annotated('l', match.annotations)})")
            )
        return conditions

    def _changes(self, shape: Shape) -> Iterator[str]:
        """Yield what makes a template that was accepted to be judged again."""
        yield f"{shape.pod_of('object')} != {shape.pod_of('oldObject')}"
        yield f"{cel.labels_of('object')} != {cel.labels_of('oldObject')}"
        for key in dict.fromkeys((*self._rule.match.annotations, *filter(None, (self._require.class_label,)))):
            new, old = (
                f"{root}.metadata.?annotations[?{cel.quoted(key)}].orValue('')" for root in ("object", "oldObject")
            )
            yield f"{new} != {old}"

    def _exempt(self, exemption: Exemption) -> str:
        """Return whether an exemption is about the object, and who asks."""
        conditions = []
        if exemption.namespaces:
            conditions.append(cel.fits("request.namespace", exemption.namespaces))
        if exemption.namespace_selector is not None:
            conditions.append(cel.selected(cel.labels_of("namespaceObject"), exemption.namespace_selector))
        if exemption.objects:
            conditions.append(f"variables.identities.exists(i, {cel.fits('i', exemption.objects)})")
        if exemption.users:
            conditions.append(cel.fits("request.userInfo.username", exemption.users))
        if exemption.groups:
            conditions.append(f"request.userInfo.?groups.orValue([]).exists(g, {cel.fits('g', exemption.groups)})")
        return cel.all_of(conditions)

    def _excused(self, container: str) -> str:
        """Return whether a container, by its name, is exempt."""
        return cel.any_of(
            cel.all_of((self._exempt(each), cel.fits(container, each.containers))) for each in self._of_containers
        )

    # ---- variables ---------------------------------------------------------------------------------------------------

    def _named_expressions(self, shape: Shape) -> Iterator[tuple[str, str]]:
        """Yield what several expressions may use; those that none uses are not printed."""
        require = self._require
        yield "owners", cel.OWNERS
        yield "identities", cel.identities("variables.owners")
        yield "exempt", cel.any_of(map(self._exempt, self._exemptions))
        yield "spec", f"{shape.pod_of('object')}.spec"
        yield "initContainers", "variables.spec.?initContainers.orValue([])"
        yield "containers", "variables.spec.containers + variables.initContainers"
        yield "podIsLimited", self._pod_is_limited()
        for resource in self._resources:
            yield from self._amounts(resource, shape)
        if self._is_about_class:
            yield from self._class()
        for demand in self._demands():
            yield demand.variable, f"{self._judged(demand.resource)}.filter(a, {demand.is_violated})"
        if require.class_label:
            yield "stated", _stated_around(shape, require.class_label)
            least = -1 if require.min_class is None else CLASS_RANK[require.min_class]
            yield "wanted", f"([{least}] + variables.stated.map(s, {cel.RANKS}[?s].orValue(-1))).max()"

    @property
    def _resources(self) -> tuple[str, ...]:
        """The resources the rule is about."""
        require = self._require
        deciding = QOS_RESOURCES if self._is_about_class else ()
        return tuple(dict.fromkeys((*deciding, *require.requests, *require.limits, *require.max_limit_request_ratio)))

    def _name(self, resource: str) -> str:
        """Return the variable of a resource."""
        return resource if resource in QOS_RESOURCES else f"resource{self._resources.index(resource)}"

    def _speaks_for_containers(self, resource: str) -> bool:
        """Whether a pod may state an amount for itself, in place of its containers."""
        return self._profile.pod_level_resources and is_pod_level(resource)

    def _pod_is_limited(self) -> str:
        """Return whether the API server will make requests for a template's pods from those of their containers."""
        limits, requests = (f"variables.spec.?resources.?{side}.orValue({{}})" for side in ("limits", "requests"))
        if self._profile.pod_level_defaults_last:
            return f"{limits}.size() + {requests}.size() > 0"
        huge = f"k.startsWith('hugepages-') && !(k in {requests})"
        of_containers = f"variables.containers.exists(c, c.?resources.?limits.orValue({{}}).exists(k, {huge}))"
        return f"{limits}.size() > 0 || ({requests}.size() > 0 && {of_containers})"

    def _amounts(self, resource: str, shape: Shape) -> Iterator[tuple[str, str]]:
        name = self._name(resource)
        yield name, cel.amounts_of_containers("variables.containers", resource)
        if not self._speaks_for_containers(resource):
            return
        if not shape.is_template:
            yield f"{name}OfPod", cel.amounts_of_pod("variables.spec", resource)
            return
        request, limit = (cel.stated("variables.spec", side, resource) for side in ("requests", "limits"))
        unstated = f"{limit}.orValue('0')"
        if resource in QOS_RESOURCES:
            yield f"{name}AtStart", cel.thousandths("variables.initContainers", resource)
            regular = cel.thousandths("variables.spec.containers", resource)
            together = cel.requested_together(regular, f"variables.{name}AtStart", "variables.initContainers")
            yield f"{name}Together", together
            is_requested = f"variables.containers.exists(c, {cel.stored_request('c', resource)}.hasValue())"
            unstated = f"{is_requested} ? variables.{name}Together : {unstated}"
        yield f"{name}RequestOfPod", f"{request}.orValue(!variables.podIsLimited ? '0' : {unstated})"
        yield f"{name}OfPod", cel.amounts_of_pod("variables.spec", resource, f"variables.{name}RequestOfPod")

    def _class(self) -> Iterator[tuple[str, str]]:
        """Yield the amounts that decide the class, the class, and what it would be without exempt containers."""
        cpu, memory = map(self._name, QOS_RESOURCES)
        deciding = f"variables.{cpu} + variables.{memory}"
        if self._profile.pod_level_resources:
            own = f"[variables.{cpu}OfPod, variables.{memory}OfPod]"
            deciding = f"{self._pod_decides('variables.spec')} ? {own} : {deciding}"
        yield "deciding", deciding
        yield "class", cel.class_of("variables.deciding")
        if self._of_containers:
            yield "others", f"variables.containers.filter(c, !{self._excused('c.name')})"
            yield (
                "decidingOfOthers",
                f"variables.deciding.filter(a, a.container == '' || !{self._excused('a.container')})",
            )
            yield "classOfOthers", cel.class_of("variables.decidingOfOthers")

    def _pod_decides(self, spec: str) -> str:
        """Return whether the pod's own resources decide the class; since 1.37 they have to state something."""
        if not self._profile.pod_level_resources:
            return "false"
        if self._profile.empty_pod_level_decides_class:
            return f"has({spec}.resources)"
        counts = "k in ['cpu', 'memory'] || k.startsWith('hugepages-')"
        return cel.any_of(
            f"{spec}.?resources.?{side}.orValue({{}}).exists(k, {counts})" for side in ("requests", "limits")
        )

    # ---- validations -------------------------------------------------------------------------------------------------

    def _validations(self, shape: Shape) -> Iterator[Plain]:
        require = self._require
        if require.class_label:
            yield self._no_such_class("variables.stated", may_be_exempt=True)
            yield self._class_too_low("variables.wanted")
        elif require.min_class is not None:
            yield self._class_too_low(str(CLASS_RANK[require.min_class]))
        if require.max_class is not None:
            yield self._class_too_high(require.max_class)
        for demand in self._demands():
            violating = f"variables.{demand.variable}"
            message = f"{cel.listing(violating, 'variables.containers')} + {cel.quoted(f', {demand.must}')}"
            yield self._validation(f"{violating}.size() == 0", message, demand.must)
        if require.priority is not None:
            yield from self._priority(require.priority, shape)

    def _no_such_class(self, stated: str, *, may_be_exempt: bool) -> Plain:
        key = self._require.class_label
        must = " is not a QoS class, must be Guaranteed, Burstable or BestEffort"
        wrong = f"{stated}.filter(s, !(s in {cel.CLASSES})).map(s, '\"' + s + '\"').join(', ')"
        message = f"{cel.quoted(f'{key} ')} + {wrong} + {cel.quoted(must)}"
        expression = f"{stated}.all(s, s in {cel.CLASSES})"
        return self._validation(expression, message, key + must, may_be_exempt=may_be_exempt)

    def _class_too_low(self, wanted: str) -> Plain:
        unfixed = f"variables.deciding.filter(a, !{cel.is_fixed('a')})"
        facts = f"': ' + {cel.listing(unfixed, 'variables.containers')}"
        nothing = "' or better: no container states cpu or memory'"
        more = {"0": nothing, "1": nothing, "2": facts}.get(wanted, f"({wanted} == 2 ? {facts} : {nothing})")
        classes = f"{cel.CLASSES}[variables.class] + ', must be ' + {cel.CLASSES}[{wanted}]"
        return self._of_class(">=", wanted, f"'QoS class would be ' + {classes} + {more}", "QoS class is too low")

    def _class_too_high(self, most: QOSClass) -> Plain:
        message = f"'QoS class would be ' + {cel.CLASSES}[variables.class] + ', must be {most} at most'"
        return self._of_class("<=", str(CLASS_RANK[most]), message, f"QoS class must be {most} at most")

    def _of_class(self, compared: str, wanted: str, message: str, fallback: str) -> Plain:
        """Return a demand on the class; one that is met without exempt containers is met."""
        met = [f"variables.class {compared} {wanted}"]
        if self._of_containers:
            met += [f"variables.classOfOthers {compared} {wanted}", "variables.others.size() == 0"]
        return self._validation(cel.any_of(met), message, fallback)

    def _demands(self) -> Iterator[_Demand]:
        """Yield what every container, or the pod in their place, has to state."""
        require = self._require
        for resource in require.requests:
            yield self._demand(resource, "Unrequested", "a.request == ''", f"must request {resource}")
        for resource in require.limits:
            yield self._demand(resource, "Unlimited", "a.limit == ''", f"must limit {resource}")
        for resource, ratio in require.max_limit_request_ratio.items():
            most = Fraction(str(ratio))
            without_limit = "true" if resource in ALWAYS_USED else "a.request != ''"
            if resource in require.limits:
                without_limit = "false"  # that it is missing is told already, and so with the request
            without_request = "false" if resource in require.requests else "true"
            is_beyond = f"(a.request == '' ? {without_request} : {cel.is_beyond_ratio('a', most)})"
            beyond = f"(a.limit == '' ? {without_limit} : {is_beyond})"
            must = f"{resource} limit must be {float(most):.4g}× its request at most"
            yield self._demand(resource, "BeyondRatio", beyond, must)

    def _demand(self, resource: str, suffix: str, is_violated: str, must: str) -> _Demand:
        if self._of_containers:
            is_violated = f"{is_violated} && (a.container == '' || !{self._excused('a.container')})"
        return _Demand(f"{self._name(resource)}{suffix}", resource, is_violated, must)

    def _judged(self, resource: str) -> str:
        """Return the amounts of every container, or of the pod where it speaks for them."""
        name = self._name(resource)
        if not self._speaks_for_containers(resource):
            return f"variables.{name}"
        own = f"variables.{name}OfPod"
        return f"({own}.request != '' || {own}.limit != '' ? [{own}] : variables.{name})"

    def _priority(self, wanted: Priority, shape: Shape) -> Iterator[Plain]:
        name = "variables.spec.?priorityClassName.orValue('')"
        must = f", must be {listed(wanted.classes)}" if wanted.classes else ""
        if (wanted.required or wanted.classes) and not shape.is_template:
            missing = f"no priorityClassName{must or ', must be set'}"
            yield self._validation(f"{name} != ''", cel.quoted(missing), missing)
        allowed = [cel.fits(name, wanted.classes)] if wanted.classes else []
        if wanted.forbidden_classes:
            allowed.append(f"!{cel.fits(name, wanted.forbidden_classes)}")
        if allowed:
            message = f"'priority class \"' + {name} + '\" is not allowed' + {cel.quoted(must)}"
            expression = cel.any_of((f"{name} == ''", cel.all_of(allowed)))
            yield self._validation(expression, message, f"priority class is not allowed{must}")
        value = "variables.spec.?priority.orValue(0)"
        for bound, compared, words in ((wanted.min, ">=", "at least"), (wanted.max, "<=", "at most")):
            if bound is not None and not shape.is_template:
                message = f"'priority is ' + string({value}) + ', must be {words} {bound}'"
                yield self._validation(f"{value} {compared} {bound}", message, f"priority must be {words} {bound}")

    def _validation(self, expression: str, message: str, fallback: str, *, may_be_exempt: bool = True) -> Plain:
        """Return a validation. Its message begins as all of podqos' do; ``fallback`` is what is said if that fails."""
        own = " ".join(self._rule.message.split()).rstrip(".: ")
        head = f'policy "{self._policy.name}", rule "{self._rule.name}": ' + (f"{own}: " if own else "")
        if self._exemptions and may_be_exempt:
            expression = f"variables.exempt || {expression}"
        return {
            "expression": expression,
            "messageExpression": cel.cut(f"{cel.quoted(head)} + {message}"),
            "message": f"{head}{fallback}"[:LONGEST],
            "reason": "Forbidden",
        }

    # ---- mutation ----------------------------------------------------------------------------------------------------

    @property
    def _mutates(self) -> bool:
        """Whether limits are to be filled in: pods that nothing demands to be Guaranteed are left alone."""
        must_be = self._require.min_class is QOSClass.GUARANTEED or bool(self._require.class_label)
        return self._wish.mutate and must_be and bool(self._kinds(PODS))

    def _mutating(self) -> Iterator[Printed]:
        """Yield what fills in limits, and only those: the API server then makes requests that are missing of them.

        A pod is only touched where that makes it Guaranteed. Injected containers are filled in when it is asked again.
        """
        conditions = ["!variables.exempt"] if self._exemptions else []
        if self._require.class_label:
            conditions.append("variables.wanted == 2")
        excused = self._excused("c.name") if self._of_containers else "false"
        can_be = f"variables.containers.all(c, {cel.any_of((excused, self._can_be_fixed('c', self._wish.limits)))})"
        decides = self._pod_decides("variables.spec")
        if decides != "false":
            within = cel.all_of(map(self._is_within_pod, QOS_RESOURCES))
            of_pod = cel.all_of((self._can_be_fixed("variables.spec", {}), f"variables.containers.all(c, {within})"))
            can_be = f"({decides} ? {of_pod} : {can_be})"
        conditions.append(can_be)
        mutations: list[Plain] = [
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": each}}
            for each in self._mutations()
        ]
        variables = (*self._named_expressions(PODS), ("fill", cel.all_of(conditions)))
        spec: dict[str, Plain] = {
            "failurePolicy": "Ignore",
            "reinvocationPolicy": "IfNeeded",
            "matchConstraints": {"resourceRules": self._resource_rules(PODS)},
            "matchConditions": self._conditions(PODS),
            "variables": _needed(variables, mutations),
            "mutations": mutations,
        }
        yield from self._bound("Mutating", PODS, spec, action=self._rule.action)

    @staticmethod
    def _can_be_fixed(place: str, given: Mapping[str, str]) -> str:
        """Return whether limits are the requests, or can be made so."""
        found = []
        for resource in QOS_RESOURCES:
            request, limit = (cel.stated(place, side, resource) for side in ("requests", "limits"))
            stored = f"{cel.stored_request(place, resource)}.orValue('0')"
            is_fixed = f"quantity({stored}).compareTo(quantity({limit}.orValue('0'))) == 0"
            can_be = f"{request}.hasValue()" if resource not in given else "true"
            is_none = f"{request}.hasValue() && sign(quantity({stored})) == 0"
            found.append(
                f"({limit}.hasValue() ? sign(quantity({stored})) > 0 && {is_fixed} : {can_be} && !({is_none}))"
            )
        return cel.all_of(found)

    @staticmethod
    def _is_within_pod(resource: str) -> str:
        """Return whether a container's limit is at most what the pod requests, which becomes its limit."""
        limit, request = cel.stated("c", "limits", resource), cel.stated("variables.spec", "requests", resource)
        return f"!quantity({limit}.orValue('0')).isGreaterThan(quantity({request}.orValue('0')))"

    def _mutations(self) -> Iterator[str]:
        """Yield one change each: a field that is not there cannot be changed to nothing."""
        decides = self._pod_decides("object.spec")
        for field in ("containers", "initContainers"):
            kind = f"Object.spec.{field}"
            limits = _missing_limits("c", self._wish.limits)
            made = f"{kind}{{name: c.name, resources: {kind}.resources{{limits: {limits}}}}}"
            is_lacking = f"{limits}.size() > 0"
            if self._of_containers:
                is_lacking = f"!{self._excused('c.name')} && {is_lacking}"
            lacking = f"object.spec.{field}.filter(c, {is_lacking})"
            filled = f"Object{{spec: Object.spec{{{field}: {lacking}.map(c, {made})}}}}"
            conditions = [
                "variables.fill",
                f"has(object.spec.{field})",
                *([f"!{decides}"] if decides != "false" else []),
            ]
            condition = cel.all_of(conditions)
            yield f"{condition} ? {filled} : Object{{}}"
        if decides != "false":
            limits = _missing_limits("object.spec", {})
            filled = f"Object{{spec: Object.spec{{resources: Object.spec.resources{{limits: {limits}}}}}}}"
            yield f"(variables.fill && {decides} && {limits}.size() > 0) ? {filled} : Object{{}}"


# ---- parts of objects ------------------------------------------------------------------------------------------------


def object_name(policy: str, rule: str, about: str) -> str:
    """Return the name of a policy and of its binding: the same for the same rule, another for another."""
    name = f"podqos.{policy}.{rule}.{about}"
    if name.count(".") == 3 and len(name) <= _LONGEST_NAME:  # else two rules could have one name
        return name
    mark = hashlib.sha256(f"{policy} {rule}".encode()).hexdigest()[:8]
    stem = f"{policy}-{rule}".replace(".", "-")
    return f"podqos.{stem[: _LONGEST_NAME - len(f'podqos.-{mark}.{about}')]}-{mark}.{about}"


def _shortened(name: str, longest: int) -> str:
    return name if len(name) <= longest else f"{name[: longest - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _missing_limits(place: str, given: Mapping[str, str]) -> str:
    """Return the limits that are missing: the requests, else what was given."""
    found = []
    for resource in QOS_RESOURCES:
        amount = cel.stated(place, "requests", resource)
        if resource in given:
            amount += f".or(optional.of({cel.quoted(given[resource])}))"
        is_there = f"{cel.stated(place, 'limits', resource)}.hasValue()"
        found.append(f"?{cel.quoted(resource)}: {is_there} ? optional.none() : {amount}")
    return f"{{{', '.join(found)}}}"


def _needed(variables: Iterable[tuple[str, str]], users: Sequence[Plain]) -> list[Plain]:
    """Return the variables that are used, in the order in which they use each other."""
    text = str(users)
    found: list[Plain] = []
    for name, expression in reversed([*variables]):
        if re.search(rf"\bvariables\.{name}\b", text):
            text += f" {expression}"
            found.append({"name": name, "expression": expression})
    return found[::-1]


def _actions(action: Action) -> list[Plain]:
    return [str(action)] if action is Action.AUDIT else [str(action), str(Action.AUDIT)]


def _condition(name: str, expression: str) -> Plain:
    return {"name": name, "expression": expression}


def _resource_rule(group: str, operations: Sequence[str], resources: Sequence[str]) -> Plain:
    return {
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "operations": [*operations],
        "resources": [*resources],
        "scope": "*",  # as the server adds it, so that applying again is no change
    }


def _match_resources(match: Match, shape: Shape) -> dict[str, Plain]:
    """Return which namespaces, and which pods by their labels, a binding is about."""
    found: dict[str, Plain] = {}
    exact = match.namespaces if not any(map(cel.is_wild, match.namespaces)) else ()
    selector = match.namespace_selector
    if exact or selector is not None:
        requirement: Plain = {"key": _NAMESPACE_NAME, "operator": "In", "values": [*exact]}
        found["namespaceSelector"] = _selector(selector or LabelSelector(), [requirement] if exact else [])
    if match.object_selector is not None and not shape.is_template:
        found["objectSelector"] = _selector(match.object_selector, [])
    return found


def _selector(selector: LabelSelector, more: Sequence[Plain]) -> Plain:
    expressions: list[Plain] = [
        {"key": each.key, "operator": str(each.operator), **({"values": [*each.values]} if each.values else {})}
        for each in selector.match_expressions
    ]
    labels: Mapping[str, str] = selector.match_labels
    found: dict[str, Plain] = {"matchLabels": dict(labels), "matchExpressions": [*expressions, *more]}
    return {key: value for key, value in found.items() if value}


def _both(field_of: Callable[[str], str], shape: Shape) -> str:
    roots = ("object", shape.pod_of("object")) if shape.is_template else ("object",)
    return f"[{', '.join(map(field_of, roots))}]"


def _stated(root: str, key: str) -> str:
    """Return the list of what labels and annotations of an object or template state."""
    return f"[{', '.join(_stated_items(root, key))}]"


def _stated_items(root: str, key: str) -> Iterator[str]:
    for field in ("labels", "annotations"):
        yield f"?{root}.?metadata.?{field}[?{cel.quoted(key)}]"


def _stated_around(shape: Shape, key: str) -> str:
    """Return the list of what namespace, object and pod state."""
    roots = ["namespaceObject", "object", *([shape.pod_of("object")] if shape.is_template else [])]
    return f"[{', '.join(item for root in roots for item in _stated_items(root, key))}]"
