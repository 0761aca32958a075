"""The program ``kubectl_complete-podqos``: kubectl runs it to complete what follows ``kubectl podqos``.

It gets the words so far, the last of which is to be completed, and prints a completion per line, with a description
behind a tab, then a line that tells kubectl whether files may be completed, too. Contexts come from the kubeconfig,
namespaces, nodes and the names of objects (``deploy/web``) from the cluster, if that answers at once.

Source: kubectl pkg/cmd/plugin (SetupPluginCompletion), and the directives of github.com/spf13/cobra's completions.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from podqos.cli.command_list import COMMANDS
from podqos.cli.grammar import Argument, Grammar, Values, grammar
from podqos.errors import PodqosError
from podqos.objects.selection import object_named

if TYPE_CHECKING:
    from podqos.cluster.resources import Resource

_FILES = ":0"
_NO_FILES = ":4"
_TAKES_NODE = ("rank", "cpu", "thresholds", "forecast", "blast")
_TAKES_OBJECTS = ("explain", "check", "admit", "advise")


def main(words: Sequence[str] | None = None) -> int:
    """Print the completions of the last word."""
    found, may_be_file = completions(sys.argv[1:] if words is None else words)
    with suppress(BrokenPipeError):
        print("\n".join([*found, _FILES if may_be_file else _NO_FILES]), flush=True)
    return 0


def completions(words: Sequence[str]) -> tuple[list[str], bool]:
    """Return the completions of the last word, and whether it may be a file."""
    *before, last = words or [""]
    if not before:
        return _matching(last, ((name, summary) for name, (_, summary) in COMMANDS.items())), False
    if before[0] not in COMMANDS:
        return [], False
    command, before = _command(before)
    known = {name: option for option in command.options for name in option.names}
    written, equals, start = last.partition("=")
    if equals and written in known:
        found, may_be_file = _values(known[written], start, before)
        return [f"{written}={each}" for each in found], may_be_file
    previous = known.get(before[-1]) if before else None
    if previous is not None and previous.value:
        return _values(previous, last, before)
    if last.startswith("-"):
        return _matching(last, ((name, option.about) for name, option in known.items())), False
    if command.below:
        return _matching(last, ((each.name, each.summary) for each in command.below)), False
    kind, slash, _ = last.partition("/")
    named = object_named(f"{kind}/any")
    if slash and named is not None and command.name in _TAKES_OBJECTS and not os.path.isdir(kind):
        names = _live(before, partial(_objects, named[0], before))
        return _matching(last, ((f"{kind}/{name}", about) for name, about in names)), False
    found = [word for positional in command.positionals for word in _values(positional, last, before)[0]]
    if command.name in _TAKES_NODE:
        found += _matching(last, _live(before, _nodes))
    takes_files = any(
        positional.values is Values.FILES or positional.value == "SCENARIO" for positional in command.positionals
    )
    return found, takes_files


def _command(before: list[str]) -> tuple[Grammar, list[str]]:
    """Return the command or subcommand that the words name, and the words after it."""
    found, rest = grammar(before[0]), before[1:]
    while rest and (below := next((each for each in found.below if each.name == rest[0]), None)):
        found, rest = below, rest[1:]
    return found, rest


def _values(argument: Argument, start: str, before: Sequence[str]) -> tuple[list[str], bool]:
    live = {"--context": _contexts, "--namespace": _namespaces, "--node": _nodes}
    for name in argument.names:
        if name in live:
            return _matching(start, _live(before, live[name])), False
    return _matching(start, ((word, "") for word in argument.words)), argument.values is Values.FILES


def _matching(start: str, described: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{word}\t{about}" if about else word for word, about in described if word.startswith(start)]


# ---- what only a cluster knows ---------------------------------------------------------------------------------------


def _live(before: Sequence[str], ask: Callable[[str | None, str | None], list[str]]) -> Iterator[tuple[str, str]]:
    """Yield names from the kubeconfig or the cluster; none if it does not answer."""
    with suppress(PodqosError, OSError):
        yield from ((name, "") for name in ask(_stated(before, "--context"), _stated(before, "--kubeconfig")))


def _stated(before: Sequence[str], option: str) -> str | None:
    """Return the given value of an option."""
    for word, following in zip(before, [*before[1:], ""], strict=False):
        if word == option:
            return following or None
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return None


def _contexts(_: str | None, kubeconfig: str | None) -> list[str]:
    from podqos.cluster.access import read_kubeconfig

    return sorted(read_kubeconfig(kubeconfig).contexts)


def _namespaces(context: str | None, kubeconfig: str | None) -> list[str]:
    from podqos.cluster.resources import NAMESPACES

    return _names(context, kubeconfig, NAMESPACES)


def _nodes(context: str | None, kubeconfig: str | None) -> list[str]:
    from podqos.cluster.resources import NODES

    return _names(context, kubeconfig, NODES)


def _objects(kind: str, before: Sequence[str], context: str | None, kubeconfig: str | None) -> list[str]:
    """Return the names of a kind's objects: in the given namespace, in all, or in the context's."""
    from podqos.cluster import resources

    known = (variable for variable in vars(resources).values() if isinstance(variable, resources.Resource))
    resource = next((resource for resource in known if resource.kind.lower() == kind), None)
    if resource is None:
        return []
    is_everywhere = not resource.is_namespaced or not {"-A", "--all-namespaces"}.isdisjoint(before)
    namespace = "" if is_everywhere else _stated(before, "-n") or _stated(before, "--namespace")
    return _names(context, kubeconfig, resource, namespace)


def _names(
    context: str | None, kubeconfig: str | None, resource: Resource[Any], namespace: str | None = ""
) -> list[str]:
    """Return the names of a resource's objects; ``namespace`` None is the context's."""
    from podqos.cluster.cluster import connect
    from podqos.cluster.patience import Patience

    hurried = Patience(connect_seconds=1.0, stall_seconds=1.0, total_seconds=2.0, attempts=1)
    with connect(context, kubeconfig=kubeconfig, patience=hurried) as cluster:
        within = cluster.namespace if namespace is None else namespace
        return [item.metadata.name for page in cluster.pages(resource, within) for item in page.items]
