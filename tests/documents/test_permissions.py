"""The least RBAC of every command: docs/reference/rbac.md, held against what commands ask an API server for."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
import yaml

from documents.permissions import PAGE, parts, permissions_of, rows
from documents.world import Ran, make_world, podqos
from podqos.cli.command_list import COMMANDS

# Commands that read no cluster, or run in one: their manifests have their roles.
_OTHERS = {"completion", "demo", "eval", "exporter", "guard", "help", "node", "rehearse", "schema", "ui", "webhook"}


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("world")
    make_world(directory)
    return directory


def _asked(world: Path, command: str, allowed: Collection[str]) -> tuple[Ran, frozenset[str]]:
    (world / "today.yaml").unlink(missing_ok=True)
    shutil.rmtree(world / "today", ignore_errors=True)
    return permissions_of(command, world, allowed)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.command)
def test_a_command_works_with_what_it_needs_and_asks_for_nothing_else_than_the_page_says(world, row):
    everything = row.needed | row.used
    asked = set(row.needed)
    for allowed in (everything, everything - {"get nodes/proxy"}, row.needed):
        ran, requests = _asked(world, row.command, allowed)
        assert ran.code in {0, 1}, ran.err
        asked |= requests
    assert asked == everything


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row", "missing"),
    [pytest.param(row, needed, id=f"{row.command}: {needed}") for row in rows() for needed in sorted(row.needed)],
)
def test_a_command_fails_without_what_it_needs(world, row, missing):
    ran, _ = _asked(world, row.command, (row.needed | row.used) - {missing})
    assert ran.code == 3, ran.out
    assert f"cannot {missing}" in ran.err


def test_every_command_that_reads_a_cluster_is_on_the_page():
    assert {row.command.split()[1] for row in rows()} | _OTHERS == {*COMMANDS}


def test_the_role_for_everything_grants_every_permission_of_the_page():
    granted = _granted(yaml.safe_load(PAGE.read_text().partition("```yaml\n")[2].partition("```")[0]))
    assert {permission for row in rows() for permission in row.needed | row.used} <= granted


@pytest.mark.parametrize(("part", "permissions"), parts().items(), ids=parts())
def test_what_runs_in_a_cluster_has_the_role_that_the_page_says(part, permissions):
    printed = podqos([part, "manifests", "--image", "registry.example.com/podqos:1.0"]).out
    (role,) = (each for each in yaml.safe_load_all(printed) if each and each["kind"] == "ClusterRole")
    # A get or a watch of what is listed shows nothing else.
    listed = {permission.partition(" ")[2] for permission in permissions if permission.startswith("list ")}
    granted = _granted(role)
    assert {each for each in granted if each.split()[0] not in {"get", "watch"} or each.split()[1] not in listed} == {
        *permissions
    }


def _granted(role: dict[str, Any]) -> set[str]:
    return {
        f"{verb} {resource}{f'.{group}' if group else ''}"
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
