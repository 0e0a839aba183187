"""The protocol, and nothing else: no clock, socket, thread, environment or logging in here.

Everything that takes part is a *machine* (`machine.py`): an input and the time go in, a list of effects comes out.
Read `coordinator/states.py` first: the whole life of a consumer group is that one page. Then `machine.py` (the
contract), `wire/` (what is said), `coordinator/`, `broker/`, `consumer/`, `producer.py` (who says it), `assignors/`
(who gets what), `checks/` (what must hold), `faults.py` (what can break), `sim/` (virtual time).
"""
