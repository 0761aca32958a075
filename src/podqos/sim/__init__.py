"""Simulated. A node, or ten thousand, in virtual time: the agent on top of the Linux model.

Each package may use those above it in this list (``.importlinter`` enforces it). Read in this order:

1. ``engine``: ``event_queue`` is the clock; ``curve`` an amount over time; ``gauge`` a sum that knows exactly when it
   crosses a mark; ``allocation`` what a container holds of one resource; ``checkpoint`` a moment to return to.
2. ``scenario``: what to run, as values: nodes, workloads, ``demand``. ``scenario_format`` reads it from files.
3. ``node``: one node. ``resources`` holds its state. ``pods``, ``running``, ``node_memory`` and ``oom_kill`` turn
   demand into memory in a cgroup tree and handle running out of it; ``supply``, ``disks`` and ``throttling`` do the
   same for disk, process ids and CPU. ``world`` carries out the agent's commands, ``statistics`` is what its kubelet
   sees, ``node`` decides when it looks. ``checkers`` observe it; ``resting`` is why most bends need not be followed.
4. ``cluster``: everything above a node. ``fleet`` holds the nodes, ``control_plane`` the pods, ``scheduling`` places
   them; ``controllers``, ``rollouts`` and ``jobs`` create and replace them; ``cluster`` puts all of it together.
5. ``record``: how nodes looked at their moments, for words and pictures. ``hindsight`` is what would have saved a pod.
6. ``run``: from a scenario to a journal. ``blast``, ``sweep``, ``variation`` and ``scaling`` answer questions that take
   many runs, or derive one scenario from another.

There is no tick. Between two events everything is linear, so the next event is computed: the queue holds the bends of
the curves and the moments at which sums cross limits, thresholds and watermarks.
"""
