"""Paths inside a directory, which must not lead out of it.

Source: Kubernetes v1.36 pkg/apis/core/validation/validation.go (validatePathNoBacksteps, validateLocalDescendingPath,
ValidateLocalNonReservedPath).
"""

from __future__ import annotations

from podqos.admission.as_written import Errors
from podqos.admission.field_errors import invalid


def backstep_errors(where: str, path: str) -> Errors:
    """Check that no part of a path is ``..``."""
    if ".." in where.split("/"):
        yield invalid(path, where, "must not contain '..'")


def descending_errors(where: str, path: str) -> Errors:
    """Check that a path is relative and leads down."""
    if where.startswith("/"):
        yield invalid(path, where, "must be a relative path")
    yield from backstep_errors(where, path)


def reserved_errors(where: str, path: str) -> Errors:
    """Check that a path leads down and does not begin as those that kubelets keep for themselves."""
    yield from descending_errors(where, path)
    if where.startswith("..") and not where.startswith("../"):
        yield invalid(path, where, "must not start with '..'")
