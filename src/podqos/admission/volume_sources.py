"""What the API server rejects about the volumes of a pod: where each comes from.

Source: Kubernetes v1.36 pkg/apis/core/validation/validation.go (ValidateVolumes, validateVolumeSource and what it
calls); defaults from pkg/apis/core/v1/defaults.go.
"""

from __future__ import annotations

from podqos.admission.as_written import (
    Errors,
    Fields,
    choice_errors,
    fields_of,
    items_of,
    number_of,
    objects_of,
    text_of,
)
from podqos.admission.downward import field_errors, resource_errors
from podqos.admission.field_errors import forbidden, invalid, required, too_long
from podqos.admission.names import subdomain_complaints
from podqos.admission.paths import backstep_errors, reserved_errors
from podqos.manifest.plain import Plain

# In upstream's order: the first that is given is the volume's.
_SOURCES = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi",
    "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc",
    "flexVolume", "configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk",
    "storageos", "projected", "scaleIO", "csi", "ephemeral", "image",
)  # fmt: skip
_HOST_PATH_TYPES = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_FIELD_PATHS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_PROJECTIONS = ("secret", "configMap", "downwardAPI", "serviceAccountToken")
UNJUDGED_PROJECTIONS = ("clusterTrustBundle", "podCertificate")
"""They are off by default, and then dropped."""
_LARGEST_MODE = 0o777
_WRONG_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
_LONGEST_DRIVER = 63
_SHORTEST_TOKEN, _DEFAULT_TOKEN, _LONGEST_TOKEN = 600, 3600, 2**32


def volume_source_errors(volume: Fields, path: str) -> Errors:
    """Check where a volume comes from: one source (none: an empty directory), with what it needs."""
    given = [name for name in _SOURCES if volume.get(name) is not None]
    if given and given[0] in JUDGED_SOURCES:
        yield from JUDGED_SOURCES[given[0]](fields_of(volume[given[0]]), f"{path}.{given[0]}")
    for name in given[1:]:
        yield forbidden(f"{path}.{name}", "may not specify more than 1 volume type")


def is_directory(volume: Fields) -> bool:
    """Whether a volume is an empty directory, which one without a source is."""
    return volume.get("emptyDir") is not None or all(volume.get(name) is None for name in _SOURCES)


def _empty_dir_errors(_source: Fields, _path: str) -> Errors:
    """Check nothing: its size is a resource."""
    yield from ()


def _host_path_errors(source: Fields, path: str) -> Errors:
    where = text_of(source, "path")
    if not where:
        yield required(f"{path}.path")
        return
    yield from backstep_errors(where, f"{path}.path")
    yield from choice_errors(source, "type", _HOST_PATH_TYPES, path)


def _secret_errors(source: Fields, path: str) -> Errors:
    yield from _files_errors(source, "secretName", path)


def _config_map_errors(source: Fields, path: str) -> Errors:
    yield from _files_errors(source, "name", path)


def _files_errors(source: Fields, name: str, path: str) -> Errors:
    if not text_of(source, name):
        yield required(f"{path}.{name}")
    yield from _mode_errors(source, "defaultMode", path)
    for item, at in objects_of(source.get("items"), f"{path}.items"):
        yield from _item_errors(item, at)


def _item_errors(item: Fields, path: str) -> Errors:
    for name in ("key", "path"):
        if not text_of(item, name):
            yield required(f"{path}.{name}")
    yield from reserved_errors(text_of(item, "path"), f"{path}.path")
    yield from _mode_errors(item, "mode", path)


def _mode_errors(fields: Fields, name: str, path: str) -> Errors:
    mode = number_of(fields, name)
    if not 0 <= mode <= _LARGEST_MODE:
        yield invalid(f"{path}.{name}", mode, _WRONG_MODE)


def _downward_errors(source: Fields, path: str) -> Errors:
    yield from _mode_errors(source, "defaultMode", path)
    for item in items_of(source.get("items")):
        # Upstream names the volume, not the item.
        yield from _downward_file_errors(fields_of(item), path)


def _downward_file_errors(file: Fields, path: str) -> Errors:
    where, field, resource = text_of(file, "path"), file.get("fieldRef"), file.get("resourceFieldRef")
    if not where:
        yield required(f"{path}.path")
    yield from reserved_errors(where, f"{path}.path")
    if field is not None:
        yield from field_errors(fields_of(field), _FIELD_PATHS, f"{path}.fieldRef")
        if resource is not None:
            yield invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
    elif resource is not None:
        yield from resource_errors(fields_of(resource), f"{path}.resourceFieldRef", of_any_container=True)
    else:
        yield required(path, "one of fieldRef and resourceFieldRef is required")
    yield from _mode_errors(file, "mode", path)


def _claim_errors(source: Fields, path: str) -> Errors:
    if not text_of(source, "claimName"):
        yield required(f"{path}.claimName")


def _nfs_errors(source: Fields, path: str) -> Errors:
    for name in ("server", "path"):
        if not text_of(source, name):
            yield required(f"{path}.{name}")
    if not text_of(source, "path").startswith("/"):
        yield invalid(f"{path}.path", text_of(source, "path"), "must be an absolute path")


def _csi_errors(source: Fields, path: str) -> Errors:
    driver, secret = text_of(source, "driver"), source.get("nodePublishSecretRef")
    if not driver:
        yield required(f"{path}.driver")
    else:
        if len(driver.encode()) > _LONGEST_DRIVER:
            yield too_long(f"{path}.driver", _LONGEST_DRIVER)
        for complaint in subdomain_complaints(driver.lower()):
            yield invalid(f"{path}.driver", driver, complaint)
    if secret is not None:
        name = text_of(fields_of(secret), "name")
        if not name:
            yield required(f"{path}.nodePublishSecretRef.name")
        for complaint in subdomain_complaints(name) if name else ():
            # Upstream names the wrong field.
            yield invalid(f"{path}.name", name, complaint)


def _image_errors(source: Fields, path: str) -> Errors:
    if not text_of(source, "reference"):
        yield required(f"{path}.reference")
    yield from choice_errors(source, "pullPolicy", PULL_POLICIES, path, default="Always")


# ---- several sources in one volume ---------------------------------------------------------------------------------


def _projected_errors(source: Fields, path: str) -> Errors:
    yield from _mode_errors(source, "defaultMode", path)
    taken: set[str] = set()
    for projection, at in objects_of(source.get("sources"), f"{path}.sources"):
        given = [name for name in _PROJECTIONS if projection.get(name) is not None]
        for name in given:
            yield from _projection_errors(name, fields_of(projection[name]), f"{at}.{name}", path, taken)
        if len(given) > 1:
            yield forbidden(at, "may not specify more than 1 volume type per source")


def _projection_errors(kind: str, projection: Fields, path: str, volume_path: str, taken: set[str]) -> Errors:
    """Check one source; the paths ``taken`` are shared by all of a volume."""
    if kind == "serviceAccountToken":
        yield from _token_errors(projection, path, volume_path)
        return
    name = text_of(projection, "name")
    if kind != "downwardAPI" and not name:
        yield required(f"{path}.name")
    for item, at in objects_of(projection.get("items"), f"{path}.items"):
        where = text_of(item, "path")
        yield from _downward_file_errors(item, path) if kind == "downwardAPI" else _item_errors(item, at)
        if where in taken:
            yield invalid(volume_path, where if kind == "downwardAPI" else name, "conflicting duplicate paths")
        elif where:
            taken.add(where)


def _token_errors(token: Fields, path: str, volume_path: str) -> Errors:
    given: Plain = token.get("expirationSeconds")
    seconds = given if isinstance(given, int) else _DEFAULT_TOKEN
    if seconds < _SHORTEST_TOKEN:
        yield invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
    if seconds > _LONGEST_TOKEN:
        yield invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")
    where = text_of(token, "path")
    # Upstream names the volume, not the source.
    if not where:
        yield required(f"{volume_path}.path")
    yield from reserved_errors(where, f"{volume_path}.path")


JUDGED_SOURCES = {
    "emptyDir": _empty_dir_errors,
    "hostPath": _host_path_errors,
    "secret": _secret_errors,
    "nfs": _nfs_errors,
    "persistentVolumeClaim": _claim_errors,
    "downwardAPI": _downward_errors,
    "configMap": _config_map_errors,
    "projected": _projected_errors,
    "csi": _csi_errors,
    "image": _image_errors,
}
