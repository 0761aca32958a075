"""The violations of a pod.

A pod is judged as the API server stores it: a missing request counts as its limit. Where a pod states an amount for
itself, that counts instead of its containers' amounts, as it does for the class. Amounts of zero count as none.

An exemption never adds a violation: where it is about some containers only, the class is held against a pod only if it
would be too low, or too high, without them as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from fractions import Fraction
from functools import cache, lru_cache, partial

from msgspec.structs import replace

from podqos.amounts import listed
from podqos.manifest.plain import format_path
from podqos.model.pod import CLASS_RANK, Container, Pod, QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.model.resources import EPHEMERAL_STORAGE, QOS_RESOURCES, ResourceRequirements, is_pod_level
from podqos.policy.matching import exempts, matches, named
from podqos.policy.model import Exemption, Globs, Policy, Rule
from podqos.policy.subject import Subject
from podqos.policy.violation import Amounts, Exempted, Judgement, Violation, Why
from podqos.qos.classes import Classification, ResourcePlace, classify, deciding_resources

# Every container uses these, whether it states an amount or not.
ALWAYS_USED = (*QOS_RESOURCES, EPHEMERAL_STORAGE)


def judge(
    policies: Sequence[Policy], subject: Subject, *, today: date | None = None, profile: Profile = LATEST
) -> Judgement:
    """Return the violations of an object. ``today`` decides which exemptions have expired; without it, none has."""
    if not subject.is_judged:
        return Judgement()
    violations: list[Violation] = []
    exempted: list[Exempted] = []
    unknown_priority = False
    classified = cache(partial(classify, subject.stored, profile))
    for policy in policies:
        for rule in policy.spec.rules:
            if not matches(rule.match, subject):
                continue
            judging = _JudgedObject(policy.name, rule, subject, profile, classified)
            found = list(judging.violations())
            exemptions = policy.spec.exemptions if found else ()
            applying = [exemption for exemption in exemptions if exempts(exemption, rule.name, subject, today)]
            for violation in found:
                exemption = judging.exempting(violation, applying) if applying else None
                if exemption is None:
                    violations.append(violation)
                else:
                    exempted.append(Exempted(violation, exemption.reason))
            unknown_priority = unknown_priority or judging.lacks_priority
    violations.sort(key=lambda violation: violation.action.rank)
    return Judgement(tuple(violations), tuple(exempted), unknown_priority)


class _JudgedObject:
    """One rule and one object that it applies to."""

    def __init__(
        self, policy: str, rule: Rule, subject: Subject, profile: Profile, classified: Callable[[], Classification]
    ) -> None:
        self._policy = policy
        self._rule = rule
        self._require = rule.require
        self._subject = subject
        self._pod = subject.stored
        self._profile = profile
        self._classified = classified

    def violations(self) -> Iterator[Violation]:
        """Yield all violations of the pod."""
        require = self._require
        if require.min_class is not None or require.max_class is not None or require.class_label:
            yield from self._of_class()
        for resource in require.requests:
            yield from self._not_stated(resource, Why.NO_REQUEST)
        for resource in require.limits:
            yield from self._not_stated(resource, Why.NO_LIMIT)
        for resource, ratio in require.max_limit_request_ratio.items():
            for violation in self._of_ratio(resource, _exact(ratio)):
                told = {Why.NO_LIMIT: require.limits, Why.NO_REQUEST: require.requests}.get(violation.why, ())
                if resource not in told:
                    yield violation
        if require.priority is not None:
            yield from self._of_priority()

    def exempting(self, violation: Violation, exemptions: Sequence[Exemption]) -> Exemption | None:
        """Return the exemption from a violation, or None."""
        whole = next((exemption for exemption in exemptions if not exemption.containers), None)
        if whole is not None:
            return whole
        if violation.why in {Why.CLASS_TOO_LOW, Why.CLASS_TOO_HIGH}:
            exempt = [glob for exemption in exemptions for glob in exemption.containers]
            others = _without(self._pod, tuple(exempt))
            missing = CLASS_RANK[QOSClass(violation.wanted)] - CLASS_RANK[classify(others, self._profile).qos_class]
            is_met = missing <= 0 if violation.why is Why.CLASS_TOO_LOW else missing >= 0
            is_met = is_met or not (others.spec.containers or others.spec.init_containers)
            return exemptions[0] if is_met else None
        held = violation.container
        return next((exemption for exemption in exemptions if held and named(exemption.containers, (held,))), None)

    @property
    def lacks_priority(self) -> bool:
        """Whether the rule depends on a priority that is unknown."""
        priority = self._require.priority
        has_bounds = priority is not None and not (priority.min is None and priority.max is None)
        return has_bounds and self._subject.priority is None

    def _violation(self, why: Why, path: str, actual: str, wanted: str, *amounts: Amounts) -> Violation:
        rule = self._rule
        return Violation(self._policy, rule.name, rule.action, why, path, actual, wanted, amounts, rule.message)

    # ---- the class ---------------------------------------------------------------------------------------------------

    def _of_class(self) -> Iterator[Violation]:
        require = self._require
        wanted = [] if require.min_class is None else [require.min_class]
        for path, text in self._stated_classes():
            if text in set(QOSClass):
                wanted.append(QOSClass(text))
            else:
                yield self._violation(Why.NO_SUCH_CLASS, path, text, require.class_label)
        if not wanted and require.max_class is None:
            return
        classified = self._classified()
        actual = classified.qos_class
        least = max(wanted, key=CLASS_RANK.__getitem__, default=actual)
        if CLASS_RANK[actual] < CLASS_RANK[least]:
            amounts = self._deciding(classified) if least is QOSClass.GUARANTEED else ()
            path = amounts[0].path if amounts else self._subject.workload.at("spec.containers[0].resources")
            yield self._violation(Why.CLASS_TOO_LOW, path, actual, least, *amounts)
        if require.max_class is not None and CLASS_RANK[actual] > CLASS_RANK[require.max_class]:
            path = self._subject.workload.at("spec.containers[0].resources")
            yield self._violation(Why.CLASS_TOO_HIGH, path, actual, require.max_class)

    def _stated_classes(self) -> Iterator[tuple[str, str]]:
        """Yield the classes that labels and annotations state, with their paths; the namespace's have none."""
        key, subject = self._require.class_label, self._subject
        if not key:
            return
        for found in (subject.namespace_metadata.labels, subject.namespace_metadata.annotations):
            if key in found:
                yield "", found[key]
        pod_path = subject.workload.pod_path
        for field, both in (("labels", subject.labels), ("annotations", subject.annotations)):
            for prefix, stated in zip(("", f"{pod_path}."), both, strict=False):
                if key in stated:
                    yield f"{prefix}{format_path(('metadata', field, key))}", stated[key]

    def _deciding(self, classified: Classification) -> tuple[Amounts, ...]:
        """Return the amounts that keep a pod from being Guaranteed."""
        wrong = {(missing.place.path, missing.resource) for missing in classified.missing_limits}
        for unequal in classified.unequal:
            wrong |= {(difference.place.path, unequal.resource) for difference in unequal.differences}
        return tuple(
            self._amounts(place, resources, name)
            for place, resources in deciding_resources(self._pod, self._profile)
            for name in QOS_RESOURCES
            if (place.path, name) in wrong
        )

    # ---- requests and limits -----------------------------------------------------------------------------------------

    def _places(self, resource: str) -> Iterator[tuple[ResourcePlace, ResourceRequirements]]:
        """Yield what a requirement for a resource applies to: every container, or the pod if it states its own."""
        spec = self._pod.spec
        own = spec.resources
        if own is not None and is_pod_level(resource) and (own.limits.get(resource) or own.requests.get(resource)):
            yield ResourcePlace("spec", ""), own
            return
        yield from self._subject.places

    def _not_stated(self, resource: str, why: Why) -> Iterator[Violation]:
        for place, resources in self._places(resource):
            amounts = resources.requests if why is Why.NO_REQUEST else resources.limits
            if not amounts.get(resource):
                yield self._of_place(why, place, resources, resource)

    def _of_ratio(self, resource: str, most: Fraction) -> Iterator[Violation]:
        for place, resources in self._places(resource):
            limit, request = resources.limits.get(resource), resources.requests.get(resource)
            if not limit:
                if request or resource in ALWAYS_USED:
                    yield self._of_place(Why.NO_LIMIT, place, resources, resource)
            elif not request:
                yield self._of_place(Why.NO_REQUEST, place, resources, resource)
            elif limit.nanos * most.denominator > most.numerator * request.nanos:
                violation = self._of_place(Why.RATIO_TOO_HIGH, place, resources, resource)
                ratio = Fraction(limit.nanos, request.nanos)
                yield replace(violation, actual=_shown(ratio), wanted=_shown(most))

    def _of_place(self, why: Why, place: ResourcePlace, resources: ResourceRequirements, resource: str) -> Violation:
        amounts = self._amounts(place, resources, resource)
        side = "requests" if why is Why.NO_REQUEST else "limits"
        return self._violation(why, f"{amounts.path}.{format_path((side, resource))}", "", "", amounts)

    def _amounts(self, place: ResourcePlace, resources: ResourceRequirements, resource: str) -> Amounts:
        path = self._subject.workload.at(f"{place.path}.resources")
        return Amounts(
            path, place.container, resource, resources.requests.get(resource), resources.limits.get(resource)
        )

    # ---- priority ----------------------------------------------------------------------------------------------------

    def _of_priority(self) -> Iterator[Violation]:
        wanted = self._require.priority
        assert wanted is not None
        name = self._pod.spec.priority_class_name
        path = self._subject.workload.at("spec.priorityClassName")
        if not name:
            if wanted.required or wanted.classes:
                yield self._violation(Why.NO_PRIORITY_CLASS, path, "", listed(wanted.classes))
        elif wanted.classes and not named(wanted.classes, (name,)):
            yield self._violation(Why.PRIORITY_CLASS_NOT_ALLOWED, path, name, listed(wanted.classes))
        elif named(wanted.forbidden_classes, (name,)):
            yield self._violation(Why.PRIORITY_CLASS_NOT_ALLOWED, path, name, "")
        value = self._subject.priority
        if value is None:
            return
        if wanted.min is not None and value < wanted.min:
            yield self._violation(Why.PRIORITY_TOO_LOW, path, str(value), str(wanted.min))
        if wanted.max is not None and value > wanted.max:
            yield self._violation(Why.PRIORITY_TOO_HIGH, path, str(value), str(wanted.max))


def _without(pod: Pod, exempt: Globs) -> Pod:
    """Return a pod without some of its containers."""

    def others(containers: tuple[Container, ...]) -> tuple[Container, ...]:
        return tuple(container for container in containers if not named(exempt, (container.name,)))

    spec = pod.spec
    left = replace(spec, containers=others(spec.containers), init_containers=others(spec.init_containers))
    return replace(pod, spec=left)


@lru_cache(1024)
def _exact(ratio: float) -> Fraction:
    """Return a ratio exactly as written: 1.1 is eleven tenths."""
    return Fraction(str(ratio))


def _shown(ratio: Fraction) -> str:
    """Return a ratio as a short number."""
    return f"{float(ratio):.4g}" if ratio < 10**9 else "more than 1000000000"
