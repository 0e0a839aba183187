"""Joining the group, and leaving it. One join at a time: prepare, JoinGroup, the plan if we lead, SyncGroup, take over.

The application pushes a join on from inside its poll, and does not wait for it there: what it still owns it goes on
reading. An answer that comes while nobody polls waits until somebody does.
"""

from cluster.config import ConsumerConfig
from cluster.consumer.connections import Call, Connections
from cluster.consumer.discovery import Discovery
from cluster.consumer.heartbeats import Heartbeats
from cluster.consumer.interest import Interest
from cluster.consumer.leading import BadPlan, Leading, Shares
from cluster.consumer.member import Generation, Member
from cluster.consumer.outbox import Outbox
from cluster.consumer.ownership import Ownership
from cluster.consumer.states import COMPLETING, STABLE, UNJOINED, Asked, Why
from cluster.events import Joined, JoinStarted, MemberLeft
from cluster.wire.errors import Error
from cluster.wire.groups import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
)

CONSUMER = "consumer"                          # the protocol type of all groups of consumers
JOIN_MARGIN_MS = 5000                          # JoinGroup may take the rebalance timeout, and this long on top
MAX_REASON = 255


class Membership:
    def __init__(self, out: Outbox, connections: Connections, discovery: Discovery, member: Member,
                 interest: Interest, ownership: Ownership, leading: Leading, heartbeats: Heartbeats,
                 config: ConsumerConfig) -> None:
        self.out = out
        self.connections = connections
        self.discovery = discovery
        self.member = member
        self.interest = interest
        self.ownership = ownership
        self.leading = leading
        self.heartbeats = heartbeats
        self.config = config
        self.asked: Call | None = None         # JoinGroup or SyncGroup
        self.granted: bytes | None = None      # SyncGroup is answered, and the application was not there yet
        self._not_before = 0

    def is_joining(self) -> bool:
        return self.asked is not None or self.granted is not None or self.leading.answer is not None

    def must_join(self) -> bool:
        """Is a join needed, or under way? The application may have changed its mind, the leader's topics have grown."""
        member = self.member
        if self.leading.planned_for is not None and self.leading.planned_for != self.interest.sizes:
            member.rejoin_if_settled("cached metadata has changed")
            return True
        if self.ownership.joined_topics not in (None, self.interest.topics):
            member.rejoin_if_settled("subscription has changed")
            return True
        return member.must_rejoin or self.is_joining()

    def go_on(self) -> None:
        """Push the join on, as far as it gets now."""
        member = self.member
        while self.must_join() and self.discovery.ensure():
            if member.must_prepare:
                member.must_prepare = False
                if not self.ownership.prepare():
                    member.must_prepare = True
                    return
                self.leading.resign()
            if self.granted is not None:
                self._take_over()
            elif self.asked is not None:
                return
            elif self.out.now < self._not_before:
                self.out.wake(self._not_before)
                return
            else:
                self._join()

    # Joining

    def _join(self) -> None:
        member, config = self.member, self.config
        member.move(Why.JOIN_SENT)
        rebalance_ms = config.max_poll_interval_ms if config.heartbeat_thread else config.session_timeout_ms
        self.out.emit(JoinStarted(member.group_id, member.generation.member_id, member.reason))
        assert self.discovery.coordinator is not None
        self.asked = self.connections.ask(
            self.discovery.coordinator, Asked.JOIN,
            JoinGroupRequest(
                member.group_id, config.session_timeout_ms, CONSUMER,
                tuple([JoinGroupRequestProtocol(name, subscription.encode())
                       for name, subscription in self.ownership.subscriptions()]),
                rebalance_ms, member.generation.member_id, member.instance_id, member.reason[:MAX_REASON]),
            generation=member.generation, timeout_ms=max(config.request_timeout_ms, rebalance_ms + JOIN_MARGIN_MS))

    def enter(self, answer: JoinGroupResponse) -> str | None:
        """JoinGroup is answered. From now on there is something to beat for."""
        member = self.member
        member.move(Why.JOIN_ANSWERED)
        member.generation = Generation(answer.generation_id, answer.member_id, answer.protocol_name)
        leads = answer.leader == answer.member_id
        self.out.emit(Joined(member.group_id, answer.member_id, answer.generation_id, leads,
                             answer.protocol_name or ""))
        self.heartbeats.enable()
        self.asked = None
        if not leads:
            self.leading.follow()
            self._sync(())
            return None
        try:
            self.leading.begin(answer)
        except BadPlan as problem:
            return self._gave_up(str(problem))
        return self.lead()

    def lead(self) -> str | None:
        """Sync, if the plan can be made now. The name of an error, if there is one for the application."""
        if self.member.state is not COMPLETING:
            self.again(Error.ILLEGAL_GENERATION.name)      # somebody has told us meanwhile that we are no member
            return None
        try:
            shares = self.leading.go_on()
        except BadPlan as problem:
            return self._gave_up(str(problem))
        if shares is not None:
            self._sync(shares)
        return None

    def _sync(self, shares: Shares) -> None:
        member = self.member
        if self.discovery.coordinator is None:
            self.pause(Error.COORDINATOR_NOT_AVAILABLE.name)
            return
        self.asked = self.connections.ask(
            self.discovery.coordinator, Asked.SYNC,
            SyncGroupRequest(member.group_id, member.generation.number, member.generation.member_id,
                             member.instance_id, CONSUMER, member.generation.protocol, shares),
            generation=member.generation)

    def grant(self, assignment: bytes) -> None:
        """SyncGroup is answered; whoever hears that may be the heartbeat thread."""
        self.member.move(Why.SYNC_ANSWERED)
        self.member.must_rejoin = False
        self.member.reason = ""
        self.asked = None
        self.granted = assignment

    def _take_over(self) -> None:
        """Unless the heartbeat thread has learnt in the meantime that we are not a member any more."""
        assert self.granted is not None
        granted, self.granted = self.granted, None
        if self.member.state is STABLE:
            self.ownership.complete(granted)
            self.member.must_prepare = True
        else:
            self.member.reset("the generation was reset before the assignment was taken over")

    # Joins that fail

    def again(self, error: str) -> None:
        self.asked = None
        self.leading.answer = None
        self.member.rejoin(f"rebalance failed due to {error}")

    def pause(self, error: str) -> None:
        self.again(error)
        self._not_before = self.out.now + self.config.retry_backoff_ms

    def _gave_up(self, problem: str) -> str:
        self.again(problem)
        return problem

    def name(self, member_id: str) -> None:
        """KIP-394: the coordinator wants to be sure that whoever joins can hear it."""
        self.member.generation = Generation(member_id=member_id)
        self.member.rejoin(f"need to re-join with the given member-id: {member_id}")

    # Leaving

    def leave(self, cause: str, reason: str) -> None:
        """Say so, once, if there is somebody to say it to; a static member never does. Either way we are nobody now."""
        member, coordinator = self.member, self.discovery.coordinator
        if coordinator is not None and member.state is not UNJOINED and member.generation.member_id:
            self.out.emit(MemberLeft(member.group_id, member.generation.member_id, cause))
            if member.instance_id is None:
                self.connections.ask(coordinator, Asked.LEAVE, LeaveGroupRequest(
                    member.group_id, members=(MemberIdentity(member.generation.member_id, None, reason),)))
        member.reset("consumer pro-actively leaving the group")
