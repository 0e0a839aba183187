"""A broker among its peers: what it does when the controller refuses it, forgets it, or answers too late."""

from cluster.broker.citizen import HEARTBEAT, METADATA, PATIENCE, REGISTER, RETRY_MS, Citizen
from cluster.broker.image import Change
from cluster.config import BrokerConfig
from cluster.machine import CancelTimer, SetTimer
from cluster.outbox import Outbox
from cluster.wire import control
from cluster.wire.errors import Error
from cluster.wire.fields import Message
from cluster.wire.log import FetchRequest


class Desk:
    """What a citizen asks of its controller, and the timers that it sets, from one step to the next."""

    def __init__(self) -> None:
        self.out = Outbox()
        self.asked: list[Message] = []
        self.news: list[Change] = []
        self.citizen = Citizen(1, BrokerConfig(), self.out, self._ask, 0, self.news.extend)
        self.at(0)

    def _ask(self, body: Message) -> int:
        self.asked.append(body)
        return len(self.asked)

    def at(self, now: int) -> Citizen:
        self.effects = self.out.begin(now)
        return self.citizen

    def timers(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for effect in self.effects:
            if isinstance(effect, SetTimer):
                found[effect.name] = effect.due
            elif isinstance(effect, CancelTimer):
                found.pop(effect.name, None)
        return found

    def kinds(self) -> list[type]:
        return [type(each) for each in self.asked]


def settled() -> Desk:
    """Registered, with a heartbeat and a fetch under way."""
    desk = Desk()
    desk.citizen.start()
    desk.at(1).registered(control.BrokerRegistrationResponse(Error.NONE, 7))
    return desk


def test_it_registers_then_beats_and_follows() -> None:
    desk = settled()
    assert desk.kinds() == [control.BrokerRegistrationRequest, control.BrokerHeartbeatRequest, FetchRequest]
    assert (desk.citizen.beating, desk.citizen.fetching) == (2, 3)


def test_a_refused_registration_is_tried_again_soon() -> None:
    desk = Desk()
    desk.citizen.start()
    desk.at(50).registered(control.BrokerRegistrationResponse(Error.DUPLICATE_BROKER_REGISTRATION))
    assert desk.timers() == {REGISTER: 50 + RETRY_MS}
    assert desk.citizen.broker_epoch == -1
    desk.at(150).fired(REGISTER)
    assert desk.kinds() == [control.BrokerRegistrationRequest] * 2
    assert PATIENCE in desk.timers()


def test_a_broker_that_the_controller_does_not_know_registers_anew() -> None:
    desk = settled()
    desk.at(100).beaten(2, control.BrokerHeartbeatResponse(Error.STALE_BROKER_EPOCH))
    assert desk.citizen.broker_epoch == -1
    assert desk.timers() == {REGISTER: 100 + RETRY_MS}
    desk.at(150).fired(HEARTBEAT)
    assert len(desk.asked) == 3, "without an epoch there is nothing to beat for"
    desk.at(200).fired(REGISTER)
    desk.at(201).registered(control.BrokerRegistrationResponse(Error.NONE, 9))
    assert desk.asked[-1] == control.BrokerHeartbeatRequest(1, 9, 0, False)
    assert desk.citizen.fetching == 3, "it goes on following where it was"


def test_an_answer_to_an_old_question_does_not_count() -> None:
    desk = settled()
    desk.at(100).disconnected()
    assert desk.timers() == {HEARTBEAT: 100 + RETRY_MS, METADATA: 100 + RETRY_MS}
    desk.at(101).beaten(2, control.BrokerHeartbeatResponse(Error.NONE, True, False, True))
    assert (desk.citizen.is_fenced, desk.citizen.may_stop) == (True, False)
    assert desk.effects == []


def test_a_controller_that_is_lost_before_it_has_answered_is_asked_again() -> None:
    desk = Desk()
    desk.citizen.start()
    desk.at(30).disconnected()
    assert desk.timers() == {REGISTER: 30 + RETRY_MS}


def test_a_broker_that_wants_to_stop_says_so_and_asks_often() -> None:
    desk = settled()
    desk.at(60).beaten(2, control.BrokerHeartbeatResponse(Error.NONE, True, False))
    assert desk.timers() == {HEARTBEAT: 60 + BrokerConfig().broker_heartbeat_interval_ms}
    desk.at(70).stop()
    assert desk.asked[-1] == control.BrokerHeartbeatRequest(1, 7, 0, True)
    desk.at(71).beaten(len(desk.asked), control.BrokerHeartbeatResponse(Error.NONE, True, False, False))
    assert desk.timers() == {HEARTBEAT: 71 + RETRY_MS}
    assert not desk.citizen.may_stop
