"""What the leader of a group does between the answer to its JoinGroup and its SyncGroup: it makes the plan.

It needs to know all topics of all members for that, and waits for them without a limit; as in Kafka it beats for nobody
meanwhile. Afterwards it watches these topics: only the leader rejoins because one of them has grown.
"""

from collections.abc import Iterable, Mapping

from cluster.assignors import Assignor, Plan
from cluster.consumer.interest import Interest
from cluster.consumer.member import Member
from cluster.consumer.metadata import Metadata
from cluster.consumer.outbox import Outbox
from cluster.consumer.positions import Partition, one_by_one
from cluster.events import PlanMade
from cluster.primitives import Malformed
from cluster.subscription import Assignment, Subscription
from cluster.wire.groups import JoinGroupResponse, SyncGroupRequestAssignment

OURS = ("range", "roundrobin", "sticky", "cooperative-sticky")     # these plan for topics that somebody wants, only
Shares = tuple[SyncGroupRequestAssignment, ...]


class BadPlan(Exception):
    """What Kafka throws at the leader's application instead of a plan."""


class Leading:
    def __init__(self, out: Outbox, member: Member, interest: Interest, metadata: Metadata,
                 assignors: Mapping[str, Assignor], is_cooperative: bool) -> None:
        self.out = out
        self.member = member
        self.interest = interest
        self.metadata = metadata
        self.assignors = assignors
        self.is_cooperative = is_cooperative
        self.answer: JoinGroupResponse | None = None       # it leads, and has no plan yet
        self.planned_for: dict[str, int] | None = None     # the topics and sizes of the last plan
        self._members: dict[str, Subscription] = {}
        self._plan: Plan | None = None
        self._seen = -1                                    # the metadata must be newer than this

    def follow(self) -> None:
        self.planned_for = None

    def resign(self) -> None:
        """A join begins: others may lead. What they want is no longer watched."""
        self.answer = self._plan = None
        self.interest.group = ()

    def begin(self, answer: JoinGroupResponse) -> None:
        """Raises BadPlan if a member's subscription cannot be read."""
        try:
            self._members = {each.member_id: Subscription.decode(each.metadata, each.group_instance_id)
                             for each in answer.members}
        except Malformed:
            raise BadPlan("SchemaException") from None
        self.answer = answer
        self._plan = None
        self._watch(topic for subscription in self._members.values() for topic in subscription.topics)

    def _watch(self, topics: Iterable[str]) -> None:
        if self.interest.watch(tuple(topics)):
            self.metadata.request_topics()
        self._seen = -1 if self.metadata.is_fresh() else self.metadata.version

    def go_on(self) -> Shares | None:
        """What SyncGroup shall say; None while the metadata is too old. Raises BadPlan."""
        assert self.answer is not None
        if self.metadata.version <= self._seen:
            return None
        self.interest.notice(self.metadata)
        if self.answer.skip_assignment:
            return self._done({})
        if self._plan is None:
            self._plan = self._make_plan()
            unwatched = _topics_of(self._plan) - set(self.interest.group)
            if self.member.generation.protocol not in OURS and unwatched:
                self._watch((*self.interest.group, *sorted(unwatched)))
                return self.go_on()
        return self._done(self._plan)

    def _done(self, plan: Plan) -> Shares:
        self.answer = self._plan = None
        self.planned_for = self.interest.sizes
        return tuple([SyncGroupRequestAssignment(member, Assignment(partitions=_tuples(share)).encode())
                      for member, share in plan.items()])

    def _make_plan(self) -> Plan:
        protocol = self.member.generation.protocol or ""
        assignor = self.assignors.get(protocol)
        if assignor is None:
            raise BadPlan("IllegalState")
        plan = assignor.plan(self._members, self.metadata.sizes(self.interest.group))
        if self.is_cooperative and protocol not in OURS and self._moves_what_is_held(plan):
            raise BadPlan("IllegalState")
        self.out.emit(PlanMade(self.member.group_id, self.member.generation.number, protocol,
                               {member: _tuples(share) for member, share in plan.items()}))
        return plan

    def _moves_what_is_held(self, plan: Plan) -> bool:
        """A cooperative plan must not give away what its owner has not let go of yet (KIP-429)."""
        added: set[Partition] = set()
        revoked: set[Partition] = set()
        for member, share in plan.items():
            before, after = set(one_by_one(self._members[member].owned)), set(one_by_one(_tuples(share)))
            added |= after - before
            revoked |= before - after
        return bool(added & revoked)


def _tuples(share: Mapping[str, list[int]]) -> dict[str, tuple[int, ...]]:
    return {topic: tuple(numbers) for topic, numbers in share.items()}


def _topics_of(plan: Plan) -> set[str]:
    return {topic for share in plan.values() for topic, numbers in share.items() if numbers}
