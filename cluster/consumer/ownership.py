"""What a rebalance does to the partitions of this member: before the join, after it, and when it leaves.

Every event emitted here is a call of the application's rebalance listener, and only here is it called. Eager members
let go of everything before they join; cooperative ones keep what they have, and give up afterwards what they were not
given again. What a member holds that is none any more is lost: somebody else may have it already.
"""

from collections.abc import Mapping

from cluster.assignors import Assignor
from cluster.config import ConsumerConfig
from cluster.consumer.commits import Commit, Commits, Outcome
from cluster.consumer.interest import Interest
from cluster.consumer.member import Member
from cluster.consumer.outbox import Outbox
from cluster.consumer.positions import ByTopic, Partition, Positions, by_topic, one_by_one
from cluster.events import PartitionsAssigned, PartitionsLost, PartitionsRevoked
from cluster.subscription import Assignment, Partitions, Subscription


class Ownership:
    def __init__(self, out: Outbox, member: Member, interest: Interest, positions: Positions, commits: Commits,
                 assignors: Mapping[str, Assignor], config: ConsumerConfig) -> None:
        self.out = out
        self.member = member
        self.interest = interest
        self.positions = positions
        self.commits = commits
        self.config = config
        self.assignors = {name: assignors[name] for name in config.partition_assignment_strategy}
        self.is_cooperative = all(assignor.cooperative for assignor in self.assignors.values())
        self.joined_topics: tuple[str, ...] | None = None      # what was wanted when JoinGroup was sent
        self._given: dict[str, tuple[Partitions, int]] = {}    # what each assignor was last told, for its user data
        self._until: int | None = None         # preparations end then, whatever became of the commit
        self._commit: Commit | None = None
        self._not_before = 0

    def subscriptions(self) -> list[tuple[str, Subscription]]:
        """What this member says in JoinGroup, for each of its assignors."""
        self.joined_topics = self.interest.topics
        owned, generation = self.positions.owned(), self.member.generation.number
        return [
            (name, Subscription(topics=self.interest.topics, owned=owned, generation=generation,
                                user_data=assignor.user_data(*self._given.get(name, ({}, -1)))))
            for name, assignor in self.assignors.items()
        ]

    # Before a join

    def prepare(self) -> bool:
        """Commit and let go. False: the commit is not answered yet."""
        if self._until is None:
            self._until = self.out.now + self.config.max_poll_interval_ms
        if self.out.now < self._until and not self._is_committed():
            self.out.wake(self._until)
            return False
        self._until = self._commit = None
        owned = self.positions.owned()
        if self.member.is_nobody():
            if owned:
                self._lost(owned)
                self.positions.assign(())
        elif not self.is_cooperative:
            self._revoked(owned)
            self.positions.assign(())
        else:
            unwanted = {topic: numbers for topic, numbers in owned.items() if topic not in self.interest.topics}
            if unwanted:
                self._revoked(unwanted)
                self.positions.assign([each for each in self.positions.assigned if each[0] not in unwanted])
        return True

    def _is_committed(self) -> bool:
        """Automatic commits go first. Eager partitions stand still meanwhile: what is committed is what is given up."""
        if not self.commits.is_auto:
            return True
        if self._commit is None:
            if self.out.now < self._not_before:
                self.out.wake(self._not_before)
                return False
            if not self.is_cooperative:
                self.positions.hold_back()
            self._commit = self.commits.begin(is_auto=True)
        if self._commit.outcome is Outcome.AGAIN:
            self._commit = None
            self._not_before = self.out.now + self.config.retry_backoff_ms
            self.out.wake(self._not_before)
            return False
        return self._commit.outcome is not None

    # After it

    def complete(self, granted: bytes) -> None:
        """Take over the assignment; unless it is about topics that we do not want any more, then rejoin."""
        member = self.member
        assignment = Assignment.decode(granted)
        given = one_by_one(assignment.partitions)
        member.public = member.generation
        if not all(self.interest.allows(topic) for topic in assignment.partitions):
            member.rejoin("received assignment does not match the current subscription")
            return
        owned = list(self.positions.assigned)
        if self.is_cooperative:
            revoked = _without(owned, given)
            if revoked:
                self._revoked(by_topic(revoked))
                member.rejoin("need to revoke partitions and re-join")
        if self.interest.pattern is not None:
            self._follow_leader(assignment.partitions)
        assert member.generation.protocol is not None
        self._given[member.generation.protocol] = assignment.partitions, member.generation.number
        self.commits.restart_interval()
        self.positions.assign(given)
        self.out.emit(PartitionsAssigned(member.group_id, member.generation.member_id, member.generation.number,
                                         by_topic(_without(given, owned)), self.positions.owned()))

    def _follow_leader(self, given: Partitions) -> None:
        """The leader may have seen a topic that matches our pattern before we did."""
        assert self.joined_topics is not None
        new = tuple([topic for topic in given if topic not in self.joined_topics])
        if new:
            self.interest.add(new)
            self.joined_topics = self.interest.topics

    # Leaving

    def let_go(self) -> None:
        owned = self.positions.owned()
        if owned:
            if self.member.is_nobody() or self.member.is_rebalancing():
                self._lost(owned)
            else:
                self._revoked(owned)
            self.positions.assign(())

    def _revoked(self, partitions: ByTopic) -> None:
        generation = self.member.generation
        self.out.emit(PartitionsRevoked(self.member.group_id, generation.member_id, generation.number, partitions))

    def _lost(self, partitions: ByTopic) -> None:
        self.out.emit(PartitionsLost(self.member.group_id, self.member.public.member_id, partitions))


def _without(partitions: list[Partition], others: list[Partition]) -> list[Partition]:
    gone = set(others)
    return [each for each in partitions if each not in gone]
