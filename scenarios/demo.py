"""One group's life in virtual time, told as it happens: join, sync, heartbeat, crash, rebalance, leave.

    python -m scenarios.demo [--lang en|zh]

Three members share the six partitions of `orders`. One of them falls silent and is missed when its session is over; one
leaves. They are driven by hand here, with the real coordinator, the real log and the real range assignor.
"""

import argparse
import sys
from collections.abc import Iterable

from cluster.assignors.range import Range
from cluster.events import MemberRemoved, SessionRenewed, Stamped
from cluster.java import partition_for
from cluster.subscription import Assignment, Subscription
from cluster.wire.errors import Error
from cluster.wire.groups import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from cluster.wire.offsets import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from scenarios.dialogue import Call, Dialogue
from scenarios.story import tell

GROUP, TOPIC, PARTITIONS = "billing", "orders", 6
SESSION_MS, HEARTBEAT_MS = 10_000, 3_000

SAYS = {
    "en": {
        "begin": "Three consumers start. They ask any broker who coordinates group billing.",
        "found": "The group lives in partition {partition} of __consumer_offsets, which {host} leads: there they join.",
        "plan": "{leader}, the leader, shares out the partitions: {plan}",
        "beats": "All beat every 3 seconds; {member} commits what it has done.",
        "crash": "{member} crashes: it is simply not heard any more. Nobody knows yet.",
        "noticed": "{member} was missed {ms} ms after its last heartbeat; its session timeout is {timeout_ms} ms.",
        "told": "{member} beats, and is told: {error}",
        "leave": "{member} leaves, and says so: nobody has to wait for a timeout.",
        "end": "{member} leaves, too. The group is empty, its offsets stay.",
    },
    "zh": {
        "begin": "三个消费者启动。它们向任意 broker 询问谁是消费组 billing 的协调者。",
        "found": "该组位于 __consumer_offsets 的分区 {partition}，其 leader 是 {host}：它们到那里加入。",
        "plan": "leader {leader} 分配分区：{plan}",
        "beats": "所有成员每 3 秒发送一次心跳；{member} 提交已处理的位移。",
        "crash": "{member} 崩溃：它只是不再发声，此刻还没有人知道。",
        "noticed": "最后一次心跳之后 {ms} 毫秒，{member} 被判定失效；它的会话超时是 {timeout_ms} 毫秒。",
        "told": "{member} 发送心跳，得到的回答是：{error}",
        "leave": "{member} 主动离开：不必等待超时。",
        "end": "{member} 也离开了。消费组为空，位移仍然保留。",
    },
}


class Demo:
    def __init__(self, language: str) -> None:
        self.language = language
        self.dialogue = Dialogue({}, {TOPIC: PARTITIONS})
        self.begin = self.dialogue.world.now
        self.dialogue.world.observers.append(self._observe)
        self.generation = -1
        self.heard: dict[str, int] = {}        # when a member was last heard by the coordinator,
        self.missed: dict[str, int] = {}       # and when it was given up

    def _line(self, at: int, text: str) -> None:
        sys.stdout.write(f"{(at - self.begin) / 1000:9.3f} s  {text}\n")

    def _observe(self, stamped: Stamped) -> None:
        if isinstance(stamped.event, SessionRenewed):
            self.heard[self._name(stamped.event.member_id)] = stamped.at
        elif isinstance(stamped.event, MemberRemoved):
            self.missed[self._name(stamped.event.member_id)] = stamped.at
        sentence = tell(stamped, self.language, self._name)
        if sentence is not None:
            self._line(stamped.at, f"  {sentence}")

    def _name(self, member_id: str) -> str:
        """An id without its random part."""
        return member_id[:-37] if len(member_id) > 37 else member_id

    def say(self, what: str, **fields: object) -> None:
        sys.stdout.write("\n")
        self._line(self.dialogue.world.now, SAYS[self.language][what].format(**fields))

    # What members do

    def find(self) -> None:
        answer = self.dialogue.ask(FindCoordinatorRequest(coordinator_keys=(GROUP,)), broker=True).answer
        partition = partition_for(GROUP, self.dialogue.config.offsets_topic_num_partitions)
        self.say("found", partition=partition, host=answer.coordinators[0].host)

    def join(self, members: Iterable[str]) -> None:
        """All join, come back with the id they were given, and sync with the leader's plan."""
        calls = self._joined(members)
        leader = next(call for call in calls if call.answer.leader == call.answer.member_id)
        wanted = {each.member_id: Subscription.decode(each.metadata) for each in leader.answer.members}
        plan = Range().plan(wanted, {TOPIC: PARTITIONS})
        shares = {self._name(member_id): share.get(TOPIC, []) for member_id, share in plan.items()}
        self.say("plan", leader=leader.member, plan=", ".join(f"{name} {share}" for name, share in shares.items()))
        self.generation = leader.answer.generation_id
        encoded = tuple(SyncGroupRequestAssignment(member_id, Assignment(partitions=_frozen(share)).encode())
                        for member_id, share in plan.items())
        for call in calls:
            sync = SyncGroupRequest(GROUP, self.generation, call.answer.member_id, None, "consumer", "range",
                                    encoded if call is leader else ())
            self.dialogue.send(sync, member=call.member)
        self.dialogue.wait(10)

    def _joined(self, members: Iterable[str]) -> list[Call]:
        protocols = (JoinGroupRequestProtocol("range", Subscription(topics=(TOPIC,)).encode()),)
        while True:
            calls = [self.dialogue.send(JoinGroupRequest(GROUP, SESSION_MS, "consumer", protocols, 300_000,
                                                         self.dialogue.newest_id(member)), member=member)
                     for member in members]
            for call in calls:
                self.dialogue.wait_for(call)
            if all(call.answer.error_code is Error.NONE for call in calls):
                return calls

    def beat(self, members: Iterable[str]) -> Error:
        """The last one's answer, a heartbeat interval later."""
        self.dialogue.wait(HEARTBEAT_MS)
        error = Error.NONE
        for member in members:
            call = self.dialogue.ask(HeartbeatRequest(GROUP, self.generation, self.dialogue.newest_id(member)))
            error = call.answer.error_code
        return error

    def commit(self, member: str, offset: int) -> None:
        topics = (OffsetCommitRequestTopic(TOPIC, (OffsetCommitRequestPartition(0, offset),)),)
        self.dialogue.ask(OffsetCommitRequest(GROUP, topics, self.generation, self.dialogue.newest_id(member)))

    def leave(self, member: str) -> None:
        self.dialogue.ask(LeaveGroupRequest(GROUP, members=(MemberIdentity(self.dialogue.newest_id(member)),)))

    # The story

    def play(self) -> None:
        alice, bob, carol = "alice", "bob", "carol"
        self.say("begin")
        self.find()
        self.join((alice, bob, carol))
        self.say("beats", member=alice)
        self.beat((alice, bob, carol))
        self.commit(alice, 42)
        self.beat((alice, bob, carol))
        self.say("crash", member=carol)
        while self.beat((alice, bob)) is Error.NONE:
            pass
        self.say("noticed", member=carol, ms=self.missed[carol] - self.heard[carol], timeout_ms=SESSION_MS)
        self.say("told", member=bob, error=Error.REBALANCE_IN_PROGRESS.name)
        self.join((alice, bob))
        self.beat((alice, bob))
        self.say("leave", member=bob)
        self.leave(bob)
        self.join((alice,))
        self.say("end", member=alice)
        self.leave(alice)


def _frozen(share: dict[str, list[int]]) -> dict[str, tuple[int, ...]]:
    return {topic: tuple(partitions) for topic, partitions in share.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lang", choices=sorted(SAYS), default="en", help="the language of the story")
    Demo(parser.parse_args().lang).play()


if __name__ == "__main__":
    main()
