"""What can be done to a cluster, and to whom. One vocabulary for the simulator and for real processes.

Targets are names or roles: `member billing/2`, `leader of group billing`, `coordinator of group billing`, `leader of
orders/0`, `broker 2`, `controller`, `node 1`, `producer 1`, `members of group billing`; and links between two of them:
`link broker 1 -> broker 2`, or `<->` for both directions. Who plays a role is found out from the events, when it is
needed.
"""

import re
from collections.abc import Callable, Mapping
from typing import dataclass_transform

import msgspec

from cluster.broker.image import OFFSETS_TOPIC
from cluster.events import (
    GenerationStarted,
    GroupLoaded,
    LeaderChosen,
    LeaderElected,
    MemberAdded,
    MemberReplaced,
    Stamped,
    TopicCreated,
)
from cluster.java import partition_for

# Whom

_NAME = r"[A-Za-z0-9._-]+"
_TARGETS = {
    "member": re.compile(rf"member (?P<name>{_NAME})/(?P<number>\d+)"),
    "members": re.compile(rf"members of group (?P<name>{_NAME})"),
    "brokers": re.compile(r"brokers"),
    "leader": re.compile(rf"leader of group (?P<name>{_NAME})"),
    "coordinator": re.compile(rf"coordinator of group (?P<name>{_NAME})"),
    "partition leader": re.compile(rf"leader of (?P<name>{_NAME})/(?P<number>\d+)"),
    "broker": re.compile(r"broker (?P<number>\d+)"),
    "controller": re.compile(r"controller"),
    "node": re.compile(r"node (?P<number>\d+)"),
    "producer": re.compile(r"producer (?P<number>\d+)"),
}
FORMS = {
    "member G/N": "the N-th member of group G, counted from 1",
    "members of group G": "all of them",
    "leader of group G": "the member that leads it now",
    "coordinator of group G": "the broker that coordinates it now",
    "leader of TOPIC/PARTITION": "the broker that leads that partition now",
    "broker N": "a broker with the coordinator beside it",
    "brokers": "all of them",
    "controller": "the controller",
    "node N": "everything on one machine",
    "producer N": "the N-th producer of the file, counted from 1",
}


class Target(msgspec.Struct, frozen=True):
    kind: str
    name: str = ""
    number: int = 0
    text: str = ""

    def __str__(self) -> str:
        return self.text


class Link(msgspec.Struct, frozen=True):
    source: Target
    target: Target
    both: bool

    def __str__(self) -> str:
        return f"link {self.source} {'<->' if self.both else '->'} {self.target}"


class BadTarget(ValueError):
    """Something that is not the name of anybody."""


def target(text: str) -> Target:
    for kind, form in _TARGETS.items():
        found = form.fullmatch(text.strip())
        if found is not None:
            parts = found.groupdict()
            return Target(kind, parts.get("name") or "", int(parts.get("number") or 0), text.strip())
    raise BadTarget(f"no such target: {text!r}; there are: {', '.join(FORMS)}")


def link(text: str) -> Link:
    ends = re.split(r"(<->|->)", text.strip().removeprefix("link "))
    if len(ends) != 3:
        raise BadTarget(f"no such link: {text!r}; a link is `link A -> B`, or `<->` for both directions")
    return Link(target(ends[0]), target(ends[2]), ends[1] == "<->")


class Vacant(LookupError):
    """Nobody plays that role now."""


class Roles:
    """Who plays which role, told by the events. A host is named like its first process: `broker-1`, `billing-2`."""

    def __init__(self, nodes: Mapping[str, str], offsets_partitions: int) -> None:
        self.nodes = nodes                     # host -> its node
        self.offsets_partitions = offsets_partitions
        self.leaders: dict[tuple[str, int], int] = {}
        self.group_leaders: dict[str, str] = {}
        self.clients: dict[str, str] = {}      # member id -> the client's name, which is its host's
        self.hears: dict[type, Callable[..., None]] = {
            LeaderElected: self._elected, LeaderChosen: self._chosen, GenerationStarted: self._began,
            MemberAdded: self._added, MemberReplaced: self._replaced, TopicCreated: self._created,
            GroupLoaded: self._loaded}

    def __call__(self, stamped: Stamped) -> None:
        hear = self.hears.get(type(stamped.event))
        if hear is not None and not self._is_deposed(stamped):
            hear(stamped.event)

    def _is_deposed(self, stamped: Stamped) -> bool:
        """A coordinator that does not know yet that another has taken over: what it says of its groups is of no
        account."""
        group_id = getattr(stamped.event, "group_id", None)
        return group_id is not None and stamped.machine != f"coordinator-{self._coordinator(group_id)}"

    def _coordinator(self, group_id: str) -> int:
        return self.leaders.get((OFFSETS_TOPIC, partition_for(group_id, self.offsets_partitions)), -1)

    def _elected(self, event: LeaderElected) -> None:
        self.leaders[event.topic, event.partition] = event.leader

    def _created(self, event: TopicCreated) -> None:
        if event.topic == OFFSETS_TOPIC:
            self.offsets_partitions = event.partitions

    def _chosen(self, event: LeaderChosen) -> None:
        self.group_leaders[event.group_id] = event.member_id

    def _began(self, event: GenerationStarted) -> None:
        self.group_leaders[event.group_id] = event.leader

    def _loaded(self, event: GroupLoaded) -> None:
        if self.group_leaders.get(event.group_id) not in event.members:
            self.group_leaders.pop(event.group_id, None)

    def _added(self, event: MemberAdded) -> None:
        self.clients[event.member_id] = event.client_id

    def _replaced(self, event: MemberReplaced) -> None:
        self.clients[event.member_id] = self.clients.get(event.old_member_id, "")

    def hosts(self, of: Target) -> list[str]:
        """The hosts that a target means now. Raises Vacant if there are none."""
        found = self._hosts(of)
        if not found:
            raise Vacant(f"{of}: nobody")
        return found

    def _hosts(self, of: Target) -> list[str]:
        if of.kind == "node":
            return [host for host, node in self.nodes.items() if node == f"node-{of.number}"]
        if of.kind == "members":
            return [host for host in self.nodes if re.fullmatch(rf"{re.escape(of.name)}-\d+", host)]
        if of.kind == "brokers":
            return [host for host in self.nodes if host.startswith("broker-")]
        return [host for host in [self._host(of)] if host in self.nodes]

    def _host(self, of: Target) -> str:
        if of.kind == "coordinator":
            return f"broker-{self._coordinator(of.name)}"
        if of.kind == "partition leader":
            return f"broker-{self.leaders.get((of.name, of.number), -1)}"
        if of.kind == "leader":
            return self.clients.get(self.group_leaders.get(of.name, ""), "")
        if of.kind == "member":
            return f"{of.name}-{of.number}"
        return of.kind if of.kind == "controller" else f"{of.kind}-{of.number}"


# What


class Duration(int):
    """Milliseconds, written with their unit: `500ms`, `9s`, `2m`, `1h`."""

    UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}

    @classmethod
    def parse(cls, text: object) -> "Duration":
        found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)", text) if isinstance(text, str) else None
        if found is None:
            raise ValueError(f"not a duration: {text!r}; write 500ms, 9s, 2m or 1h")
        return cls(round(float(found[1]) * cls.UNITS[found[2]]))

    def __str__(self) -> str:
        for unit in ("h", "m", "s"):
            if self and self % self.UNITS[unit] == 0:
                return f"{int(self) // self.UNITS[unit]}{unit}"
        return f"{int(self)}ms"


def _dotted(name: str) -> str:
    return name.rstrip("_").replace("_", ".")


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Action(msgspec.Struct, frozen=True, rename=_dotted):
    """Something that is done to a cluster at some instant. Its fields are the keys of a scenario."""


class Fault(Action):
    """Something that breaks, from its beginning to its end."""


class Pause(Fault):
    """A GC pause: nothing happens in it; connections stay open, what arrives waits."""

    who: Target
    for_: Duration


class Crash(Fault):
    """Its processes die at once, and their connections are closed. With `for`, it comes back after that time."""

    who: Target
    for_: Duration | None = None


class Silence(Fault):
    """A machine dies as machines die: nobody is told. With `for`, it is switched on again after that time."""

    who: Target                                # a node
    for_: Duration | None = None


class Stop(Fault):
    """It is asked to stop, and does so in good order: a broker hands over what it leads, a consumer leaves its
    group."""

    who: Target
    for_: Duration | None = None


class Cut(Fault):
    """What is sent waits until the link is mended, or a side gives the connection up."""

    link: Link | None = None
    who: Target | None = None                  # cut off from everybody
    for_: Duration | None = None


class Delay(Fault):
    """Everything takes longer, up to a random `jitter` more."""

    by: Duration
    jitter: Duration = Duration(0)
    link: Link | None = None
    who: Target | None = None
    for_: Duration | None = None


class Loss(Fault):
    """A transmission is lost this often, 0 to 1, and sent again later: so it is delay."""

    rate: float
    link: Link | None = None
    who: Target | None = None
    for_: Duration | None = None


class NotTcp(Fault):
    """What no TCP connection does: messages come twice, or overtake each other. Nothing is promised then."""

    duplicate: float = 0.0
    reorder: Duration = Duration(0)
    link: Link | None = None
    who: Target | None = None
    for_: Duration | None = None


class SlowDisk(Fault):
    """Whatever writes takes this long, and holds up what comes after it."""

    who: Target
    by: Duration
    for_: Duration | None = None


FAULTS: dict[str, type[Fault]] = {
    "pause": Pause, "crash": Crash, "silence": Silence, "stop": Stop, "cut": Cut, "delay": Delay, "loss": Loss,
    "not-tcp": NotTcp, "slow-disk": SlowDisk}
