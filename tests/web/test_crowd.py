"""Which connection makes room for a new one."""

from __future__ import annotations

import pytest

from podqos.web.crowd import Crowd, Standing, origin_of


class Member:
    def __init__(self, name, origin="a", since=0.0):
        self.name, self.origin, self.since, self.standing = name, origin, since, None

    def __repr__(self):
        return self.name


def crowd(*members):
    made = Crowd()
    for member, standing in members:
        made.move(member, standing)
    return made


def joined(made, most=10, origin="b", since=100.0):
    """Return who makes room for a newcomer."""
    newcomer = Member("newcomer", origin, since)
    made.move(newcomer, Standing.INCOMPLETE)
    return made.least_useful(newcomer, most)


def test_who_was_refused_makes_room_first():
    idle, refused = Member("idle"), Member("refused", since=9.0)
    assert joined(crowd((idle, Standing.IDLE), (refused, Standing.CLOSING))) is refused


def test_of_silent_and_idle_clients_the_one_that_has_waited_longer_makes_room():
    silent, idle = Member("silent", since=1.0), Member("idle", since=2.0)
    made = crowd((silent, Standing.INCOMPLETE), (idle, Standing.IDLE))
    assert joined(made) is silent
    silent.since = 3.0
    assert joined(made) is idle


def test_a_flood_of_silent_clients_does_not_close_the_connections_of_known_visitors():
    silent = [Member(f"silent-{number}", since=50.0 + number) for number in range(6)]
    made = crowd((Member("idle"), Standing.IDLE), *((member, Standing.INCOMPLETE) for member in silent))
    assert joined(made) is silent[0]


def test_a_flood_from_one_address_does_not_close_the_connections_of_others():
    other = Member("other", origin="c", since=1.0)
    silent = [Member(f"silent-{number}", since=2.0 + number) for number in range(6)]
    made = crowd((other, Standing.INCOMPLETE), *((member, Standing.INCOMPLETE) for member in silent))
    assert joined(made) is silent[0]


def test_who_does_not_read_makes_room_before_newcomers_do():
    stalled, silent = Member("stalled"), Member("silent")
    assert joined(crowd((silent, Standing.INCOMPLETE), (stalled, Standing.STALLED))) is stalled


def test_who_is_being_answered_never_makes_room():
    assert joined(crowd((Member("busy"), Standing.BUSY))) is None


def test_whoever_has_gone_is_forgotten():
    member = Member("gone")
    made = crowd((member, Standing.INCOMPLETE))
    made.remove(member)
    made.remove(member)
    assert len(made) == 0
    assert joined(made) is None


def test_one_address_cannot_keep_a_server_busy_alone():
    made = crowd(*((Member(str(number)), Standing.BUSY) for number in range(5)))
    assert made.is_overworked(Member("another"), 10)
    assert not made.is_overworked(Member("other", origin="b"), 10)
    for number in range(3):
        made.move(Member(str(number), origin=str(number)), Standing.BUSY)
    assert made.is_overworked(Member("other", origin="z"), 10)


@pytest.mark.parametrize(
    ("address", "origin"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unix", "unix"),
    ],
)
def test_the_addresses_of_one_network_count_as_one_client(address, origin):
    assert origin_of(address) == origin
