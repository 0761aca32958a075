from __future__ import annotations

import pytest

from placement.clusters import node, pod
from podqos.model.pod import Container, Pod, PodSpec
from podqos.model.scheduling import ContainerPort
from podqos.placement.place import PlacementSurroundings, place
from podqos.placement.pods import HostPort, host_ports
from podqos.placement.reasons import PortTaken


def port(number: int, host_ip: str = "", protocol: str = "") -> tuple[ContainerPort, ...]:
    return (ContainerPort(8080, number, host_ip, protocol),)


@pytest.mark.parametrize(
    ("first", "second", "fits"),
    [
        pytest.param(port(80), port(80), False, id="the same port"),
        pytest.param(port(80), port(81), True, id="another port"),
        pytest.param(port(80, protocol="UDP"), port(80), True, id="another protocol"),
        pytest.param(port(80, "10.0.0.1"), port(80, "10.0.0.2"), True, id="another address"),
        pytest.param(port(80, "10.0.0.1"), port(80), False, id="every address meets one"),
        pytest.param(port(0), port(0), True, id="no host port"),
    ],
)
def test_a_port_of_the_node_is_taken_once(first, second, fits):
    placement = place([pod("a", ports=first, on="n"), pod("b", ports=second)], PlacementSurroundings((node("n"),)))
    assert (placement.outcomes[1].node == "n") is fits
    if not fits:
        (refusal,) = placement.refusal(placement.pending[0]).nodes
        assert refusal.first == (PortTaken(80, "TCP", second[0].host_ip or "0.0.0.0"),)  # noqa: S104
        assert not refusal.first[0].unresolvable


def test_with_host_networking_every_container_port_is_the_nodes():
    container = Container(ports=(ContainerPort(8080),))
    assert host_ports(PodSpec(containers=(container,), host_network=True)) == (HostPort(8080, "TCP", "0.0.0.0"),)  # noqa: S104
    assert host_ports(PodSpec(containers=(container,))) == ()


def test_ports_begin_at_one():
    assert [each.port for each in host_ports(PodSpec(containers=(Container(ports=port(1) + port(0)),)))] == [1]


def test_an_init_container_takes_ports_only_if_it_keeps_running():
    def ports_of(restart_policy: str) -> int:
        init = Container(ports=port(80), restart_policy=restart_policy)
        return len(host_ports(Pod(spec=PodSpec(init_containers=(init,))).spec))

    assert (ports_of(""), ports_of("Always")) == (0, 1)
