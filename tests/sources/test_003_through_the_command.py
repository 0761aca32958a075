"""Source 003 through the command: what a reader of "Allocating Node Resources" would type."""

from __future__ import annotations

import re

import pytest

from podqos.cli.main import main

SOFT = """\
      kubeletArguments:
        eviction-soft:
        - memory.available<500Mi
        - nodefs.available<500Mi
        - nodefs.inodesFree<100Mi
        - imagefs.available<100Mi
        - imagefs.inodesFree<100Mi
        eviction-soft-grace-period:
        - memory.available=1m30s
        - nodefs.available=1m30s
        - nodefs.inodesFree=1m30s
        - imagefs.available=1m30s
        - imagefs.inodesFree=1m30s
"""
NO_PID = """\
kubeletArguments:
  eviction-hard:
  - memory.available<500Mi
"""


@pytest.mark.parametrize("name", ["thresholds", "check"])
def test_the_soft_thresholds_of_disks_as_printed_come_after_the_hard_defaults(command, name):
    """A share and an amount: check took a filesystem of 100Gi, thresholds compared nothing."""
    _, out, _ = command(name, SOFT)

    wrong = {
        "thresholds": r"(\S+): the hard threshold \(\S+\) is met before the soft one",
        "check": r"the soft threshold of (\S+), \S+, is not above",
    }
    assert re.findall(wrong[name], out) == ["nodefs.available", "imagefs.available"]


def test_a_filesystem_of_known_size_decides_which_threshold_comes_first(command):
    _, out, _ = command("thresholds", SOFT, "--nodefs-capacity", "2Gi", "--imagefs-capacity", "400Mi")

    assert "is met before the soft one" not in out


@pytest.mark.parametrize(
    ("text", "version", "signals"),
    [
        (SOFT, "1.36", "pid.available"),
        (
            NO_PID,
            "1.36",
            "nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree, pid.available",
        ),
    ],
    ids=["defaults", "one signal named"],
)
def test_signals_without_a_threshold_are_named(command, text, version, signals):
    """Source 002 lists pid.available among the five signals, with no default."""
    _, out, _ = command("thresholds", text, "--kubernetes-version", version)

    assert f"\nno threshold: {signals}\n" in out


# qos-reserved: in the document's version it needs no feature gate.

QOS_RESERVED = """\
    kubeletArguments:
      experimental-qos-reserved:
      - 'memory=50%'
"""


def test_qos_reserved_as_printed_has_ceilings_in_its_version_and_nothing_says_otherwise(command):
    code, out, err = command("thresholds", QOS_RESERVED, "--node-memory", "16Gi", "--kubernetes-version", "1.9")

    assert (code, err) == (0, "")
    assert "  Burstable   16Gi less 50% of what Guaranteed pods request\n" in out


def test_qos_reserved_without_its_gate_has_no_effect_today_and_that_is_said(command):
    code, out, err = command("thresholds", QOS_RESERVED, "--node-memory", "16Gi", "--kubernetes-version", "1.36")

    assert code == 0
    assert "qos-reserved has no effect without featureGates.QOSReserved: true (since 1.11)" in err
    assert "Memory ceilings of the classes" not in out


def test_both_nodes_of_the_oscillation_are_in_one_picture(tmp_path, capsys):
    assert main(["simulate", "soft-eviction", "--svg", str(tmp_path / "both.svg")]) == 0
    capsys.readouterr()

    drawn = (tmp_path / "both.svg").read_text()
    assert all(f">{node}<" in drawn for node in ("steady", "flapping"))
