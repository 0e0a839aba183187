"""The protocol, and nothing else: no clock, socket, thread, environment or logging in here.

Everything that takes part is a *machine* (`machine.py`): an input and the time go in, a list of effects comes out.
Read `coordinator/states.py` first: the whole life of a consumer group is that one page. Then `machine.py` (the
contract), `wire/` (what is said), `coordinator/` and `broker/` (who says it), `sim/` (virtual time).
"""
