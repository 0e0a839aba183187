"""Replicas: what followers have, who is in sync, what is committed, and what an election keeps."""

import pytest

from cluster.broker import elections
from cluster.broker.image import BrokerChanged, BrokerState, Image, PartitionState, TopicMade
from cluster.broker.log import Log
from cluster.broker.partition import Follower, Partition
from cluster.broker.storage import MemoryDisk
from cluster.events import BrokerFenced, HighWatermarkMoved, IsrChanged, LogTruncated
from cluster.sim import hosts
from cluster.wire.errors import Error
from cluster.wire.log import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    Record,
)
from tests.unit.brokers import CLOSED, Brokers

LAG_MS = 30_000


def three(controller: dict[str, object] | None = None, **config: int) -> Brokers:
    """Three brokers and a topic of one partition that broker 1 leads."""
    brokers = Brokers(3, controller, **config)
    assert brokers.create("t", 1, 3) is Error.NONE
    assert brokers.state() == PartitionState((1, 2, 3), (1, 2, 3), 1)
    return brokers


def cut_off_followers(brokers: Brokers, leader: int = 1) -> None:
    for each in (1, 2, 3):
        if each != leader:
            hosts.cut(brokers.world, f"broker-{leader}", f"broker-{each}")


def mend(brokers: Brokers, leader: int = 1) -> None:
    for each in (1, 2, 3):
        if each != leader:
            hosts.mend(brokers.world, f"broker-{leader}", f"broker-{each}")


# Writing


def test_a_record_is_acknowledged_when_all_in_sync_replicas_have_it() -> None:
    brokers = three()
    assert brokers.produce(b"a").base_offset == 0
    assert [brokers.end(each)[1] for each in (1, 2, 3)] == [1, 1, 1]


def test_followers_learn_what_is_committed_one_fetch_later() -> None:
    brokers = three()
    brokers.produce(b"a")
    assert 0 in [brokers.end(each)[0] for each in (2, 3)]
    brokers.wait(600)
    assert [brokers.end(each)[0] for each in (1, 2, 3)] == [1, 1, 1]


def test_with_acks_1_the_leader_answers_alone_and_nobody_can_read_it_yet() -> None:
    brokers = three()
    cut_off_followers(brokers)
    assert brokers.produce(b"a", acks=1).error_code is Error.NONE
    assert brokers.values() == []


def test_a_writer_is_told_when_its_time_is_up_and_its_records_may_be_committed_later() -> None:
    brokers = three()
    cut_off_followers(brokers)
    assert brokers.produce(b"a", timeout_ms=2000).error_code is Error.REQUEST_TIMED_OUT
    mend(brokers)
    brokers.until(lambda: brokers.end(1)[0] == 1)
    assert brokers.values() == [b"a"]


def test_too_few_replicas_in_sync_refuse_a_write_before_it_is_written() -> None:
    brokers = three(min_insync_replicas=2)
    for each in (2, 3):
        hosts.crash(brokers.world, f"broker-{each}")
    brokers.until(lambda: brokers.state().isr == (1,))
    brokers.wait(10)
    assert brokers.produce(b"a").error_code is Error.NOT_ENOUGH_REPLICAS
    assert brokers.end(1) == (0, 0)


def test_60_below_the_minimum_nothing_is_committed_even_with_acks_1() -> None:
    brokers = three(min_insync_replicas=2)
    for each in (2, 3):
        hosts.crash(brokers.world, f"broker-{each}")
    brokers.until(lambda: brokers.state().isr == (1,))
    brokers.wait(10)
    assert brokers.produce(b"a", acks=1).error_code is Error.NONE
    brokers.wait(5000)
    assert (brokers.end(1), brokers.values()) == ((0, 1), [])


def test_replicas_that_vanish_while_a_writer_waits_are_reported_after_the_append() -> None:
    """Written while all were in sync, committed when only one was left: the data stays, and the writer is warned."""
    brokers = three(min_insync_replicas=2)
    cut_off_followers(brokers)
    call = brokers.produce(b"a", timeout_ms=120_000, wait=False)
    for each in (2, 3):
        hosts.crash(brokers.world, f"broker-{each}")
    brokers.until(lambda: brokers.state().isr == (1,))
    brokers.wait(100)
    assert call.answer is None  # nothing is committed below the minimum, so nobody is told anything
    assert brokers.end(1) == (0, 1)


def test_65_a_minimum_above_the_number_of_replicas_is_clipped() -> None:
    brokers = Brokers(3, min_insync_replicas=2)
    brokers.create("t", 1, 1)
    assert brokers.produce(b"a", to=brokers.state().leader).error_code is Error.NONE


def test_only_the_leader_is_written_to_and_read_from() -> None:
    brokers = three()
    assert brokers.produce(b"a", to=2).error_code is Error.NOT_LEADER_OR_FOLLOWER
    assert brokers.fetch(to=2).error_code is Error.NOT_LEADER_OR_FOLLOWER


def test_a_writer_that_waits_is_told_when_its_leader_has_lost_its_office() -> None:
    brokers = three()
    cut_off_followers(brokers)
    call = brokers.produce(b"a", timeout_ms=60_000, wait=False)
    hosts.cut(brokers.world, "broker-1", "controller")
    brokers.until(lambda: brokers.state().leader == 2)
    assert call.answer is None  # broker 1 does not know yet
    hosts.mend(brokers.world, "broker-1", "controller")
    brokers.until(lambda: call.answer is not None)
    assert call.answer.responses[0].partition_responses[0].error_code is Error.NOT_LEADER_OR_FOLLOWER


# Who is in sync


def test_61_a_killed_follower_leaves_by_fencing_within_a_broker_session() -> None:
    brokers = three()
    hosts.crash(brokers.world, "broker-3")
    took = brokers.until(lambda: 3 not in brokers.state().isr)
    assert 7000 - 10 <= took <= 9000
    assert [event.cause for event in brokers.events(BrokerFenced)] == ["session expired"]


def test_61_a_stuck_follower_leaves_by_its_lag_after_one_to_one_and_a_half_periods() -> None:
    brokers = three()
    brokers.wait(LAG_MS)
    hosts.cut(brokers.world, "broker-1", "broker-3")
    brokers.wait(600)
    brokers.produce(b"a", acks=1)
    took = brokers.until(lambda: 3 not in brokers.state().isr)
    assert LAG_MS - 2000 <= took <= 1.5 * LAG_MS
    assert brokers.events(BrokerFenced) == []
    brokers.until(lambda: brokers.end(1)[0] == 1)  # and what waited for it is committed


def test_a_follower_with_nothing_to_fetch_is_in_sync_for_ever() -> None:
    brokers = three()
    hosts.cut(brokers.world, "broker-1", "broker-3")
    brokers.wait(4 * LAG_MS)
    assert brokers.state().isr == (1, 2, 3)


def test_an_idle_follower_does_not_lag_when_something_comes_at_last() -> None:
    brokers = three()
    brokers.wait(4 * LAG_MS)
    brokers.produce(b"a")
    brokers.wait(2 * LAG_MS)
    assert brokers.state().isr == (1, 2, 3)
    assert brokers.events(IsrChanged) == []


def test_a_follower_that_comes_back_catches_up_and_is_in_sync_again() -> None:
    brokers = three()
    brokers.produce(b"a")
    hosts.crash(brokers.world, "broker-3")
    brokers.until(lambda: 3 not in brokers.state().isr)
    for number in range(10):
        brokers.produce(b"%d" % number)
    hosts.restart(brokers.world, "broker-3")
    brokers.until(lambda: 3 in brokers.state().isr)
    assert brokers.end(3)[1] == brokers.end(1)[1] == 11


def test_62_the_last_in_sync_replica_is_never_removed_and_only_it_can_lead_again() -> None:
    brokers = three()
    for each in (3, 2, 1):
        hosts.crash(brokers.world, f"broker-{each}")
        brokers.until(lambda each=each: brokers.state().leader == -1 or each not in brokers.state().isr)
    assert (brokers.state().leader, brokers.state().isr) == (-1, (1,))
    hosts.restart(brokers.world, "broker-2")
    brokers.wait(20_000)
    assert (brokers.state().leader, brokers.state().isr) == (-1, (1,))
    hosts.restart(brokers.world, "broker-1")
    brokers.until(lambda: brokers.state().leader == 1)
    brokers.until(lambda: brokers.state().isr == (1, 2))


def test_an_unclean_election_takes_whoever_is_there_if_that_is_allowed_and_loses_what_it_had_acknowledged() -> None:
    brokers = three({"unclean.leader.election.enable": True})
    hosts.crash(brokers.world, "broker-2")
    hosts.crash(brokers.world, "broker-3")
    brokers.until(lambda: brokers.state().isr == (1,))
    brokers.produce(b"a")
    hosts.crash(brokers.world, "broker-1")
    brokers.until(lambda: brokers.state().leader == -1)
    hosts.restart(brokers.world, "broker-2")
    brokers.until(lambda: brokers.state().leader == 2)
    brokers.wait(10)
    assert brokers.produce(b"b", to=2).base_offset == 0
    hosts.restart(brokers.world, "broker-1")
    brokers.until(lambda: 1 in brokers.state().isr)
    assert brokers.values(to=2) == [b"b"]
    assert [(event.to_offset, event.records) for event in brokers.events(LogTruncated)] == [(0, 1)]


def partition(end: int, high_watermark: int, epoch_start: int) -> Partition:
    log = Log(MemoryDisk().log("t", 0, 0))
    for _ in range(epoch_start):
        log.append((Record(b"k"),), 0)
    made = Partition("t", 0, log, 1, 1, LAG_MS)
    made.change(PartitionState((1, 2), (1,), 1, 1, 1), now=1000)
    for _ in range(end - epoch_start):
        log.append((Record(b"k"),), 1)
    log.high_watermark = high_watermark
    return made


@pytest.mark.parametrize(("offset", "joins"), [(4, False), (5, True), (7, True)])
def test_63_a_follower_must_reach_the_beginning_of_the_leaders_epoch(offset: int, joins: bool) -> None:
    made = partition(end=7, high_watermark=3, epoch_start=5)
    made.followers[2].fetched(offset, 1000, 7)
    assert made.may_join(2) is joins


def test_a_replica_about_to_be_in_sync_holds_the_high_watermark_back() -> None:
    made = partition(end=7, high_watermark=5, epoch_start=5)
    made.followers[2].fetched(5, 1000, 7)
    made.proposed = (1, 2)
    assert made.advance(1000) is False
    made.proposed = None
    assert (made.advance(1000), made.log.high_watermark) == (True, 7)


def test_the_high_watermark_never_goes_back_while_one_leader_leads() -> None:
    brokers = three()
    for number in range(20):
        brokers.produce(b"%d" % number)
        if number == 10:
            hosts.crash(brokers.world, "broker-2")
        if number == 15:
            hosts.restart(brokers.world, "broker-2")
    brokers.wait(20_000)
    moved = [event.high_watermark for event in brokers.events(HighWatermarkMoved) if event.topic == "t"]
    assert moved == sorted(moved)
    assert moved[-1] == 20


# Elections


def test_the_first_in_sync_replica_in_the_order_of_preference_leads_next() -> None:
    brokers = three()
    brokers.produce(b"a")
    hosts.crash(brokers.world, "broker-1")
    brokers.until(lambda: brokers.state().leader != 1)
    assert brokers.state() == PartitionState((1, 2, 3), (2, 3), 2, 1, 1)
    brokers.wait(2000)
    assert brokers.values(to=2) == [b"a"]


def test_whoever_was_written_to_by_an_old_leader_alone_forgets_it() -> None:
    brokers = three()
    brokers.produce(b"a")
    cut_off_followers(brokers)
    brokers.produce(b"lost", acks=1)
    hosts.crash(brokers.world, "broker-1")
    brokers.until(lambda: brokers.state().leader == 2)
    brokers.until(lambda: brokers.broker(2).partitions["t", 0].leads)
    brokers.produce(b"b", b"c", to=2)
    mend(brokers)
    hosts.restart(brokers.world, "broker-1")
    brokers.until(lambda: brokers.state().isr == (2, 3, 1))
    assert brokers.end(1)[1] == 3
    assert brokers.values(to=2) == [b"a", b"b", b"c"]
    assert [(event.to_offset, event.records) for event in brokers.events(LogTruncated)] == [(1, 1)]


def test_64_two_elections_without_a_write_truncate_a_tail_of_a_later_epoch() -> None:
    """Broker 1 wrote alone under epoch 0; 2 led without writing, then 3: 1 must cut off what it wrote all the same."""
    brokers = three()
    brokers.produce(b"a")
    cut_off_followers(brokers)
    brokers.produce(b"x", b"y", acks=1)
    hosts.crash(brokers.world, "broker-1")
    brokers.until(lambda: brokers.state().leader == 2)
    hosts.crash(brokers.world, "broker-2")
    brokers.until(lambda: brokers.state().leader == 3)
    mend(brokers)
    brokers.until(lambda: brokers.broker(3).partitions["t", 0].leads)
    assert brokers.produce(b"b", to=3).base_offset == 1
    for each in (1, 2):
        hosts.restart(brokers.world, f"broker-{each}")
    brokers.until(lambda: len(brokers.state().isr) == 3)
    assert [brokers.end(each)[1] for each in (1, 2, 3)] == [2, 2, 2]
    assert brokers.values(to=3) == [b"a", b"b"]


def test_a_new_leader_does_not_tell_where_the_log_ends_before_it_knows_what_is_committed() -> None:
    brokers = three()
    brokers.produce(b"a")
    hosts.cut(brokers.world, "broker-2", "broker-3")
    hosts.crash(brokers.world, "broker-1")
    brokers.until(lambda: brokers.broker(2).partitions["t", 0].leads)
    behind = brokers.end(2)[0] == 0
    answer = brokers.ask(ListOffsetsRequest((ListOffsetsTopic("t", (ListOffsetsPartition(0, -1),)),)), 2)
    (found,) = answer.topics[0].partitions
    assert (found.error_code, found.offset) == ((Error.OFFSET_NOT_AVAILABLE, -1) if behind else (Error.NONE, 1))


def test_a_fetch_that_knows_an_older_leader_is_fenced() -> None:
    brokers = three()
    hosts.crash(brokers.world, "broker-1")
    brokers.until(lambda: brokers.broker(2).partitions["t", 0].leads)
    assert brokers.fetch(to=2, epoch=0).error_code is Error.FENCED_LEADER_EPOCH


def image(*alive: int, state: PartitionState) -> Image:
    made = Image()
    for broker_id in (1, 2, 3):
        made.apply(BrokerChanged(broker_id, BrokerState(0, is_fenced=broker_id not in alive)))
    made.apply(TopicMade("t", 0, 0, (state,)))
    return made


@pytest.mark.parametrize(
    ("alive", "isr", "leader", "unclean", "expected"),
    [
        ((2, 3), (1, 2, 3), 1, False, ((2, 3), 2, 1)),  # the first that is in sync
        ((2, 3), (1, 3), 1, False, ((3,), 3, 1)),  # not the first that is there
        ((2, 3), (1,), 1, False, ((1,), -1, 1)),  # nobody: only the last one may come back
        ((2, 3), (1,), 1, True, ((2,), 2, 1)),  # unclean
        ((), (1,), 1, True, ((1,), -1, 1)),  # nobody is there at all
        ((2, 3), (2, 1), 2, False, ((2,), 2, 0)),  # the leader stays
    ],
)
def test_what_an_election_decides_when_broker_1_goes(
    alive: tuple[int, ...], isr: tuple[int, ...], leader: int, unclean: bool, expected: tuple[tuple[int, ...], int, int]
) -> None:
    before = PartitionState((1, 2, 3), isr, leader)
    ((change, _),) = elections.without(image(*alive, state=before), 1, unclean=unclean)
    after = change.state
    assert (after.isr, after.leader, after.leader_epoch) == expected
    assert after.partition_epoch == 1


# The session of a follower


def fetch_of_follower(session_epoch: int, *wanted: FetchPartition, wait_ms: int = 0) -> FetchRequest:
    topics = (FetchTopic("t", wanted),) if wanted else ()
    return FetchRequest(topics, 2, -1, wait_ms, session_epoch=session_epoch)


def test_in_a_session_only_what_is_new_is_told() -> None:
    brokers = Brokers(1)
    brokers.create("t")
    brokers.broker().partitions["t", 0].followers[2] = Follower()
    first = brokers.ask(fetch_of_follower(0, FetchPartition(0, 0, 0)))
    assert [data.high_watermark for data in first.responses[0].partitions] == [0]
    assert brokers.ask(fetch_of_follower(1)).responses == ()
    brokers.produce(b"a", acks=1)
    (data,) = brokers.ask(fetch_of_follower(2)).responses[0].partitions
    assert [batch.base_offset for batch in data.records] == [0]


@pytest.mark.parametrize(("epoch", "error"), [(5, Error.INVALID_FETCH_SESSION_EPOCH), (1, Error.NONE), (0, Error.NONE)])
def test_a_session_counts_on(epoch: int, error: Error) -> None:
    brokers = Brokers(1)
    brokers.ask(fetch_of_follower(0))
    assert brokers.ask(fetch_of_follower(epoch)).error_code is error


def test_whoever_has_no_session_is_told_so() -> None:
    assert Brokers(1).ask(fetch_of_follower(3)).error_code is Error.FETCH_SESSION_ID_NOT_FOUND


def test_a_dead_broker_closes_its_connections_and_a_silent_node_does_not() -> None:
    brokers = three()
    call = brokers.send(FetchRequest((FetchTopic("t", (FetchPartition(0, 0),)),), max_wait_ms=30_000))
    brokers.wait(10)
    hosts.crash(brokers.world, "broker-1")
    brokers.wait(10)
    assert call.answer == CLOSED
    hosts.silence(brokers.world, "node-2")
    silent = brokers.send(FetchRequest((FetchTopic("t", (FetchPartition(0, 0),)),)), 2)
    brokers.wait(30_000)
    assert silent.answer is None
