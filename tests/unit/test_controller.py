"""The controller: who is alive, who leads, what topics there are; and that it survives itself."""

from cluster.broker.broker import STOP
from cluster.broker.image import PartitionState
from cluster.events import BrokerFenced, BrokerRegistered, BrokerStopped, BrokerUnfenced, LeaderElected
from cluster.sim import hosts
from cluster.wire import control
from cluster.wire.errors import Error
from cluster.wire.log import CreatePartitionsRequest, CreatePartitionsTopic, DeleteTopicsRequest, MetadataRequest
from tests.unit.brokers import CLOSED, Brokers


def three(controller: dict[str, object] | None = None, **config: int) -> Brokers:
    brokers = Brokers(3, controller, **config)
    assert brokers.create("t", 3, 3) is Error.NONE
    return brokers


def leaders(brokers: Brokers) -> list[int]:
    return [state.leader for state in brokers.controller().image.topics["t"]]


def test_a_broker_is_fenced_until_it_has_followed_the_log_past_its_registration() -> None:
    brokers = Brokers(2)
    registered, unfenced = brokers.events(BrokerRegistered), brokers.events(BrokerUnfenced)
    assert [event.broker for event in registered] == [event.broker for event in unfenced] == [1, 2]
    assert all(brokers.broker(each).citizen.position > registered[each - 1].broker_epoch for each in (1, 2))


def test_partitions_are_dealt_round_the_brokers() -> None:
    assert leaders(three()) == [1, 2, 3]


def test_there_are_no_more_replicas_than_brokers() -> None:
    assert Brokers(2).create("t", 1, 3) is Error.INVALID_REPLICATION_FACTOR


def test_a_topic_grows_with_as_many_replicas_as_it_has() -> None:
    brokers = three()
    brokers.ask(CreatePartitionsRequest((CreatePartitionsTopic("t", 5),)))
    brokers.wait(10)
    assert [len(state.replicas) for state in brokers.controller().image.topics["t"]] == [3] * 5
    hosts.crash(brokers.world, "broker-3")
    brokers.until(lambda: not brokers.controller().image.is_active(3))
    answer = brokers.ask(CreatePartitionsRequest((CreatePartitionsTopic("t", 6),)))
    assert answer.results[0].error_code is Error.INVALID_REPLICATION_FACTOR


def test_a_deleted_topic_is_gone_everywhere_and_another_of_its_name_is_another_topic() -> None:
    brokers = three()
    assert brokers.produce(b"old").error_code is Error.NONE
    hosts.crash(brokers.world, "broker-3")
    brokers.until(lambda: not brokers.controller().image.is_active(3))
    brokers.ask(DeleteTopicsRequest(("t",)))
    brokers.wait(10)
    assert brokers.create("t", 3, 2) is Error.NONE
    brokers.produce(b"new", to=brokers.state().leader)
    hosts.restart(brokers.world, "broker-3")
    brokers.until(lambda: brokers.controller().image.is_active(3))
    brokers.wait(2000)
    assert brokers.values(to=brokers.state().leader) == [b"new"]


def test_a_dead_broker_is_fenced_a_session_after_its_last_heartbeat() -> None:
    brokers = three()
    hosts.crash(brokers.world, "broker-2")
    took = brokers.until(lambda: 2 not in leaders(brokers))
    assert 7000 - 10 <= took <= 9000
    assert [(event.broker, event.cause) for event in brokers.events(BrokerFenced)] == [(2, "session expired")]
    assert brokers.ask(MetadataRequest(())).brokers[0].node_id == 1
    brokers.wait(10)
    assert [each.node_id for each in brokers.ask(MetadataRequest(())).brokers] == [1, 3]


def test_a_paused_broker_is_fenced_and_comes_back_by_itself() -> None:
    brokers = three()
    hosts.pause(brokers.world, "broker-2")
    brokers.wait(12_000)
    assert 2 not in leaders(brokers)
    hosts.wake(brokers.world, "broker-2")
    brokers.until(lambda: brokers.controller().image.is_active(2))
    brokers.until(lambda: 2 in brokers.state("t", 1).isr)
    assert leaders(brokers) == [1, 3, 3]  # it has its places back, but not its office


def test_a_broker_that_restarts_at_once_is_fenced_at_once() -> None:
    brokers = three()
    hosts.crash(brokers.world, "broker-2")
    hosts.restart(brokers.world, "broker-2")
    brokers.wait(50)
    assert [(event.broker, event.cause) for event in brokers.events(BrokerFenced)] == [(2, "restarted")]
    brokers.until(lambda: 2 in brokers.state("t", 1).isr)
    assert leaders(brokers) == [1, 3, 3]


def test_the_preferred_replica_leads_again_after_a_while() -> None:
    brokers = three({"leader.imbalance.check.interval.seconds": 30})
    hosts.crash(brokers.world, "broker-2")
    hosts.restart(brokers.world, "broker-2")
    brokers.until(lambda: leaders(brokers) == [1, 3, 3])
    brokers.until(lambda: leaders(brokers) == [1, 2, 3])
    assert [event.epoch for event in brokers.events(LeaderElected) if event.topic == "t" and event.partition == 1] == [
        0,
        1,
        2,
    ]


def test_without_it_nobody_is_moved() -> None:
    brokers = three({"auto.leader.rebalance.enable": False, "leader.imbalance.check.interval.seconds": 30})
    hosts.crash(brokers.world, "broker-2")
    hosts.restart(brokers.world, "broker-2")
    brokers.wait(100_000)
    assert leaders(brokers) == [1, 3, 3]


def elect(brokers: Brokers, kind: int, *partitions: int) -> list[Error]:
    wanted = (control.TopicPartitions("t", partitions),)
    answer = brokers.ask(control.ElectLeadersRequest(kind, wanted))
    return [each.error_code for each in answer.replica_election_results[0].partition_result]


def test_leaders_are_elected_by_request() -> None:
    brokers = three()
    assert elect(brokers, 0, 0, 9) == [Error.ELECTION_NOT_NEEDED, Error.UNKNOWN_TOPIC_OR_PARTITION]
    hosts.crash(brokers.world, "broker-2")
    brokers.until(lambda: leaders(brokers) == [1, 3, 3])
    assert elect(brokers, 0, 1) == [Error.PREFERRED_LEADER_NOT_AVAILABLE]
    assert elect(brokers, 1, 1) == [Error.ELECTION_NOT_NEEDED]
    hosts.restart(brokers.world, "broker-2")
    brokers.until(lambda: 2 in brokers.state("t", 1).isr)
    assert elect(brokers, 0, 1) == [Error.NONE]
    assert leaders(brokers) == [1, 2, 3]
    answer = brokers.ask(control.ElectLeadersRequest(0))
    assert len(answer.replica_election_results[0].partition_result) == 3


def test_an_unclean_leader_is_elected_by_request_only_where_there_is_none() -> None:
    brokers = Brokers(2)
    brokers.create("t", 1, 2)
    hosts.crash(brokers.world, "broker-2")
    brokers.until(lambda: brokers.state().isr == (1,))
    hosts.crash(brokers.world, "broker-1")
    brokers.until(lambda: brokers.state().leader == -1)
    hosts.restart(brokers.world, "broker-2")
    brokers.until(lambda: brokers.controller().image.is_active(2))
    brokers.wait(10)
    answer = brokers.ask(control.ElectLeadersRequest(1, (control.TopicPartitions("t", (0,)),)), 2)
    assert answer.replica_election_results[0].partition_result[0].error_code is Error.NONE
    assert brokers.state() == PartitionState((1, 2), (2,), 2, 2, 3)


# Stopping in good order


def test_a_broker_that_is_told_to_stop_hands_over_and_goes_within_a_moment() -> None:
    brokers = three()
    brokers.produce(b"a")
    brokers.world.tell("broker-1", STOP)
    assert brokers.until(lambda: leaders(brokers) == [2, 2, 3]) < 300  # not a broker session
    assert (
        brokers.until(lambda: brokers.events(BrokerStopped) != []) <= 2300
    )  # when the others have told their next heartbeat
    assert 1 not in brokers.state().isr
    brokers.wait(10)
    assert brokers.values(to=2) == [b"a"]


def test_while_it_stops_it_does_not_come_back_into_any_set_of_in_sync_replicas() -> None:
    brokers = three()
    brokers.world.tell("broker-1", STOP)
    brokers.wait(5000)
    assert all(1 not in state.isr for state in brokers.controller().image.topics["t"])


# The controller itself


def test_a_controller_that_comes_back_knows_what_it_decided() -> None:
    brokers = three()
    before = brokers.controller().image
    hosts.crash(brokers.world, "controller")
    brokers.wait(5000)
    hosts.restart(brokers.world, "controller")
    brokers.wait(5000)
    after = brokers.controller().image
    assert (after.topics, after.brokers, after.ids) == (before.topics, before.brokers, before.ids)
    assert brokers.events(BrokerFenced) == []
    assert brokers.create("u", 3, 3) is Error.NONE
    assert [state.leader for state in brokers.controller().image.topics["u"]] == [1, 2, 3]


def test_while_there_is_no_controller_nobody_is_elected_and_writing_goes_on() -> None:
    brokers = three()
    hosts.crash(brokers.world, "controller")
    hosts.crash(brokers.world, "broker-3")
    brokers.wait(60_000)
    assert brokers.produce(b"a", acks=1).error_code is Error.NONE
    assert brokers.broker(1).image.topics["t"][2].leader == 3
    hosts.restart(brokers.world, "controller")
    took = brokers.until(lambda: 3 not in leaders(brokers))
    assert took <= 9000


def test_what_was_asked_of_a_controller_that_is_gone_is_not_answered_but_closed() -> None:
    brokers = three()
    hosts.crash(brokers.world, "controller")
    assert brokers.ask(DeleteTopicsRequest(("t",))) == CLOSED


def alter(
    brokers: Brokers,
    isr: tuple[int, ...],
    *,
    leader: int = 1,
    leader_epoch: int = 0,
    partition_epoch: int = 0,
    partition: int = 0,
    broker_epoch: int | None = None,
) -> Error:
    epoch = brokers.controller().image.brokers[leader].broker_epoch if broker_epoch is None else broker_epoch
    wanted = control.AlterPartitionPartition(partition, leader_epoch, isr, partition_epoch)
    topics = (control.AlterPartitionTopic("t", (wanted,)),)
    answer = brokers.ask(control.AlterPartitionRequest(leader, epoch, topics), "controller")
    if answer.error_code is not Error.NONE:
        return Error(answer.error_code)
    return Error(answer.topics[0].partitions[0].error_code)


def test_the_controller_objects_to_what_is_wrong_or_stale() -> None:
    brokers = three()
    hosts.crash(brokers.world, "broker-3")
    brokers.until(lambda: brokers.state().isr == (1, 2))
    epochs = {"leader_epoch": 0, "partition_epoch": 1}
    assert alter(brokers, (1,), broker_epoch=99) is Error.STALE_BROKER_EPOCH
    assert alter(brokers, (1,), partition=9) is Error.UNKNOWN_TOPIC_OR_PARTITION
    assert alter(brokers, (1,), leader_epoch=0, partition_epoch=0) is Error.INVALID_UPDATE_VERSION
    assert alter(brokers, (1,), leader_epoch=7, partition_epoch=1) is Error.NOT_CONTROLLER
    assert alter(brokers, (2,), **epochs) is Error.INVALID_REQUEST  # without its leader
    assert alter(brokers, (1, 9), **epochs) is Error.INVALID_REQUEST  # not a replica
    assert alter(brokers, (2, 1), leader=2, **epochs) is Error.INVALID_REQUEST  # not the leader
    assert alter(brokers, (1, 2, 3), **epochs) is Error.INELIGIBLE_REPLICA  # 3 is fenced
    assert alter(brokers, (2,), leader=2, partition=2, leader_epoch=0, partition_epoch=0) is Error.FENCED_LEADER_EPOCH
    assert alter(brokers, (1,), **epochs) is Error.NONE
    assert brokers.state().isr == (1,)


def test_whoever_the_controller_does_not_know_must_register() -> None:
    brokers = Brokers(1)
    ask = control.BrokerHeartbeatRequest(7, 0, 0)
    assert brokers.ask(ask, "controller").error_code is Error.BROKER_ID_NOT_REGISTERED
    ask = control.BrokerHeartbeatRequest(1, 99, 0)
    assert brokers.ask(ask, "controller").error_code is Error.STALE_BROKER_EPOCH
