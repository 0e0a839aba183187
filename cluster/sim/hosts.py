"""What can be done to hosts: pause and wake, crash and restart, slow disks, silent nodes, links cut and mended."""

from cluster.events import ProcessDied, ProcessStarted
from cluster.machine import Disconnected, TimerFired
from cluster.sim.network import FINE, Condition, Connection
from cluster.sim.world import MESSAGE, Host, Process, World


def pause(world: World, name: str) -> None:
    """A GC pause: nothing happens in it; what arrives waits, timers do not fire, connections stay open."""
    world.hosts[name].is_paused = True
    world.disturbed.add(name)


def wake(world: World, name: str) -> None:
    """What had arrived is handled first, then the timers that came due: whoever was beaten in time is not late."""
    host = world.hosts[name]
    if not host.is_paused:
        return
    host.is_paused = False
    backlog, host.backlog = host.backlog, []
    for process, event, connection, number in backlog:
        if isinstance(event, TimerFired):
            world.requeue_timer(process, event, number)
        else:
            world.enqueue(world.now, MESSAGE, process, event, connection)


def crash(world: World, name: str) -> None:
    """Its processes die at once. What they had sent still arrives; then their peers find the connection closed."""
    host = world.hosts[name]
    for process in host.processes:
        _die(world, process)
        for connection in process.peers.values():
            _close_after_death(world, process, connection)
        process.peers.clear()
    _down(host)


def silence(world: World, node: str) -> None:
    """A whole node dies: nobody is told. Whoever writes to it waits, until it gives up by itself."""
    for host in world.hosts.values():
        if host.node == node and host.is_up:
            silence_host(world, host.name)


def silence_host(world: World, name: str) -> None:
    host = world.hosts[name]
    for process in host.processes:
        _die(world, process)
    _down(host)
    host.is_silent = True


def restart(world: World, name: str) -> None:
    """New processes under the old names, with the disk that the old ones left."""
    host = world.hosts[name]
    assert not host.is_up, f"{name} is up"
    host.is_up, host.is_silent = True, False
    for old in list(host.processes):
        assert old.birth is not None, f"{old.name} cannot be born again"
        world.replace(old, old.birth(old.incarnation + 1))
        world.emit(ProcessStarted(old.name, old.incarnation + 1))
    world.begin(name)


def set_link(world: World, source: str, target: str, condition: Condition) -> None:
    """Change one direction of a link between hosts. What waited for a cut to heal goes on its way."""
    world.network.set(source, target, condition)
    if condition.is_cut:
        return
    waiting, world.held = world.held, []
    for sender, receiver, event, connection in waiting:
        if {sender.host.name, receiver.host.name} == {source, target}:
            world.deliver(sender, receiver, event, connection)
        else:
            world.held.append((sender, receiver, event, connection))


def cut(world: World, source: str, target: str, *, both: bool = True) -> None:
    for a, b in ((source, target), (target, source))[: 2 if both else 1]:
        set_link(world, a, b, Condition(is_cut=True))


def mend(world: World, source: str, target: str) -> None:
    for a, b in ((source, target), (target, source)):
        set_link(world, a, b, FINE)


def slow_disk(world: World, name: str, ms: int) -> None:
    world.hosts[name].slow_ms = ms
    world.disturbed.add(name)                  # until nothing is slow any more: what was written may still take time


def _die(world: World, process: Process) -> None:
    process.is_alive = False
    process.timers.clear()
    world.emit(ProcessDied(process.name, process.incarnation))


def _down(host: Host) -> None:
    host.is_up = host.is_paused = False
    host.backlog.clear()
    host.busy_until = 0


def _close_after_death(world: World, process: Process, connection: Connection) -> None:
    at = 1 if connection.ends[0] is process else 0
    other: Process = connection.ends[at]
    if other.peers.get(process.name) is not connection:
        return
    del other.peers[process.name]
    due = max(connection.second_free if at else connection.first_free, world.now + world.network.latency_ms)
    if world.network.condition(process.host.name, other.host.name).is_cut:
        world.held.append((process, other, Disconnected(process.name), None))
    else:
        world.enqueue(due, MESSAGE, other, Disconnected(process.name))
