"""What sidecar injectors add to a pod when their webhook runs: istio, linkerd, vault, or what a file describes.

A mutating webhook sees the pod after the API server's own plug-ins, and these run once more over what it changed: an
injected container is defaulted and gets the defaults of a LimitRange like any other. So it is enough to inject first
and to take the result through ``chain``. Only what decides class, score and amounts is added; images, volumes and
environments are left out.

``inject`` supposes that the injector watches the pod's namespace. Whether the pod itself takes part is decided as the
injector does it, and said.

Sources: istio/istio 1.30 manifests/charts/istio-control/istio-discovery/files/injection-template.yaml and values.yaml
(global.proxy.resources), pkg/kube/inject/inject.go (injectRequired) and webhook.go (reorderPod; native sidecars unless
switched off, from Kubernetes 1.33); linkerd/linkerd2 2.19 charts/partials/templates/_proxy.tpl, _proxy-init.tpl
(the init container asks for what the proxy asks for), pkg/inject/report.go; hashicorp/vault-k8s 1.7
agent-inject/agent/agent.go, annotations.go, container_sidecar.go, container_init_sidecar.go; Kubernetes
staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go (plug-ins run again).
"""

from __future__ import annotations

from difflib import get_close_matches
from enum import StrEnum
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from podqos.errors import InputError, InvalidArgument, InvalidManifest, InvalidQuantity
from podqos.manifest.decode import convert_pod
from podqos.manifest.fields import suggestion
from podqos.manifest.plain import Plain
from podqos.model.pod import Container, Pod
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, NO_RESOURCES, ResourceRequirements
from podqos.naming import naming

Side = Literal["requests", "limits"]
ContainerList = Literal["containers", "initContainers"]


class SkipReason(StrEnum):
    """Why an injector leaves a pod alone."""

    HOST_NETWORK = "HostNetwork"
    """The pod uses the node's network, which a proxy must not redirect."""
    SYSTEM_NAMESPACE = "SystemNamespace"
    OPTED_OUT = "OptedOut"
    """A label or annotation of the pod opts out."""
    NOT_OPTED_IN = "NotOptedIn"
    """The pod would have to opt in, and does not."""
    ALREADY_INJECTED = "AlreadyInjected"


class Skipped(Struct, frozen=True):
    """Why nothing was added, and what in the pod decided that."""

    reason: SkipReason
    field: str = ""
    """The field, label or annotation that decided."""


class AmountAnnotation(Struct, frozen=True):
    """An annotation of the pod that sets an amount of the injected containers."""

    key: str
    side: Side
    resource: str


class Injector(Struct, frozen=True):
    """A known injector, with the values of its default installation."""

    name: str
    sidecar: str
    """Name of the container that runs next to the others."""
    init: str
    """Name of the container that prepares the pod; it requests the same amounts."""
    resources: ResourceRequirements
    annotations: tuple[AmountAnnotation, ...]
    replaces_defaults: bool = False
    """Whether a single annotation about amounts drops all defaults."""
    follows_profile: bool = False
    """Whether the version of Kubernetes decides if the sidecar is an init container that is always restarted."""
    native_annotations: tuple[str, ...] = ()
    """Annotations with which a pod overrides that."""
    comes_first: bool = False
    """Whether a sidecar that is not native still comes before the other containers."""


class CustomInjector(Struct, frozen=True):
    """An injector that the user describes: containers to add."""

    name: str
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()


class AddedContainer(Struct, frozen=True):
    """A container that was added, and where its amounts come from."""

    container: Container
    among: ContainerList
    annotations: tuple[str, ...] = ()
    """Those of the pod that set its amounts; without any they are the injector's defaults."""


class Injection(Struct, frozen=True):
    """The result of an injector."""

    pod: Pod
    injector: str
    added: tuple[AddedContainer, ...] = ()
    skipped: Skipped | None = None


def _amounts(prefix: str, names: dict[str, tuple[Side, str]]) -> tuple[AmountAnnotation, ...]:
    return tuple(AmountAnnotation(prefix + name, side, resource) for name, (side, resource) in names.items())


def _requirements(requests: dict[str, str], limits: dict[str, str]) -> ResourceRequirements:
    return ResourceRequirements(
        requests={name: Quantity.parse(text) for name, text in requests.items()},
        limits={name: Quantity.parse(text) for name, text in limits.items()},
    )


# A container must have an image; which one changes nothing here.
_IMAGE = "auto"

_ISTIO_INJECT = "sidecar.istio.io/inject"
_ISTIO_STATUS = "sidecar.istio.io/status"
_LINKERD_INJECT = "linkerd.io/inject"
_VAULT = "vault.hashicorp.com/agent-"

_ISTIO = Injector(
    name="istio",
    sidecar="istio-proxy",
    init="istio-init",
    resources=_requirements({CPU: "100m", MEMORY: "128Mi"}, {CPU: "2", MEMORY: "1Gi"}),
    annotations=_amounts(
        "sidecar.istio.io/",
        {
            "proxyCPU": ("requests", CPU),
            "proxyMemory": ("requests", MEMORY),
            "proxyCPULimit": ("limits", CPU),
            "proxyMemoryLimit": ("limits", MEMORY),
        },
    ),
    replaces_defaults=True,
    follows_profile=True,
    native_annotations=("sidecar.istio.io/nativeSidecar",),
)
_LINKERD = Injector(
    name="linkerd",
    sidecar="linkerd-proxy",
    init="linkerd-init",
    resources=NO_RESOURCES,
    annotations=_amounts(
        "config.linkerd.io/proxy-",
        {
            "cpu-request": ("requests", CPU),
            "memory-request": ("requests", MEMORY),
            "ephemeral-storage-request": ("requests", EPHEMERAL_STORAGE),
            "cpu-limit": ("limits", CPU),
            "memory-limit": ("limits", MEMORY),
            "ephemeral-storage-limit": ("limits", EPHEMERAL_STORAGE),
        },
    ),
    native_annotations=(
        "config.linkerd.io/proxy-enable-native-sidecar",
        "config.beta.linkerd.io/proxy-enable-native-sidecar",
        "config.alpha.linkerd.io/proxy-enable-native-sidecar",
    ),
    comes_first=True,
)
_VAULT_AGENT = Injector(
    name="vault",
    sidecar="vault-agent",
    init="vault-agent-init",
    resources=_requirements({CPU: "250m", MEMORY: "64Mi"}, {CPU: "500m", MEMORY: "128Mi"}),
    annotations=_amounts(
        _VAULT,
        {
            "requests-cpu": ("requests", CPU),
            "requests-mem": ("requests", MEMORY),
            "requests-ephemeral": ("requests", EPHEMERAL_STORAGE),
            "limits-cpu": ("limits", CPU),
            "limits-mem": ("limits", MEMORY),
            "limits-ephemeral": ("limits", EPHEMERAL_STORAGE),
        },
    ),
)

INJECTORS: dict[str, Injector] = {injector.name: injector for injector in (_ISTIO, _LINKERD, _VAULT_AGENT)}
"""The injectors known by name."""

_YES = ("y", "yes", "true", "on")
# strconv.ParseBool
_TRUE = ("1", "t", "T", "TRUE", "true", "True")
# pkg/kube/inject/inject.go: IgnoredNamespaces
_ISTIO_IGNORES = ("kube-system", "kube-public", "kube-node-lease", "local-path-storage")
# vault-k8s agent-inject/handler.go: kubeSystemNamespaces
_VAULT_IGNORES = ("kube-system", "kube-public")
# charts/linkerd-control-plane/values.yaml: the injector's webhook is not called for these.
_LINKERD_IGNORES = ("kube-system", "cert-manager")


def injector_named(name: str) -> Injector:
    """Return a known injector, or raise with the known names."""
    found = INJECTORS.get(name)
    if found is None:
        close = get_close_matches(name, INJECTORS, 1)
        fix = f"did you mean {close[0]}?" if close else f"one of {', '.join(INJECTORS)}, or a file that describes one"
        raise InvalidArgument(f"unknown injector {name!r}", where=naming("inject"), fix=fix)
    return found


def inject(pod: Pod, injector: str | Injector | CustomInjector, profile: Profile = LATEST) -> Injection:
    """Return the pod as the injector's webhook would leave it, and what was added or why nothing was."""
    if isinstance(injector, str):
        injector = injector_named(injector)
    if isinstance(injector, CustomInjector):
        return _add_custom(pod, injector)
    skipped = _skipped(pod, injector)
    if skipped is not None:
        return Injection(pod, injector.name, skipped=skipped)
    return _add(pod, injector, profile)


# ---- who is left alone -------------------------------------------------------------------------------------------


def _skipped(pod: Pod, injector: Injector) -> Skipped | None:
    if injector.name == _VAULT_AGENT.name:
        return _vault_skips(pod)
    if pod.spec.host_network:
        return Skipped(SkipReason.HOST_NETWORK, "spec.hostNetwork")
    names = _container_names(pod)
    if injector.name == _LINKERD.name:
        return _linkerd_skips(pod, names)
    return _istio_skips(pod, names)


def _istio_skips(pod: Pod, names: set[str]) -> Skipped | None:
    """Decide as istio does: a label takes precedence over the annotation of the same name."""
    metadata = pod.metadata
    if metadata.namespace in _ISTIO_IGNORES:
        return Skipped(SkipReason.SYSTEM_NAMESPACE, metadata.namespace)
    of_pod = metadata.labels if _ISTIO_INJECT in metadata.labels else metadata.annotations
    wish = of_pod.get(_ISTIO_INJECT, "")
    if wish and wish.lower() not in _YES:
        return Skipped(SkipReason.OPTED_OUT, _ISTIO_INJECT)
    if _ISTIO_STATUS in metadata.annotations and _ISTIO.sidecar in names:
        return Skipped(SkipReason.ALREADY_INJECTED, _ISTIO_STATUS)
    return None


def _linkerd_skips(pod: Pod, names: set[str]) -> Skipped | None:
    metadata = pod.metadata
    wish = metadata.annotations.get(_LINKERD_INJECT, "")
    if metadata.namespace in _LINKERD_IGNORES:
        return Skipped(SkipReason.SYSTEM_NAMESPACE, metadata.namespace)
    # A value that linkerd does not know is no consent either.
    if wish not in {"", "enabled", "ingress"}:
        return Skipped(SkipReason.OPTED_OUT, _LINKERD_INJECT)
    present = sorted(names & {_LINKERD.sidecar, _ISTIO.sidecar, _LINKERD.init, _ISTIO.init})
    if present:
        return Skipped(SkipReason.ALREADY_INJECTED, present[0])
    return None


def _vault_skips(pod: Pod) -> Skipped | None:
    metadata = pod.metadata
    if metadata.namespace in _VAULT_IGNORES:
        return Skipped(SkipReason.SYSTEM_NAMESPACE, metadata.namespace)
    if metadata.annotations.get(f"{_VAULT}inject", "") not in _TRUE:
        return Skipped(SkipReason.NOT_OPTED_IN, f"{_VAULT}inject")
    if metadata.annotations.get(f"{_VAULT}inject-status") == "injected":
        return Skipped(SkipReason.ALREADY_INJECTED, f"{_VAULT}inject-status")
    return None


def _container_names(pod: Pod) -> set[str]:
    return {container.name for container in (*pod.spec.containers, *pod.spec.init_containers)}


# ---- what is added -----------------------------------------------------------------------------------------------


def _add(pod: Pod, injector: Injector, profile: Profile) -> Injection:
    resources, keys = _resources(pod, injector)
    sidecar = Container(injector.sidecar, _IMAGE, resources=_customised(pod, injector.sidecar, resources))
    init = Container(injector.init, _IMAGE, resources=resources)
    if injector.name == _VAULT_AGENT.name:
        return _add_vault(pod, sidecar, init, keys)
    spec = pod.spec
    if _wants_native(pod, injector, profile):
        sidecar = replace(sidecar, restart_policy="Always")
        # Both prepare the network first, so that whatever follows is part of the mesh.
        spec = replace(
            spec, init_containers=(init, sidecar, *_without(spec.init_containers, {init.name, sidecar.name}))
        )
        spec = replace(spec, containers=_without(spec.containers, {sidecar.name}))
        added = (AddedContainer(init, "initContainers", keys), AddedContainer(sidecar, "initContainers", keys))
    else:
        # The network is redirected last: other init containers still get through without the proxy.
        others = _without(spec.containers, {sidecar.name})
        containers = (sidecar, *others) if injector.comes_first else (*others, sidecar)
        inits = (*_without(spec.init_containers, {init.name}), init)
        spec = replace(spec, containers=containers, init_containers=inits)
        added = (AddedContainer(init, "initContainers", keys), AddedContainer(sidecar, "containers", keys))
    return Injection(replace(pod, spec=spec), injector.name, added)


def _add_vault(pod: Pod, sidecar: Container, init: Container, keys: tuple[str, ...]) -> Injection:
    """Add an agent that fetches secrets once before the pod starts, one that keeps them fresh, or both."""
    spec = pod.spec
    added: list[AddedContainer] = []
    only_before = _flag(pod, f"{_VAULT}pre-populate-only", default=False)
    if _flag(pod, f"{_VAULT}pre-populate", default=True):
        goes_first = _flag(pod, f"{_VAULT}init-first", default=False)
        inits = (init, *spec.init_containers) if goes_first else (*spec.init_containers, init)
        spec = replace(spec, init_containers=inits)
        added.append(AddedContainer(init, "initContainers", keys))
    if not only_before:
        spec = replace(spec, containers=(*spec.containers, sidecar))
        added.append(AddedContainer(sidecar, "containers", keys))
    # So that it is not injected twice.
    annotations = {**pod.metadata.annotations, f"{_VAULT}inject-status": "injected"}
    injected = replace(pod, spec=spec, metadata=replace(pod.metadata, annotations=annotations))
    return Injection(injected, _VAULT_AGENT.name, tuple(added))


def _add_custom(pod: Pod, injector: CustomInjector) -> Injection:
    names = _container_names(pod)
    of_injector = [container.name for container in (*injector.containers, *injector.init_containers)]
    present = [name for name in of_injector if name in names]
    if present:
        return Injection(pod, injector.name, skipped=Skipped(SkipReason.ALREADY_INJECTED, present[0]))
    spec = replace(
        pod.spec,
        containers=(*pod.spec.containers, *injector.containers),
        init_containers=(*pod.spec.init_containers, *injector.init_containers),
    )
    added = (
        *(AddedContainer(container, "initContainers") for container in injector.init_containers),
        *(AddedContainer(container, "containers") for container in injector.containers),
    )
    return Injection(replace(pod, spec=spec), injector.name, added)


def _resources(pod: Pod, injector: Injector) -> tuple[ResourceRequirements, tuple[str, ...]]:
    """Return the resources of the injected containers, and the annotations that set them."""
    given = [annotation for annotation in injector.annotations if annotation.key in pod.metadata.annotations]
    if not given:
        return injector.resources, ()
    start = NO_RESOURCES if injector.replaces_defaults else injector.resources
    amounts = {"requests": dict(start.requests), "limits": dict(start.limits)}
    for annotation in given:
        text = pod.metadata.annotations[annotation.key]
        if text:
            amounts[annotation.side][annotation.resource] = _amount(text, annotation.key)
        else:
            # An empty annotation takes a default away.
            amounts[annotation.side].pop(annotation.resource, None)
    resources = ResourceRequirements(requests=amounts["requests"], limits=amounts["limits"])
    return resources, tuple(annotation.key for annotation in given)


def _customised(pod: Pod, name: str, resources: ResourceRequirements) -> ResourceRequirements:
    """Put what a pod writes under the injected container's own name over what the injector says."""
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        if container.name == name:
            own = container.resources
            return ResourceRequirements(
                requests={**resources.requests, **own.requests}, limits={**resources.limits, **own.limits}
            )
    return resources


def _amount(text: str, key: str) -> Quantity:
    try:
        return Quantity.parse(text)
    except InvalidQuantity as error:
        raise InvalidManifest(error.what, where=f"metadata.annotations[{key}]", fix=error.fix) from error


def _wants_native(pod: Pod, injector: Injector, profile: Profile) -> bool:
    for key in injector.native_annotations:
        if key in pod.metadata.annotations:
            return pod.metadata.annotations[key] == "true"
    return injector.follows_profile and profile.istio_sidecars_are_native


def _flag(pod: Pod, key: str, *, default: bool) -> bool:
    text = pod.metadata.annotations.get(key, "")
    return text in _TRUE if text else default


def _without(containers: tuple[Container, ...], names: set[str]) -> tuple[Container, ...]:
    return tuple(container for container in containers if container.name not in names)


# ---- injectors that the user describes ---------------------------------------------------------------------------

_LISTS = ("containers", "initContainers")


def custom_injector(name: str, value: Plain) -> CustomInjector:
    """Read the description of an injector: ``containers`` and ``initContainers`` as in a pod's spec.

    It may be a whole pod, of which only these two count. ``where`` of an error is the path of the field.
    """
    if not isinstance(value, dict):
        raise InputError("not a valid injector", fix="write containers: or initContainers:, as in a pod's spec")
    prefix = ""
    fragment = value
    if isinstance(value.get("spec"), dict):
        prefix, fragment = "spec.", value["spec"]  # type: ignore[assignment] # as was just seen
    else:
        for field in value:
            if field not in _LISTS:
                fix = suggestion(field, _LISTS)
                raise InputError(f"unknown field {field!r}", where=field, fix=fix)
    wanted: dict[str, Plain] = {field: fragment[field] for field in _LISTS if fragment.get(field) is not None}
    try:
        pod = convert_pod({"spec": wanted})
    except InputError as error:
        raise InputError(error.what, where=prefix + error.where.removeprefix("spec."), fix=error.fix) from error
    spec = pod.spec
    if not spec.containers and not spec.init_containers:
        raise InputError("it adds no containers", fix="write containers: or initContainers:, as in a pod's spec")
    _check_names(spec.containers, f"{prefix}containers")
    _check_names(spec.init_containers, f"{prefix}initContainers")
    return CustomInjector(name, _with_images(spec.containers), _with_images(spec.init_containers))


def _with_images(containers: tuple[Container, ...]) -> tuple[Container, ...]:
    return tuple(container if container.image else replace(container, image=_IMAGE) for container in containers)


def _check_names(containers: tuple[Container, ...], path: str) -> None:
    for index, container in enumerate(containers):
        if not container.name:
            raise InputError("the container has no name", where=f"{path}[{index}]", fix="add name:")
