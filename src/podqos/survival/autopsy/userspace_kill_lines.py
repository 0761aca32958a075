"""How userspace killers word their kills: systemd-oomd, earlyoom and Talos.

Each acts before memory runs out, by figures of its own, and logs one or two lines. They are recognised by the words of
these lines, wherever they are in a line. Nothing in them is trusted.

Sources: systemd v247 to v261 src/oom/oomd-{manager,util}.c, src/core/{unit,cgroup}.c; earlyoom v1.0 to v1.9
{kill,main}.c; Talos v1.12 internal/app/machined/pkg/controllers/runtime/oom.go.
"""

from __future__ import annotations

from podqos.survival.autopsy.lazy_pattern import LazyPattern

_DURATION = r"[\dhminsu. ]{1,24}?"
PRESSURE = LazyPattern(
    r"(?:Killed|Marked) (/\S{0,4000}) (?:for killing )?due to memory pressure for (/\S{0,4000}) being "
    rf"(\d{{1,3}}\.\d\d)% > (\d{{1,3}}\.\d\d)% for > ({_DURATION}) with reclaim activity"
)
USED = LazyPattern(
    r"(?:Killed|Marked) (/\S{0,4000}) (?:for killing )?due to "
    r"(?:memory used \((\d{1,19})\) / total \((\d{1,19})\) and )?"
    r"swap used \((\d{1,19})\) / total \((\d{1,19})\) being more than (\d{1,3}(?:\.\d{1,2})?)%"
)
_END = r"[\s>.…]{0,8}$"
CUT = LazyPattern(
    r"(?:Killed|Marked) (/\S{0,4000}) (?:for killing )?due to (?:memory (pressure)"
    rf"(?={_END}| for(?:{_END}| /))(?: for (/\S{{0,4000}}) )?|(?:memory|swap) used(?={_END}| \())"
)
"""A line whose end is missing, as where a pager cut it."""
CUT_SHORT = LazyPattern(r"(?<=\]: )(?:Killed|Marked) (/\S{1,4000}?)(?: [a-z ]{0,24})?" + _END)
"""The same before it says why."""
OLD_PRESSURE = LazyPattern(
    r"Memory pressure for (/\S{0,4000}) is greater than (\d{1,3}) for more than (\d{1,6}) seconds and there was reclaim"
)
OLD_SWAP = LazyPattern(r"Swap used \((\d{1,19})\) / total \((\d{1,19})\) is more than (\d{1,3})%")
NONE_KILLED = LazyPattern(r"Failed to kill any cgroup\(s\) ")
RULE = LazyPattern(
    r"Rule '([^']{1,200})' conditions met for cgroup (/[^\s,]{0,4000})(?: \(lasting ([^)]{1,40})\))?, taking action "
    r"(kill[\w-]{0,40})"
)
BY_SYSTEMD = LazyPattern(r": systemd-oomd killed (\d{1,10}|some) process\(es\) in this unit")
EARLYOOM_KILLS = (
    LazyPattern(
        r"sending (?P<signal>SIGTERM|SIGKILL) to process (?P<pid>\d{1,10}) (?:uid \d{1,10} )?\"(?P<name>.{0,64}?)\": "
        r"(?:badness|oom_score) -?\d{1,7},(?: oom_score_adj (?P<adj>-?\d{1,5}),)? VmRSS (?P<rss>\d{1,12}) MiB"
    ),
    LazyPattern(
        r"killing process (?P<pid>\d{1,10}) \"(?P<name>.{0,64}?)\" with signal (?P<signal>\d{1,2}): badness -?\d{1,7}, "
        r"VmRSS (?P<rss>\d{1,12}) MiB"
    ),
    LazyPattern(
        r"Killing process '(?P<name>.{0,64}?)' with signal (?P<signal>\d{1,2}), pid: (?P<pid>\d{1,10}), "
        r"badness: -?\d{1,7}, VmRSS: (?P<rss>\d{1,12}) MiB"
    ),
)
"""Since 1.3; before it; in 1.2."""
OLD_EARLYOOM = LazyPattern(r"Out of memory! avail: (\d{1,9}) MiB < min: (\d{1,9}) MiB")
OLD_EARLYOOM_KILL = LazyPattern(r"(?:^|[\]:] )Killing process (\d{1,10}) (.{1,64})$")
AVAILABLE = LazyPattern(
    r"mem avail: {0,8}(\d{1,9}) of {0,8}(\d{1,9}) MiB \( {0,3}[\d.]{1,6} ?%\), "
    r"swap free: {0,8}(\d{1,9}) of {0,8}(\d{1,9}) MiB"
)
LOW = LazyPattern(
    r"[Ll]ow [Mm]emory! [Aa]t or below (?:SIG(?:TERM|KILL)|sig(?:term|kill)) limits:? "
    r"\(?mem:? {1,3}(\d{1,3}(?:\.\d{1,2})?) ?%, swap:? {1,3}(\d{1,3}(?:\.\d{1,2})?) ?%"
)
ESCALATING = LazyPattern(r"escalating to SIGKILL after ")
DRY_RUN = LazyPattern(r"dryrun, not actually sending any signal")
BY_KERNEL = LazyPattern(r"successfully triggered kernel OOM killer")
TALOS = LazyPattern(
    r"Sending SIGKILL to cgroup\b.{0,400}?\"cgroup\": ?\"(/[^\"]{1,4000})\"|Sending SIGKILL to cgroup (/\S{1,4000})"
)
TALOS_VICTIMS = LazyPattern(r"victim processes:.{0,400}?\"processes\": ?(?:\[([^\]]{0,8000})\]|null)")
