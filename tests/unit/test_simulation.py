"""Every fault does what it says, to whom it says, for as long as it says."""

from pathlib import Path

import pytest

from cluster.events import (
    BrokerFenced,
    BrokerStopped,
    CoordinatorLost,
    FaultBegan,
    FaultEnded,
    GroupLoaded,
    LeaderElected,
    MemberAdded,
    MemberLeft,
    MemberRemoved,
    ProcessDied,
    ProcessStarted,
    RecordsAcked,
    RecordsProcessed,
    RequestSent,
    ResponseArrived,
    SessionRenewed,
)
from cluster.faults import target
from cluster.sim.network import FINE, Condition
from tests.unit.sim_stage import Stage


def faults(stage: Stage) -> list[tuple[str, str, str]]:
    return [(each.what, each.who, each.target) for each in stage.events(FaultBegan)]


# Hosts


def test_a_paused_member_does_nothing_and_wakes_up(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "at: 5s, pause: {who: member g/2, for: 10s}").play(14_999)
    assert stage.host("g-2").is_paused
    assert stage.events(RequestSent, "g-2", 5001) == []
    assert [each.cause for each in stage.events(MemberRemoved)] == ["session expired"]
    stage.play(30_000)
    assert not stage.host("g-2").is_paused
    assert stage.times(FaultBegan, what="pause") == [5000]
    assert stage.times(FaultEnded, fault=1) == [15_000]
    assert stage.times(ProcessDied) == []
    assert len(stage.events(MemberAdded, since=15_000)) == 1


def test_a_short_pause_of_a_broker_costs_nobody_its_session(tmp_path: Path) -> None:
    """What had arrived is handled before timers that came due."""
    stage = Stage(tmp_path, "at: 10s, pause: {who: brokers, for: 5500ms}", brokers=1).play(30_000)
    assert stage.events(MemberRemoved) == []


def test_a_crash_without_an_end_lasts(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "at: 5s, crash: {who: member g/1}").play(60_000)
    assert not stage.host("g-1").is_up
    assert stage.times(ProcessDied, name="g-1") == [5000]
    assert stage.times(FaultEnded) == []
    assert set(stage.owners()[("orders", 0)] + stage.owners()[("orders", 3)]) == {"g-2"}


def test_a_crash_with_an_end_is_a_new_process(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "at: 5s, crash: {who: member g/1, for: 2s}").play(6999)
    assert not stage.host("g-1").is_up
    stage.play(7000)
    assert stage.host("g-1").is_up
    assert stage.events(ProcessStarted) == [ProcessStarted("g-1", 1)]
    assert stage.times(FaultEnded, fault=1) == [7000]
    stage.play(30_000)
    assert len(stage.events(MemberAdded, since=7000)) == 1


def test_a_crashed_broker_takes_its_coordinator_with_it_and_another_takes_over(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "at: 5s, crash: {who: coordinator of group g, for: 10s}").play(30_000)
    (hit,) = stage.events(FaultBegan)
    number = hit.who.removeprefix("broker-")
    assert hit.detail == {"hosts": [hit.who], "processes": [hit.who, f"coordinator-{number}"], "for": 10_000}
    assert {each.name for each in stage.events(ProcessDied)} == {hit.who, f"coordinator-{number}"}
    assert [each.cause for each in stage.events(CoordinatorLost, since=5000, until=5100)] == ["disconnected"] * 2
    assert stage.events(MemberRemoved) == []
    assert len(stage.events(GroupLoaded, since=5000)) >= 1
    assert stage.owners().keys() == {("orders", number) for number in range(4)}


def test_a_silent_node_tells_nobody(tmp_path: Path) -> None:
    """A crash is felt at once; silence is noticed by who waits for an answer."""
    stage = Stage(tmp_path, "at: 5s, silence: {who: node 2, for: 20s}").play(5200)
    assert {each.who for each in stage.events(FaultBegan)} == {"broker-2", "g-2"}
    assert not stage.host("broker-2").is_up
    assert stage.host("broker-2").is_silent
    assert stage.host("g-2").is_silent
    assert stage.events(CoordinatorLost, since=5000) == []
    stage.play(25_000)
    assert stage.times(BrokerFenced, broker=2, cause="session expired")[-1] > 7000
    gone = next(each.member_id for each in stage.events(MemberAdded) if each.client_id == "g-2")
    assert [each.cause for each in stage.events(MemberRemoved) if each.member_id == gone] == ["session expired"]
    assert stage.host("broker-2").is_up
    assert not stage.host("broker-2").is_silent
    assert {(each.name, each.incarnation) for each in stage.events(ProcessStarted)} == {
        ("broker-2", 1), ("coordinator-2", 1), ("g-2", 1),
    }  # fmt: skip


def test_a_broker_that_is_stopped_hands_over_first(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "at: 5s, stop: {who: broker 1, for: 8s}", produces=True).play(30_000)
    (stopped,) = stage.times(BrokerStopped, broker=1)
    assert stage.times(ProcessDied, name="broker-1") == [stopped]
    handed = stage.times(LeaderElected, leader=2)
    assert max(at for at in handed if at < 13_000) <= stopped
    assert [each.cause for each in stage.events(BrokerFenced, since=5000, until=stopped)] == ["shutting down"]
    assert stage.times(ProcessStarted, name="broker-1") == [stopped + 8000]
    assert stage.events(MemberRemoved) == []
    assert stage.broken_rules() == []


def test_a_stop_is_not_cut_short_by_its_end(tmp_path: Path) -> None:
    """`for` is how long it is away: however long the handing over takes, it is not killed meanwhile."""
    stage = Stage(tmp_path, "at: 5s, stop: {who: broker 1, for: 1ms}", produces=True).play(30_000)
    (stopped,) = stage.times(BrokerStopped, broker=1)
    assert stage.times(ProcessDied, name="broker-1") == [stopped]
    assert stage.times(ProcessStarted, name="broker-1") == [stopped + 1]


def test_a_member_that_is_stopped_leaves(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "at: 5s, stop: {who: member g/2}").play(30_000)
    (left,) = stage.times(MemberLeft, cause="closed")
    assert stage.times(ProcessDied, name="g-2") == [left]
    assert [each.cause for each in stage.events(MemberRemoved)] == ["left"]
    assert stage.times(MemberRemoved)[0] - left <= 2
    assert {who for owners in stage.owners().values() for who in owners} == {"g-1"}


def test_a_member_that_is_in_no_group_stops_as_well(tmp_path: Path) -> None:
    """It has nothing to leave, so nothing is heard of it; it ends all the same."""
    stage = Stage(tmp_path, "at: 5s, unsubscribe: {who: member g/2}", "at: 8s, stop: {who: member g/2, for: 5s}")
    stage.play(9000)
    assert not stage.host("g-2").is_up
    stage.play(30_000)
    assert stage.host("g-2").is_up
    assert len(stage.events(MemberAdded)) == 3


def test_a_producer_that_is_stopped_sends_what_it_has_and_ends(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "at: 5s, stop: {who: producer 1, for: 10s}", produces=True).play(14_000)
    (died,) = stage.times(ProcessDied, name="producer-1")
    assert 5000 <= died <= 6000
    made = stage.machine("producer-1").made
    assert sum(each.count for each in stage.events(RecordsAcked)) == made
    stage.play(30_000)
    assert stage.times(ProcessStarted, name="producer-1") == [died + 10_000]
    assert stage.events(RecordsAcked, since=16_000) != []


def test_a_node_is_stopped_with_everybody_on_it(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "at: 5s, stop: {who: node 1, for: 5s}", produces=True).play(9000)
    down = {name for name, host in stage.world.hosts.items() if not host.is_up}
    assert down == {"broker-1", "g-1", "producer-1"}
    stage.play(30_000)
    assert all(host.is_up for host in stage.world.hosts.values())


def test_somebody_who_does_not_manage_to_stop_is_ended(tmp_path: Path) -> None:
    """A broker hands over to the controller's word; without a controller it waits, but not for ever."""
    stage = Stage(tmp_path, "at: 5s, crash: {who: controller}", "at: 6s, stop: {who: broker 1}", until="320s")
    stage.play(305_000)
    assert stage.host("broker-1").is_up
    stage.play(307_000)
    assert not stage.host("broker-1").is_up


def test_a_slow_disk_holds_up_whoever_writes(tmp_path: Path) -> None:
    """A commit is answered when it is written."""
    stage = Stage(tmp_path, "at: 10s, slow-disk: {who: broker 1, by: 300ms, for: 10s}", brokers=1, produces=True)
    stage.play(19_999)
    assert stage.host("broker-1").slow_ms == 300
    sent = {
        each.event.correlation_id: each.at
        for each in stage.seen
        if isinstance(each.event, RequestSent) and each.event.api == "Produce" and each.machine == "producer-1"
    }
    waits = [
        (each.at - stage.simulation.begin, each.at - sent[each.event.correlation_id])
        for each in stage.seen
        if isinstance(each.event, ResponseArrived) and each.event.api == "Produce" and each.machine == "producer-1"
    ]
    assert {ms for at, ms in waits if at < 10_000} == {2}
    assert min(ms for at, ms in waits if at > 10_400) >= 300
    stage.play(21_000)
    assert stage.host("broker-1").slow_ms == 0


# Faults that overlap


def test_the_end_of_one_pause_is_not_the_end_of_another(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "at: 5s, pause: {who: member g/1, for: 4s}", "at: 7s, pause: {who: member g/1, for: 4s}")
    assert stage.play(10_999).host("g-1").is_paused
    assert stage.times(FaultEnded, fault=1) == [9000]
    assert not stage.play(11_000).host("g-1").is_paused


def test_a_host_is_down_as_long_as_anything_keeps_it_down(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "at: 5s, crash: {who: broker 1, for: 4s}", "at: 7s, crash: {who: broker 1, for: 10s}")
    stage.play(9000)
    assert stage.times(FaultEnded, fault=1) == [9000]
    assert not stage.play(16_999).host("broker-1").is_up
    assert stage.play(17_000).host("broker-1").is_up
    assert stage.times(FaultBegan) == [5000, 7000]
    assert stage.times(ProcessDied, name="broker-1") == [5000]


def test_a_crash_within_a_silence_does_not_end_with_it(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "at: 5s, silence: {who: node 1, for: 3s}", "at: 6s, crash: {who: broker 1, for: 10s}")
    stage.play(8000)
    assert stage.host("g-1").is_up
    assert not stage.host("broker-1").is_up
    assert not stage.host("broker-1").is_silent
    assert stage.play(16_000).host("broker-1").is_up


def test_a_crash_ends_the_pause_of_what_is_dead(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "at: 5s, pause: {who: member g/1, for: 20s}", "at: 7s, crash: {who: member g/1, for: 1s}",
                  "at: 12s, pause: {who: member g/1, for: 1s}")  # fmt: skip
    stage.play(7500)
    assert stage.times(FaultEnded, fault=1) == [7000]
    assert stage.play(12_500).host("g-1").is_paused
    assert not stage.play(13_000).host("g-1").is_paused


def test_of_two_slow_disks_the_slower_one_is_felt(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "at: 5s, slow-disk: {who: broker 1, by: 300ms, for: 4s}",
                  "at: 6s, slow-disk: {who: broker 1, by: 20ms, for: 10s}")  # fmt: skip
    assert stage.play(7000).host("broker-1").slow_ms == 300
    assert stage.play(9000).host("broker-1").slow_ms == 20
    assert stage.play(16_000).host("broker-1").slow_ms == 0


def test_a_disk_is_slow_from_the_beginning_if_its_broker_was_down(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "at: 5s, crash: {who: broker 1, for: 4s}", "at: 6s, slow-disk: {who: broker 1, by: 20ms}")
    assert stage.play(12_000).host("broker-1").slow_ms == 20


def test_what_is_down_is_not_paused(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "at: 5s, crash: {who: member g/1, for: 4s}", "at: 6s, pause: {who: member g/1, for: 10s}",
                  "at: 7s, stop: {who: member g/1}")  # fmt: skip
    stage.play(10_000)
    assert stage.host("g-1").is_up
    assert not stage.host("g-1").is_paused
    assert [what for what, _, _ in faults(stage)] == ["crash"]


def test_ends_of_faults_on_one_link_leave_the_others(tmp_path: Path) -> None:
    there = "link: broker 1 -> broker 2"
    stage = Stage(tmp_path, f"at: 5s, cut: {{{there}, for: 2s}}", f"at: 6s, cut: {{{there}, for: 2s}}",
                  f"at: 6s, delay: {{{there}, by: 10ms, jitter: 3ms, for: 5s}}",
                  f"at: 6s, delay: {{{there}, by: 5ms, for: 4s}}",
                  f"at: 6s, loss: {{{there}, rate: 0.5, for: 4s}}",
                  f"at: 6s, loss: {{{there}, rate: 0.2, for: 5s}}")  # fmt: skip
    assert stage.play(6500).link("broker-1", "broker-2") == Condition(15, 3, 0.5, is_cut=True)
    assert stage.play(7500).link("broker-1", "broker-2").is_cut
    assert stage.play(8500).link("broker-1", "broker-2") == Condition(15, 3, 0.5)
    assert stage.play(10_500).link("broker-1", "broker-2") == Condition(10, 3, 0.2)
    assert stage.play(11_500).link("broker-1", "broker-2") == FINE
    assert stage.world.network.conditions == {}


# The network


def test_a_cut_goes_one_way(tmp_path: Path) -> None:
    """Its heartbeats do not arrive, and it is expelled; it does not even hear that."""
    stage = Stage(tmp_path, "at: 5s, cut: {link: member g/1 -> brokers, for: 20s}").play(6000)
    assert stage.link("g-1", "broker-1").is_cut
    assert stage.link("g-1", "broker-2").is_cut
    assert stage.link("broker-1", "g-1") == FINE
    assert stage.link("g-2", "broker-1") == FINE
    stage.play(15_000)
    assert [each.cause for each in stage.events(MemberRemoved)] == ["session expired"]
    stage.play(40_000)
    assert stage.link("g-1", "broker-1") == FINE
    assert len(stage.events(MemberAdded)) == 3


def test_a_cut_goes_both_ways(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "at: 5s, cut: {link: broker 1 <-> broker 2, for: 2s}").play(6000)
    assert stage.link("broker-1", "broker-2").is_cut
    assert stage.link("broker-2", "broker-1").is_cut
    assert stage.link("broker-1", "controller") == FINE
    assert stage.play(7000).world.network.conditions == {}
    assert faults(stage) == [
        ("cut", "broker-1 -> broker-2, broker-2 -> broker-1", "link broker 1 <-> broker 2"),
    ]  # fmt: skip


def test_whoever_is_cut_off_is_cut_off_from_all_others(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "at: 5s, cut: {who: node 1, for: 20s}").play(6000)
    inside, outside = {"broker-1", "g-1"}, {"broker-2", "g-2", "controller"}
    cut = {pair for pair, condition in stage.world.network.conditions.items() if condition.is_cut}
    assert cut == {(a, b) for a in inside for b in outside} | {(b, a) for a in inside for b in outside}
    assert stage.play(26_000).world.network.conditions == {}


def test_whoever_comes_later_is_cut_off_too(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "at: 5s, cut: {who: brokers, for: 20s}", "at: 6s, join: {group: g}").play(24_000)
    assert stage.link("g-3", "broker-1").is_cut
    assert stage.link("broker-2", "g-3").is_cut
    assert len(stage.events(MemberAdded)) == 2
    stage.play(40_000)
    assert stage.world.network.conditions == {}
    assert len({each.client_id for each in stage.events(MemberAdded)}) == 3


def test_what_was_sent_into_a_cut_arrives_when_it_heals(tmp_path: Path) -> None:
    """Shorter than every timeout: nothing is lost, and nobody notices more than a delay."""
    stage = Stage(tmp_path, "at: 10s, cut: {who: member g/1, for: 3s}").play(12_900)
    beats = [at for at in stage.times(SessionRenewed, by="heartbeat") if 10_500 < at < 12_900]
    assert len({each.member_id for each in stage.events(SessionRenewed, since=10_500, until=12_900)}) == 1
    assert beats
    stage.play(30_000)
    assert stage.events(MemberRemoved) == []
    assert stage.world.held == []


def test_a_delay_makes_everything_later(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "at: 5s, delay: {who: member g/1, by: 200ms, jitter: 50ms, for: 10s}").play(6000)
    assert stage.link("g-1", "broker-1") == stage.link("broker-2", "g-1") == Condition(200, 50)
    travels = [stage.world.network.travel_ms("g-1", "broker-1") for _ in range(50)]
    assert min(travels) >= 201
    assert max(travels) <= 251
    stage.play(30_000)
    assert stage.events(MemberRemoved) == []
    assert stage.link("g-1", "broker-1") == FINE


def test_what_is_lost_comes_late(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "at: 5s, loss: {link: member g/1 <-> brokers, rate: 0.3, for: 10s}", produces=True)
    assert stage.play(6000).link("g-1", "broker-1") == Condition(loss=0.3)
    travels = {stage.world.network.travel_ms("g-1", "broker-1") for _ in range(200)}
    assert {1, 201, 601} <= travels
    stage.play(40_000)
    assert stage.broken_rules() == []
    assert stage.link("g-1", "broker-1") == FINE


def test_what_is_not_tcp_comes_twice_and_out_of_order(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "at: 5s, not-tcp: {link: broker 1 <-> broker 2, duplicate: 0.5, reorder: 20ms, for: 5s}")
    stage.play(6000)
    assert stage.link("broker-1", "broker-2") == Condition(duplicated=0.5, reordered_ms=20)
    assert stage.play(11_000).link("broker-1", "broker-2") == FINE


def test_a_link_within_one_host_is_none(tmp_path: Path) -> None:
    """Two roles may be one host by chance: then there is nothing to cut."""
    cut = "at: 5s, cut: {link: leader of orders/0 <-> coordinator of group g, for: 1s}"
    stage = Stage(tmp_path, cut, brokers=1)
    stage.play(5500)
    assert stage.world.network.conditions == {}
    assert faults(stage) == [("cut", "", "link leader of orders/0 <-> coordinator of group g")]


# Roles


def test_a_role_is_whoever_plays_it_at_that_instant(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "at: 10s, crash: {who: coordinator of group g}",
                  "at: 25s, crash: {who: coordinator of group g}", brokers=3)  # fmt: skip
    stage.play(40_000)
    first, second = (each.who for each in stage.events(FaultBegan))
    assert first != second
    assert stage.events(MemberRemoved, until=25_000) == []


def test_the_leader_of_a_group_changes_when_it_goes(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "at: 5s, crash: {who: leader of group g}", "at: 25s, crash: {who: leader of group g}")
    stage.play(30_000)
    assert {each.who for each in stage.events(FaultBegan)} == {"g-1", "g-2"}


def test_the_leader_of_a_partition_is_hit(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "at: 5s, pause: {who: leader of orders/3, for: 1s}").play(5500)
    leader = stage.simulation.roles.leaders["orders", 3]
    assert stage.host(f"broker-{leader}").is_paused


def test_members_and_brokers_are_hit_all_at_once(tmp_path: Path) -> None:
    stage = Stage(
        tmp_path, "at: 5s, pause: {who: members of group g, for: 1s}", "at: 8s, pause: {who: brokers, for: 1s}"
    )
    stage.play(20_000)
    assert faults(stage) == [
        ("pause", "g-1", "members of group g"), ("pause", "g-2", "members of group g"),
        ("pause", "broker-1", "brokers"), ("pause", "broker-2", "brokers"),
    ]  # fmt: skip


def test_a_role_that_nobody_plays_yet_is_tried_again(tmp_path: Path) -> None:
    """At the very beginning there is no group, so nobody leads it."""
    stage = Stage(tmp_path, "at: 0s, crash: {who: leader of group g, for: 1s}").play(10_000)
    (began,) = stage.times(FaultBegan)
    assert 0 < began < 2000
    assert began % 100 == 0


def test_a_role_that_nobody_ever_plays_is_never_hit(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "at: 0s, crash: {who: leader of group g}", members=0).play(60_000)
    assert stage.events(FaultBegan) == []


def test_a_member_that_starts_later_is_hit_when_it_is_there(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "at: 1s, pause: {who: member g/3, for: 1s}", "at: 5s, join: {group: g}").play(10_000)
    assert stage.times(FaultBegan) == [5000]


def test_targets_that_mean_nobody_are_vacant(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    roles = stage.simulation.roles
    assert roles.hosts(target("broker 2")) == ["broker-2"]
    assert roles.hosts(target("controller")) == ["controller"]
    for nobody in ("producer 1", "member g/9", "coordinator of group g", "node 9", "members of group h"):
        with pytest.raises(LookupError, match="nobody"):
            roles.hosts(target(nobody))


# The end


def test_healing_mends_everything(tmp_path: Path) -> None:
    stage = Stage(tmp_path,
                  "at: 10s, crash: {who: broker 1}", "at: 10s, crash: {who: controller}",
                  "at: 10s, crash: {who: producer 1}",
                  "at: 10s, pause: {who: member g/1, for: 1h}", "at: 11s, stop: {who: member g/3}",
                  "at: 11s, stop: {who: broker 2, for: 1h}",
                  "at: 11s, silence: {who: node 3}", "at: 11s, slow-disk: {who: broker 2, by: 50ms}",
                  "at: 11s, cut: {link: broker 1 <-> broker 2}", "at: 11s, delay: {who: member g/1, by: 10ms}",
                  "at: 11s, loss: {who: controller, rate: 0.1}",
                  "at: 11s, not-tcp: {link: broker 1 -> member g/2, duplicate: 0.1}",
                  brokers=3, members=4, until="20s", settle="30s", produces=True)  # fmt: skip
    stage.play(20_000)
    assert len(stage.simulation.broken) == len(stage.events(FaultBegan)) > 10
    stage.simulation.heal()
    assert stage.simulation.broken == {}
    assert stage.world.network.conditions == {}
    assert stage.world.held == []
    for host in stage.world.hosts.values():
        assert (host.is_up, host.is_paused, host.is_silent, host.slow_ms) == (True, False, False, 0)
    assert {each.fault for each in stage.events(FaultBegan)} == {each.fault for each in stage.events(FaultEnded)}
    assert not stage.machine("producer-1").is_started
    assert stage.now == 50_000
    owners = stage.owners()
    assert sorted(owners) == [("orders", number) for number in range(4)]
    assert all(len(who) == 1 for who in owners.values())
    processed = stage.events(RecordsProcessed)
    assert processed
