"""A consumer of a classic group: Kafka's client as a machine, with the application around it.

Read `states.py` first: what is done about every answer stands on that one page. `consumer.py` is the machine. Then, in
the order of a poll: `polling.py` (the application's loop), `discovery.py` (find the coordinator), `membership.py`
(join, sync, leave), `ownership.py` (what a rebalance does to our partitions), `leading.py` (the plan), `seeking.py`
(where to read), `fetching.py` (read), `commits.py`; beside it `heartbeats.py`; below, `metadata.py`, `connections.py`.
"""
