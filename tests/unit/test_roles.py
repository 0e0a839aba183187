"""Who plays which role is told by the events, and only by those who still have something to say."""

import pytest

from cluster.events import Event, GenerationStarted, LeaderElected, MemberAdded, Stamped
from cluster.faults import Roles, Vacant, target
from cluster.java import partition_for

HOME = partition_for("billing", 4)
LEADER = target("leader of group billing")


@pytest.fixture
def roles() -> Roles:
    made = Roles({"broker-1": "node-1", "broker-2": "node-2", "billing-1": "node-1", "billing-2": "node-2"}, 4)
    tell(made, "controller", LeaderElected("__consumer_offsets", HOME, 1, 0, (1, 2), unclean=False))
    for number in (1, 2):
        tell(made, "coordinator-1", MemberAdded("billing", f"m{number}", f"billing-{number}", 6000, 6000))
    tell(made, "coordinator-1", GenerationStarted("billing", 1, "range", "m1", ("m1", "m2")))
    return made


def tell(roles: Roles, machine: str, event: Event) -> None:
    roles(Stamped(0, machine, 1, event))


def test_the_coordinator_is_whoever_leads_its_partition(roles: Roles) -> None:
    assert roles.hosts(target("coordinator of group billing")) == ["broker-1"]
    tell(roles, "controller", LeaderElected("__consumer_offsets", HOME, 2, 1, (2,), unclean=False))
    assert roles.hosts(target("coordinator of group billing")) == ["broker-2"]


def test_the_leader_of_a_group_is_a_client(roles: Roles) -> None:
    assert roles.hosts(LEADER) == ["billing-1"]


def test_a_coordinator_that_is_deposed_is_not_listened_to(roles: Roles) -> None:
    tell(roles, "controller", LeaderElected("__consumer_offsets", HOME, 2, 1, (2,), unclean=False))
    tell(roles, "coordinator-2", GenerationStarted("billing", 2, "range", "m2", ("m2",)))
    tell(roles, "coordinator-1", GenerationStarted("billing", 2, "range", "m1", ("m1",)))
    assert roles.hosts(LEADER) == ["billing-2"]


def test_a_role_that_nobody_plays_is_vacant(roles: Roles) -> None:
    with pytest.raises(Vacant, match="leader of group other"):
        roles.hosts(target("leader of group other"))
