"""Simulated. A node, or ten thousand, in virtual time: the agent over the model of Linux.

Read in this order:

1. ``scenario``, ``demand``, ``curve``: what is to be run. ``scenario_file`` and its neighbours make that out of texts.
2. ``queue``: the clock. ``gauge`` and ``want``: amounts that change steadily, and the exact moment one passes a mark.
3. ``pods``, ``running``, ``memory_groups``, ``killing``: demand becomes memory in a tree of cgroups, and what happens
   when that is full. ``disks`` and ``throttling`` do the same for disk, process ids and CPU.
4. ``node_world``: all that as the world of an agent; ``statistics`` is what its kubelet sees. ``node``: when it looks.
   ``alarms`` and ``local_limits`` are why it need not look all the time.
5. ``cluster``, ``replicas``, ``control_plane``, ``scheduling``: everything that is not a node's own business.
6. ``fleet``, ``quiet``, ``trial``, ``peaks``, ``beginnings``: why ten thousand nodes on which nothing happens cost
   nothing.
7. ``run``: from a scenario to a journal. ``recording`` and ``checkers`` watch it.
8. ``blast``, ``sweep``, ``variation``: questions that take many runs.

Nothing here ticks. Between two events everything is linear, so the next event is computed: the queue holds the bends
of the curves and the moments at which sums pass limits, thresholds and watermarks.
"""
