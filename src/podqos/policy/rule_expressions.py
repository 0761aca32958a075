"""A policy's rule in CEL: which objects it applies to, what it reads from them, and what must hold.

Pods and templates are read alike; what the API server fills in before a pod is stored is added for templates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from fractions import Fraction

from msgspec import Struct

from podqos.amounts import listed
from podqos.manifest.plain import Plain
from podqos.model.pod import CLASS_RANK, QOSClass
from podqos.model.profile import Profile
from podqos.model.resources import QOS_RESOURCES, is_pod_level
from podqos.policy import cel
from podqos.policy.admission_objects import Shape, condition
from podqos.policy.judge import ALWAYS_USED
from podqos.policy.matching import has_expired, named
from podqos.policy.model import Exemption, Policy, Priority, Rule
from podqos.policy.words import LONGEST

_MIRROR = "kubernetes.io/config.mirror"


class _Demand(Struct, frozen=True):
    """What every container, or the pod instead, must state about a resource."""

    variable: str
    """The variable with the violating amounts."""
    resource: str
    is_violated: str
    """Whether amounts ``a`` violate it."""
    must: str


class RuleExpressions:
    """One rule in CEL, for objects of any shape."""

    def __init__(self, policy: Policy, rule: Rule, profile: Profile, today: date | None) -> None:
        """``today``: expired exemptions are left out; without a date, none has expired."""
        self._policy = policy
        self._rule = rule
        self._require = rule.require
        self._profile = profile
        exemptions = [
            exemption
            for exemption in policy.spec.exemptions
            if (not exemption.rules or named(exemption.rules, (rule.name,)))
            and not (today is not None and has_expired(exemption, today))
        ]
        self.exemptions = [exemption for exemption in exemptions if not exemption.containers]
        """Those of whole objects."""
        self._of_containers = [exemption for exemption in exemptions if exemption.containers]
        self.is_about_class = bool(self._require.class_label or self._require.min_class or self._require.max_class)

    # ---- which objects -----------------------------------------------------------------------------------------------

    def conditions(self, shape: Shape) -> list[Plain]:
        """Return conditions that are cheaper than a judgement; namespaces' labels are unknown to them."""
        match = self._rule.match
        conditions = []
        if shape.is_template:
            conditions += [
                condition("not-being-deleted", "!has(object.metadata.deletionTimestamp)"),
                condition("not-made-by-another", f"{cel.OWNERS}.size() == 0"),
                condition("changed", cel.any_of(("request.operation == 'CREATE'", *self._changes(shape)))),
            ]
        else:
            conditions.append(condition("no-mirror", f"!({cel.quoted(_MIRROR)} in {cel.annotations_of('object')})"))
        if any(map(cel.is_wild, match.namespaces)):
            conditions.append(condition("namespaces", cel.fits("request.namespace", match.namespaces)))
        if match.names:
            conditions.append(condition("names", cel.fits(cel.NAME, match.names)))
        if match.object_selector is not None and shape.is_template:
            labels = _both(cel.labels_of, shape)
            conditions.append(condition("labels", f"{labels}.exists(l, {cel.selected('l', match.object_selector)})"))
        if match.annotations:
            annotations = _both(cel.annotations_of, shape)
            conditions.append(
                condition("annotations", f"{annotations}.exists(l, {cel.annotated('l', match.annotations)})")
            )
        return conditions

    def _changes(self, shape: Shape) -> Iterator[str]:
        """Yield the changes after which an accepted template is validated again."""
        yield f"{shape.pod_of('object')} != {shape.pod_of('oldObject')}"
        yield f"{cel.labels_of('object')} != {cel.labels_of('oldObject')}"
        for key in dict.fromkeys((*self._rule.match.annotations, *filter(None, (self._require.class_label,)))):
            new, old = (
                f"{root}.metadata.?annotations[?{cel.quoted(key)}].orValue('')" for root in ("object", "oldObject")
            )
            yield f"{new} != {old}"

    def _exempt(self, exemption: Exemption) -> str:
        """Return whether an exemption applies to the object and the requesting user."""
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

    def excused(self, container: str) -> str:
        """Return whether a container, by its name, is exempt: ``false`` where no exemption names containers."""
        return cel.any_of(
            cel.all_of((self._exempt(of_container), cel.fits(container, of_container.containers)))
            for of_container in self._of_containers
        )

    # ---- variables ---------------------------------------------------------------------------------------------------

    def variables(self, shape: Shape) -> Iterator[tuple[str, str]]:
        """Yield variables that several expressions may use; unused ones are not printed."""
        require = self._require
        yield "owners", cel.OWNERS
        yield "identities", cel.identities("variables.owners")
        yield "exempt", cel.any_of(map(self._exempt, self.exemptions))
        yield "spec", f"{shape.pod_of('object')}.spec"
        yield "initContainers", "variables.spec.?initContainers.orValue([])"
        yield "containers", "variables.spec.containers + variables.initContainers"
        yield "podIsLimited", self._pod_is_limited()
        for resource in self._resources:
            yield from self._amounts(resource, shape)
        if self.is_about_class:
            yield from self._class()
        for demand in self._demands():
            yield demand.variable, f"{self._judged(demand.resource)}.filter(a, {demand.is_violated})"
        if require.class_label:
            yield "stated", _stated_around(shape, require.class_label)
            least = -1 if require.min_class is None else CLASS_RANK[require.min_class]
            yield "wanted", f"([{least}] + variables.stated.map(s, {cel.RANKS}[?s].orValue(-1))).max()"

    @property
    def _resources(self) -> tuple[str, ...]:
        """The resources of the rule."""
        require = self._require
        deciding = QOS_RESOURCES if self.is_about_class else ()
        return tuple(dict.fromkeys((*deciding, *require.requests, *require.limits, *require.max_limit_request_ratio)))

    def _name(self, resource: str) -> str:
        """Return the variable of a resource."""
        return resource if resource in QOS_RESOURCES else f"resource{self._resources.index(resource)}"

    def _speaks_for_containers(self, resource: str) -> bool:
        """Whether a pod may state an amount instead of its containers."""
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
        """Yield the amounts that determine the class, the class, and the class without exempt containers."""
        cpu, memory = map(self._name, QOS_RESOURCES)
        deciding = f"variables.{cpu} + variables.{memory}"
        if self._profile.pod_level_resources:
            own = f"[variables.{cpu}OfPod, variables.{memory}OfPod]"
            deciding = f"{self.pod_decides('variables.spec')} ? {own} : {deciding}"
        yield "deciding", deciding
        yield "class", cel.class_of("variables.deciding")
        if self._of_containers:
            yield "others", f"variables.containers.filter(c, !{self.excused('c.name')})"
            yield (
                "decidingOfOthers",
                f"variables.deciding.filter(a, a.container == '' || !{self.excused('a.container')})",
            )
            yield "classOfOthers", cel.class_of("variables.decidingOfOthers")

    def pod_decides(self, spec: str) -> str:
        """Return whether the pod-level resources determine the class; since 1.37 they must state something."""
        if not self._profile.pod_level_resources:
            return "false"
        if self._profile.empty_pod_level_decides_class:
            return f"has({spec}.resources)"
        counts = "k in ['cpu', 'memory'] || k.startsWith('hugepages-')"
        return cel.any_of(
            f"{spec}.?resources.?{side}.orValue({{}}).exists(k, {counts})" for side in ("requests", "limits")
        )

    # ---- validations -------------------------------------------------------------------------------------------------

    def validations(self, shape: Shape) -> Iterator[Plain]:
        """Yield the validations."""
        require = self._require
        if require.class_label:
            yield self.no_such_class("variables.stated", may_be_exempt=True)
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

    def no_such_class(self, stated: str, *, may_be_exempt: bool) -> Plain:
        """Return the validation that a stated class exists."""
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
        """Return a requirement for the class, which may be met without the exempt containers."""
        met = [f"variables.class {compared} {wanted}"]
        if self._of_containers:
            met += [f"variables.classOfOthers {compared} {wanted}", "variables.others.size() == 0"]
        return self._validation(cel.any_of(met), message, fallback)

    def _demands(self) -> Iterator[_Demand]:
        """Yield what every container, or the pod instead, must state."""
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
            is_violated = f"{is_violated} && (a.container == '' || !{self.excused('a.container')})"
        return _Demand(f"{self._name(resource)}{suffix}", resource, is_violated, must)

    def _judged(self, resource: str) -> str:
        """Return the amounts of every container, or of the pod if it states its own."""
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
        """Return a validation. Its message starts like all of podqos'; ``fallback`` is used if that fails."""
        own = " ".join(self._rule.message.split()).rstrip(".: ")
        head = f'policy "{self._policy.name}", rule "{self._rule.name}": ' + (f"{own}: " if own else "")
        if self.exemptions and may_be_exempt:
            expression = f"variables.exempt || {expression}"
        return {
            "expression": expression,
            "messageExpression": cel.cut(f"{cel.quoted(head)} + {message}"),
            "message": f"{head}{fallback}"[:LONGEST],
            "reason": "Forbidden",
        }


def _both(field_of: Callable[[str], str], shape: Shape) -> str:
    roots = ("object", shape.pod_of("object")) if shape.is_template else ("object",)
    return f"[{', '.join(map(field_of, roots))}]"


def stated(root: str, key: str) -> str:
    """Return the list of what labels and annotations of an object or template state."""
    return f"[{', '.join(_stated_items(root, key))}]"


def _stated_items(root: str, key: str) -> Iterator[str]:
    for field in ("labels", "annotations"):
        yield f"?{root}.?metadata.?{field}[?{cel.quoted(key)}]"


def _stated_around(shape: Shape, key: str) -> str:
    """Return the list of what namespace, object and pod state."""
    roots = ["namespaceObject", "object", *([shape.pod_of("object")] if shape.is_template else [])]
    return f"[{', '.join(item for root in roots for item in _stated_items(root, key))}]"
