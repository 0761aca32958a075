"""Simulated. A node, or ten thousand, in virtual time: the agent over the model of Linux.

A room uses those above it in this list (``.importlinter`` holds it). Read in this order:

1. ``engine``: ``event_queue`` is the clock; ``curve`` an amount over time; ``gauge`` a sum of them and the exact moment
   it passes a mark; ``allocation`` what a container holds of one thing.
2. ``scenario``: what is to be run, as values: nodes, workloads, ``demand``. ``scenario_format`` reads it from files.
3. ``node``: one node. ``resources`` is what it has and what runs there. ``pods``, ``running``, ``node_memory``,
   ``oom_kill``: demand becomes memory in a tree of cgroups, and what happens when that is full; ``supply``, ``disks``
   and ``throttling`` do it for disk, process ids and CPU. ``world`` is all that as the world of an agent,
   ``statistics`` what its kubelet sees, ``node`` when it looks. ``recording`` and ``checkers`` watch it.
4. ``idle``: why ten thousand nodes on which nothing happens cost nothing. ``idle_bounds`` proves it with ``peaks`` and
   a ``probe``; ``initial_state`` is how such nodes begin.
5. ``cluster``: everything above a node. ``fleet`` holds the nodes, ``control_plane`` and ``scheduling`` place pods,
   ``cluster`` lets them arrive and replaces them.
6. ``run``: from a scenario to a journal. ``blast``, ``sweep``, ``variation``, ``scaling``: questions that take many
   runs, and scenarios made from others.

Nothing here ticks. Between two events everything is linear, so the next event is computed: the queue holds the bends
of the curves and the moments at which sums pass limits, thresholds and watermarks.
"""
