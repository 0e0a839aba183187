"""A cluster in the simulator: a controller, and brokers with a coordinator beside each. Names are what addresses are.

A broker and its coordinator are one host, so they live, stop and die together; what is on its disk outlives them.
"""

from functools import partial
from random import Random

from cluster.broker import broker, controller
from cluster.broker.broker import Broker
from cluster.broker.controller import Controller
from cluster.broker.storage import MemoryDisk
from cluster.config import BrokerConfig, ControllerConfig
from cluster.coordinator.coordinator import GroupCoordinator
from cluster.sim.world import World

CONTROLLER = "controller"


def deploy(world: World, brokers: int, config: BrokerConfig, controller_config: ControllerConfig,
           nodes: int | None = None) -> None:
    """Put them into the world and let them begin, spread over the nodes. They are ready when all have heard of all."""
    disk = MemoryDisk()
    world.add(CONTROLLER, partial(_controller, controller_config, disk), disk=disk, opening=(controller.START,))
    world.begin(CONTROLLER)
    for number in range(1, brokers + 1):
        host = f"broker-{number}"
        disk = MemoryDisk()
        world.add(host, partial(_broker, number, config, disk), host, node_of(number, nodes or brokers), disk,
                  (broker.START,))
        world.add(f"coordinator-{number}", partial(_coordinator, number, config, world.seed), host)
        world.begin(host)


def node_of(number: int, nodes: int) -> str:
    return f"node-{(number - 1) % nodes + 1}"


def is_ready(world: World) -> bool:
    """Does every broker know that all of them are alive?"""
    machines = [process.machine for process in world.processes.values() if isinstance(process.machine, Broker)]
    return all(len(machine.image.active_brokers()) == len(machines) for machine in machines)


def _controller(config: ControllerConfig, disk: MemoryDisk, incarnation: int) -> Controller:
    return Controller(CONTROLLER, config, disk, incarnation)


def _broker(number: int, config: BrokerConfig, disk: MemoryDisk, incarnation: int) -> Broker:
    return Broker(f"broker-{number}", f"coordinator-{number}", number, config, disk, CONTROLLER, incarnation)


def _coordinator(number: int, config: BrokerConfig, seed: int, incarnation: int) -> GroupCoordinator:
    name = f"coordinator-{number}"
    rng = Random(f"{seed}/{name}/{incarnation}")
    return GroupCoordinator(name, f"broker-{number}", number, config, rng, incarnation)
