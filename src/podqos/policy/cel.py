"""The expressions of admission policies, in CEL (Common Expression Language): small texts that compose.

Each function returns an expression, and takes those it is made of. None fails on a field that is missing: ``.?`` and
``[?…]`` follow fields that may not be there, ``''`` is an amount that is not stated. An error would reject the object.

What demands rest on is one form for all shapes, a list of maps such as
``{'container': 'web', 'resource': 'cpu', 'request': '1', 'limit': ''}``: the *amounts*. A request that is not stated is
the limit, as the API server fills it in; of a pod that is stored this changes nothing, of a template it is needed. An
amount of zero counts as none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from podqos.model.selector import LabelSelector, LabelSelectorRequirement
from podqos.policy.words import LONGEST

CLASSES = "['BestEffort', 'Burstable', 'Guaranteed']"
"""Classes are compared by their position in this list."""
RANKS = "{'BestEffort': 0, 'Burstable': 1, 'Guaranteed': 2}"
"""Positions by class."""
_WILD = frozenset("*?[")


# ---- values and patterns ---------------------------------------------------------------------------------------------


def quoted(text: str) -> str:
    """Return a string as a CEL literal, on one line."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in escaped) + "'"


def list_of(texts: Iterable[str]) -> str:
    """Return a list of texts."""
    return f"[{', '.join(map(quoted, texts))}]"


def any_of(conditions: Iterable[str]) -> str:
    """Return whether one of the conditions holds."""
    found = [condition for condition in conditions if condition != "false"]
    return "true" if "true" in found else f"({' || '.join(found)})" if len(found) > 1 else (found or ["false"])[0]


def all_of(conditions: Iterable[str]) -> str:
    """Return whether all conditions hold."""
    found = [condition for condition in conditions if condition != "true"]
    return f"({' && '.join(found)})" if len(found) > 1 else (found or ["true"])[0]


def fits(name: str, globs: Iterable[str]) -> str:
    """Return whether a name matches one of the patterns."""
    patterns = list(globs)
    exact = [glob for glob in patterns if not is_wild(glob)]
    conditions = [f"({name} in {list_of(exact)})"] if exact else []
    for glob in patterns:
        if glob == "*":
            conditions.append("true")
        elif is_wild(glob[:-1]) or glob[-1:] in ("?", "["):
            conditions.append(f"{name}.matches({quoted(regex(glob))})")
        elif glob.endswith("*"):
            conditions.append(f"{name}.startsWith({quoted(glob[:-1])})")
    return any_of(conditions)


def is_wild(glob: str) -> bool:
    """Whether a pattern can match several names."""
    return not _WILD.isdisjoint(glob)


def regex(glob: str) -> str:
    """Return a pattern with ``*``, ``?`` and ``[…]`` as an equivalent regular expression (RE2)."""
    found, index = "", 0
    while index < len(glob):
        char, index = glob[index], index + 1
        if char == "*":
            found += ".*"
        elif char == "?":
            found += "."
        elif char == "[" and (end := glob.find("]", index + (glob[index : index + 1] == "!") + 1)) > 0:
            found += _character_class(glob[index:end])
            index = end + 1
        else:
            found += _escaped(char)
    return f"(?s)^{found}$"


def _character_class(members: str) -> str:
    """Return the regular expression of ``[…]``: a range from high to low matches nothing, which RE2 would reject."""
    negated, members = members.startswith("!"), members.removeprefix("!")
    ranges, index = "", 0
    while index < len(members):
        first, last = members[index], members[index]
        if members[index + 1 : index + 2] == "-" and index + 2 < len(members):
            last, index = members[index + 2], index + 2
        index += 1
        if first <= last:
            ranges += _escaped(first) if first == last else f"{_escaped(first)}-{_escaped(last)}"
    if not ranges:
        return "." if negated else r"[^\x00-\x{10FFFF}]"
    return f"[{'^' if negated else ''}{ranges}]"


def _escaped(char: str) -> str:
    return char if char.isalnum() or not char.isascii() or char in "_/:, " else f"\\{char}"


def selected(labels: str, selector: LabelSelector) -> str:
    """Return whether labels, an expression that yields them, meet a selector."""
    equal = (LabelSelectorRequirement(key, "In", (value,)) for key, value in selector.match_labels.items())
    return all_of(_required(labels, requirement) for requirement in (*equal, *selector.match_expressions))


def _required(labels: str, requirement: LabelSelectorRequirement) -> str:
    key, values = quoted(requirement.key), list_of(requirement.values)
    match requirement.operator:
        case "In":
            return f"({key} in {labels} && {labels}[{key}] in {values})"
        case "NotIn":
            return f"!({key} in {labels} && {labels}[{key}] in {values})"
        case "Exists":
            return f"({key} in {labels})"
        case _:
            return f"!({key} in {labels})"


def annotated(annotations: str, wanted: Mapping[str, str]) -> str:
    """Return whether annotations have values that match patterns."""
    return all_of(
        f"({quoted(key)} in {annotations} && {fits(f'{annotations}[{quoted(key)}]', (glob,))})"
        for key, glob in wanted.items()
    )


def labels_of(metadata_of: str) -> str:
    """Return the labels of an object or template."""
    return f"{metadata_of}.?metadata.?labels.orValue({{}})"


def annotations_of(metadata_of: str) -> str:
    """Return the annotations of an object or template."""
    return f"{metadata_of}.?metadata.?annotations.orValue({{}})"


# ---- amounts ---------------------------------------------------------------------------------------------------------


def stated(resources_of: str, side: str, resource: str) -> str:
    """Return an optional: the amount that a container, or a pod's spec, states."""
    return f"{resources_of}.?resources.?{side}[?{quoted(resource)}]"


def stored_request(container: str, resource: str) -> str:
    """Return an optional: the request of a container as the API server stores it."""
    return f"{stated(container, 'requests', resource)}.or({stated(container, 'limits', resource)})"


def amounts_of_containers(containers: str, resource: str) -> str:
    """Return the amounts of every container."""
    request, limit = stored_request("c", resource), stated("c", "limits", resource)
    return f"{containers}.map(c, {_amounts('string(c.name)', resource, request, limit)})"


def amounts_of_pod(spec: str, resource: str, request: str | None = None) -> str:
    """Return the amounts that a pod itself states, or the same with another request; its container has no name."""
    optional = stated(spec, "requests", resource) if request is None else f"optional.of({request})"
    return _amounts("''", resource, optional, stated(spec, "limits", resource))


def _amounts(container: str, resource: str, request: str, limit: str) -> str:
    sides = f"'request': {_above_zero(request)}, 'limit': {_above_zero(limit)}"
    return f"{{'container': {container}, 'resource': {quoted(resource)}, {sides}}}"


def _above_zero(amount: str) -> str:
    """Return an optional amount, or none; ``sign`` is a function, not a method."""
    return f"{amount}.optMap(q, sign(quantity(q)) > 0 ? string(q) : '').orValue('')"


def class_of(found: str) -> str:
    """Return the position in ``CLASSES`` of the class that amounts of cpu and memory make.

    Requests are within limits, so comparing each with its own limit is comparing their sums.
    """
    nothing = f"{found}.all(a, a.request == '' && a.limit == '')"
    return f"{nothing} ? 0 : {found}.all(a, {is_fixed('a')}) ? 2 : 1"


def is_fixed(a: str) -> str:
    """Return whether the limit is set and equals the request, as Guaranteed requires."""
    return f"({a}.limit != '' && {a}.request != '' && quantity({a}.request).compareTo(quantity({a}.limit)) == 0)"


def is_beyond_ratio(a: str, most: Fraction) -> str:
    """Return whether a limit exceeds a multiple of its request, without rounding errors."""
    limit = times(f"quantity({a}.limit)", most.denominator)
    return f"{limit}.isGreaterThan({times(f'quantity({a}.request)', most.numerator)})"


def times(quantity: str, factor: int) -> str:
    """Return an exact multiple of a quantity, digit by digit: quantities can be added, not multiplied."""
    first, *others = map(int, str(factor))
    steps = "".join(
        f".map(l, [l[0], {_added('l[1]', 10)}" + (f".add({_added('l[0]', digit)})])" if digit else "])")
        for digit in others
    )
    return quantity if factor == 1 else f"[{quantity}].map(q, [q, {_added('q', first)}]){steps}[0][1]"


def _added(quantity: str, count: int) -> str:
    return quantity + f".add({quantity})" * (count - 1)


def thousandths(containers: str, resource: str) -> str:
    """Return the requests of containers in thousandths, which all amounts are whole numbers of: quantities have no sum.

    A quantity that is no whole number has no integer, whatever it is multiplied by; the server writes it ``1500m``, or
    ``1500e-3`` if it was written with an exponent.
    """
    whole, other = "quantity(q).asInteger() * 1000", "int(q.replace('m', '').replace('e-3', ''))"
    requests = f"{containers}.map(c, {stored_request('c', resource)}.orValue('0'))"
    return f"{requests}.map(q, quantity(q).isInteger() ? {whole} : {other})"


def requested_together(regular: str, initial: str, init_containers: str) -> str:
    """Return what containers request together, of lists of thousandths: the most of the end and of any moment before.

    Sidecars stay, and count with everything that starts after them.
    """
    is_sidecar = f"{init_containers}[j].?restartPolicy.orValue('') == 'Always'"
    running = f"{regular}.sum() + {initial}.transformList(j, s, {is_sidecar}, s).sum()"
    starting = f"{initial}.transformList(i, m, m + {initial}.transformList(j, s, j < i && {is_sidecar}, s).sum())"
    return f"[([{running}] + {starting}).max()].map(m, m % 1000 == 0 ? string(m / 1000) : string(m) + 'm')[0]"


# ---- messages --------------------------------------------------------------------------------------------------------


def cut(message: str) -> str:
    """Return a message that is not too long."""
    return f"[{message}].map(m, size(m) > {LONGEST} ? m.substring(0, {LONGEST - 1}) + '…' : m)[0]"


def listing(found: str, containers: str) -> str:
    """Return amounts in words, by container: ``container "web" has cpu request 100m and no cpu limit, …; …``."""
    request, limit = (
        f"(a.{side} == '' ? 'no ' + a.resource + ' {side}' : a.resource + ' {side} ' + a.{side})"
        for side in ("request", "limit")
    )
    neither = "'neither ' + a.resource + ' request nor limit'"
    both = f"a.request == '' && a.limit == '' ? {neither} : {request} + ' and ' + {limit}"
    who = "(n == '' ? 'the pod' : 'container \"' + n + '\"')"
    of_one = f"{who} + ' has ' + f.filter(a, a.container == n).map(a, {both}).join(', ')"
    names = f"([''] + {containers}.map(c, string(c.name))).filter(n, f.exists(a, a.container == n))"
    return f"[{found}].map(f, {names}.map(n, {of_one}).join('; '))[0]"


# ---- who made an object ----------------------------------------------------------------------------------------------


NAME = "object.metadata.?name.orValue(object.metadata.?generateName.orValue(''))"
OWNERS = "object.metadata.?ownerReferences.orValue([]).filter(o, o.?controller.orValue(false))"
"""The references to the object's controller: one at most."""
_TEMPLATE_HASH = "object.metadata.?labels[?'pod-template-hash'].orValue('?')"


def identities(owners: str) -> str:
    """Return ``Kind/name`` of the object and of its owners, as far as the object itself shows."""
    of_deployment = f"o.kind == 'ReplicaSet' && o.name.endsWith('-' + {_TEMPLATE_HASH})"
    deployment, cron_job = (_shorter("o.name", end) for end in (f"'-' + {_TEMPLATE_HASH}", "'-12345678'"))
    of_cron_job = "o.kind == 'Job' && o.name.matches('^.+-[0-9]{8}$')"
    return " + ".join(
        (
            f"[request.kind.kind + '/' + {NAME}]",
            f"{owners}.map(o, o.kind + '/' + o.name)",
            f"{owners}.filter(o, {of_deployment}).map(o, 'Deployment/' + {deployment})",
            f"{owners}.filter(o, {of_cron_job}).map(o, 'CronJob/' + {cron_job})",
        )
    )


def _shorter(text: str, end: str) -> str:
    return f"{text}.substring(0, size({text}) - size({end}))"
