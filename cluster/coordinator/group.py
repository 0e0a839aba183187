"""A group and its members, as one coordinator remembers them: who is there, and what they said. No timers, no answers.

Kafka's ClassicGroup (4.x). Dicts keep the order in which members came, which stands for Kafka's hash order wherever one
must be chosen: the first in the map becomes leader when the leader is gone.
"""

from collections import Counter

import msgspec

from cluster.coordinator.outbox import Alarm
from cluster.coordinator.states import EMPTY, MOVES, GroupState, Why
from cluster.java import map_order
from cluster.machine import Envelope
from cluster.subscription import subscribed_topics
from cluster.wire.groups import JoinGroupRequestProtocol

Protocols = tuple[JoinGroupRequestProtocol, ...]


class Held(msgspec.Struct, eq=False):
    """A request that waits here. Once it is answered it may still count as waiting: see `writes.Open`."""

    envelope: Envelope
    is_open: bool = True


class Member(msgspec.Struct, eq=False):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols                       # in the order of the member's preference
    offers: tuple[str, ...]                    # their names
    session: Alarm                             # fires when it was silent for too long
    assignment: bytes = b""
    join: Held | None = None
    sync: Held | None = None
    is_new: bool = False                       # its first join is still unanswered

    def metadata(self, protocol: str | None) -> bytes:
        for offered in self.protocols:
            if offered.name == protocol:
                return offered.metadata
        return b""


class Group(msgspec.Struct, eq=False):
    group_id: str
    state: GroupState = EMPTY
    state_since: int | None = None             # None: loaded from a record that did not say
    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str | None = None
    members: dict[str, Member] = {}
    static: dict[str, str] = {}                # instance id -> member id
    pending: dict[str, None] = {}              # ids given out (KIP-394), in that order
    unsynced: dict[str, None] = {}             # who has not synced in this generation
    waiting: int = 0                           # members whose join is held
    supporters: dict[str, int] = {}            # protocol name -> members that offer it
    subscribed: frozenset[str] | None = None   # None: unknown
    is_first_phase: bool = False               # the join phase was opened from Empty: only its delay closes it
    newcomer: bool = False                     # somebody came during that delay (and stays set, as in Kafka)
    delay_ms: int = 0                          # the last wait of that delay,
    delay_left_ms: int = 0                     # and how much longer it may still be

    def move(self, why: Why, now: int) -> GroupState:
        """Change the state as the table says; the only place that does. Returns the state before."""
        before = self.state
        self.state = MOVES[before, why]
        self.state_since = now
        return before

    # Members

    def add(self, member: Member, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self._count(member.offers, 1)
        self.pending.pop(member.member_id, None)

    def remove(self, member_id: str) -> Member | None:
        """Remove a member, or an id that was only given out. The first one left leads if the leader went."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count(member.offers, -1)
            if member.join is not None:
                self.waiting -= 1
            if member.instance_id is not None:
                del self.static[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending.pop(member_id, None)
        self.unsynced.pop(member_id, None)
        return member

    def rename(self, old: Member, member_id: str, session: Alarm) -> Member:
        """The same place under another id. `unsynced` keeps the old id, as in Kafka: see docs/differences.md."""
        assert old.instance_id is not None
        del self.members[old.member_id]
        if old.join is not None:
            self.waiting -= 1
        member = msgspec.structs.replace(old, member_id=member_id, session=session, join=None, sync=None,
                                         is_new=False)
        self.members[member_id] = member
        self.static[old.instance_id] = member_id
        if self.leader == old.member_id:
            self.leader = member_id
        return member

    def update(self, member: Member, protocols: Protocols, rebalance_timeout_ms: int, session_timeout_ms: int) -> None:
        if protocols != member.protocols:
            self._count(member.offers, -1)
            member.protocols = protocols
            member.offers = names_of(protocols)
            self._count(member.offers, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def hold_join(self, member: Member, held: Held | None) -> None:
        """Hold a join, in place of an older one of that member; or hold it no longer."""
        self.waiting += (held is not None) - (member.join is not None)
        member.join = held

    def member_of(self, member_id: str, instance_id: str | None) -> Member | None:
        """Whom an entry of LeaveGroup means: an instance id alone is enough."""
        if not member_id and instance_id is not None:
            member_id = self.static.get(instance_id, "")
        return self.members.get(member_id)

    # What follows from the members

    def all_joined(self) -> bool:
        return self.waiting == len(self.members) and not self.pending

    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def shares_a_protocol(self, protocol_type: str, protocols: Protocols) -> bool:
        everybody = len(self.members)
        return self.protocol_type == protocol_type and any(
            self.supporters.get(offered.name, 0) == everybody for offered in protocols
        )

    def voted_protocol(self, member: Member | None = None, protocols: Protocols = ()) -> str | None:
        """Who wins the vote; or who would, if `member` offered these `protocols` instead."""
        ballots = Counter(each.offers for each in self.members.values() if each is not member)
        if member is not None:
            ballots[names_of(protocols)] += 1
        return winner(ballots)

    def elect(self) -> bool:
        """Keep the leader if it has joined, else take the first who has. False if nobody has joined."""
        leader = self.members.get(self.leader) if self.leader is not None else None
        if leader is not None and leader.join is None:
            leader = next((member for member in self.members.values() if member.join is not None), None)
        if leader is None:
            return False
        self.leader = leader.member_id
        return True

    def next_generation(self) -> None:
        """The number grows even if nobody is left; the type of the protocol stays, its name goes."""
        self.generation += 1
        self.protocol_name = self.voted_protocol() if self.members else None
        self.subscribed = self.subscribed_topics()
        self.unsynced.clear()

    def subscribed_topics(self) -> frozenset[str] | None:
        """The topics of all members, where they can be read; None where the coordinator cannot know."""
        if self.protocol_type != "consumer":
            return None
        topics: set[str] = set()
        for member in self.members.values():
            wanted = subscribed_topics(member.metadata(self.protocol_name))
            if wanted is None:
                return None
            topics |= wanted
        return frozenset(topics)

    def subscribes_to(self, topic: str) -> bool:
        return topic in self.subscribed if self.subscribed is not None else self.protocol_type == "consumer"

    def _count(self, offers: tuple[str, ...], one: int) -> None:
        for name in offers:
            self.supporters[name] = self.supporters.get(name, 0) + one


def names_of(protocols: Protocols) -> tuple[str, ...]:
    return tuple(dict.fromkeys(offered.name for offered in protocols))


def winner(ballots: Counter[tuple[str, ...]]) -> str | None:
    """The protocol that wins. Candidates are those on every ballot, each ballot goes to its first candidate, the most
    votes win, and a tie goes to the first in Java's map order. None if they have no protocol in common."""
    candidates = set.intersection(*map(set, ballots))
    if not candidates:
        return None
    votes: Counter[str] = Counter()
    for offers, count in ballots.items():
        votes[next(name for name in offers if name in candidates)] += count
    most = max(votes.values())
    return next(name for name in map_order(votes) if votes[name] == most)
