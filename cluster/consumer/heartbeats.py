"""The heartbeat thread: it keeps the session alive while the application does something else.

It has three deadlines: the next heartbeat; the local session, which ends when nobody has answered for
session.timeout.ms; and the poll interval, within which the application must have polled again. It lives from the answer
to JoinGroup until the member joins again or is none any more. Without the thread (`heartbeat.thread: false`), as before
Kafka 0.10.1, beats leave only while the application is inside the client, and nobody watches the poll interval.
"""

from random import Random

from cluster.config import ConsumerConfig
from cluster.consumer.connections import Connections
from cluster.consumer.discovery import Discovery
from cluster.consumer.member import Member
from cluster.consumer.outbox import Backoff, Outbox
from cluster.consumer.states import COMPLETING, STABLE, Asked
from cluster.wire.groups import HeartbeatRequest

TIMER = "heartbeat"


class Heartbeats:
    def __init__(self, out: Outbox, connections: Connections, discovery: Discovery, member: Member,
                 config: ConsumerConfig, backoff: Backoff, rng: Random) -> None:
        self.out = out
        self.connections = connections
        self.discovery = discovery
        self.member = member
        self.config = config
        self.backoff = backoff
        self.rng = rng
        self.is_enabled = False
        self.has_failed = False
        self.next_due = 0
        self.session_due = 0
        self.poll_due = 0
        self.failures = 0
        self._request = HeartbeatRequest("", -1, "")

    def enable(self) -> None:
        """JoinGroup was answered: this is the generation to beat for."""
        member, now = self.member, self.out.now
        self._request = HeartbeatRequest(member.group_id, member.generation.number, member.generation.member_id,
                                         member.instance_id)
        self.is_enabled = True
        self.next_due = now + self.config.heartbeat_interval_ms
        self.session_due = now + self.config.session_timeout_ms
        self.poll_due = now + self.config.max_poll_interval_ms
        self.arm()

    def stop(self) -> None:
        self.is_enabled = False
        self.has_failed = True
        self.out.disarm(TIMER)

    def is_running(self) -> bool:
        """Is there something to beat for?"""
        if self.is_enabled and (self.has_failed or self.member.state not in (COMPLETING, STABLE)):
            self.is_enabled = False
            self.out.disarm(TIMER)
        return self.is_enabled

    def arm(self) -> None:
        due = min(self.next_due, self.session_due)
        self.out.arm(TIMER, min(due, self.poll_due) if self.config.heartbeat_thread else due)

    # What moves the deadlines

    def polled(self) -> None:
        """The application is in its poll. If that moves the timer, it finds out when it fires."""
        self.poll_due = self.out.now + self.config.max_poll_interval_ms

    def renew(self) -> None:
        self.session_due = self.out.now + self.config.session_timeout_ms

    def beaten(self) -> None:
        self.failures = 0
        self.session_due = self.out.now + self.config.session_timeout_ms

    def missed(self) -> None:
        """After a growing pause; before there was a thread, after a constant one."""
        pause_ms = self.backoff.ms(self.failures, self.rng) if self.config.heartbeat_thread else self.backoff.first_ms
        self.failures += 1
        self.next_due = self.out.now + pause_ms
        if self.is_running():
            self.arm()

    # One round of the thread

    def beat(self, *, is_sought: bool) -> bool:
        """The first that fits of: look for the coordinator, give it up, be told to leave, beat. True: it must leave.

        `is_sought`: the application itself is looking for the coordinator, and the thread keeps out of its way.
        """
        now = self.out.now
        if not self.is_running():
            return False
        if self.discovery.coordinator is not None and now >= self.session_due:
            self.discovery.lose(self.discovery.coordinator, "session timed out", is_closed=False)
        if self.discovery.coordinator is None:
            if not is_sought:
                self.discovery.look_behind()
            self.out.arm(TIMER, now + self.backoff.first_ms)
            return False
        if self.config.heartbeat_thread and now >= self.poll_due:
            return True
        if now >= self.next_due:
            self.next_due = now + self.config.heartbeat_interval_ms
            self.connections.ask(self.discovery.coordinator, Asked.BEAT, self._request,
                                 generation=self.member.generation)
        self.arm()
        return False
