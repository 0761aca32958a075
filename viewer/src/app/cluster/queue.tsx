// The kill order as a queue: equal rows, the first victim on top, its memory as a bar. With several nodes,
// the first pods of each; a node on its own shows all of its pods. Only the rows that are seen are rendered.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { about, ordinal } from "../../format";
import type { PodBlock } from "../../schema";
import { useLater } from "../frames";
import { href } from "../router";
import { Swatch } from "../swatch";
import { kept, NONE } from "../ui";
import { useWidth, useWindow } from "../windowed";
import { keyOf, placeOf, type Fits, type Match, type Order, type Panel } from "./model";
import { at, COLUMNS, MoreLine, NodeLine, type Stand } from "./nodeLines";
import { PodBar } from "./podBar";
import "./queue.css";

/** How many pods of each node are shown where there are several nodes. */
const FIRST = 5;
/** If the rows would be narrower than this, they have two lines. */
const NARROW = 760;
const HEIGHTS = { wide: { pod: 34, node: 52, more: 34 }, narrow: { pod: 68, node: 88, more: 40 } } as const;

/** The shown pods of a node, and where their lines begin. */
interface Segment {
  panel: Panel;
  pods: readonly PodBlock[];
  /** How many pods are not shown. */
  more: number;
  hasHead: boolean;
  first: number;
  reach: number;
}

interface Laid {
  segments: readonly Segment[];
  tops: Float64Array;
}

interface QueueProps {
  matches: readonly Match[];
  order: Order;
  fits: Fits;
}

export const Queue = kept(function Queue({ matches, order, fits }: QueueProps) {
  const [place, width] = useWidth("queue");
  const isNarrow = width < NARROW;
  const laid = useLater(useMemo(() => lay(matches, order, fits, isNarrow), [matches, order, fits, isNarrow]));
  const { segments, tops } = laid;
  const window = useWindow(tops);
  const [current, setCurrent] = useState(0);
  const moved = useRef(false);
  const last = tops.length - 2;
  const here = Math.max(0, Math.min(current, last));
  useLayoutEffect(() => {
    if (!moved.current) return;
    window.reveal(here);
    const link = window.ref.current?.querySelector<HTMLElement>(`[data-line="${here}"]`);
    if (link) {
      moved.current = false;
      link.focus({ preventScroll: true });
    }
  });
  const press = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor(innerHeight / 80));
    const steps: Record<string, number> = {
      ArrowUp: here - 1, ArrowDown: here + 1, PageUp: here - page, PageDown: here + page, Home: 0, End: last,
    };
    const to = steps[event.key];
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    moved.current = true;
    setCurrent(Math.max(0, Math.min(last, to)));
  };
  const focused = (event: FocusEvent) => {
    const line = (event.target as HTMLElement).dataset["line"];
    if (line !== undefined) setCurrent(Number(line));
  };
  const stop = here >= window.from && here < window.to ? here : window.from;
  const lines = [];
  for (let number = window.from; number < window.to; number++) {
    const at = segments[segmentOf(segments, number)];
    if (at === undefined) continue;
    const stand = { number, top: window.top(number), isHere: number === stop };
    const index = number - at.first - (at.hasHead ? 1 : 0);
    const pod = at.pods[index];
    if (index < 0) lines.push(<NodeLine key={`node ${at.panel.title}`} panel={at.panel} {...stand} />);
    else if (pod === undefined) {
      lines.push(<MoreLine key={`more ${at.panel.title}`} panel={at.panel} more={at.more} {...stand} />);
    } else {
      const { isMeasured } = at.panel.node;
      const key = `${at.panel.title} ${pod.namespace}/${pod.name}`;
      lines.push(
        <PodLine key={key} pod={pod} order={order} reach={at.reach} isMeasured={isMeasured} {...stand} />,
      );
    }
  }
  const [left, right] = order === "kubelet" ? ["Evicted", "OOM-killed"] : ["OOM-killed", "Evicted"];
  return (
    <div ref={place} class={`queue ${isNarrow ? "narrow" : ""}`}>
      <Legend segments={segments} />
      <div role="table" aria-label={NAMES[order]} aria-rowcount={tops.length} aria-colcount={COLUMNS}>
        <div role="rowgroup">
          <div role="row" class="queue-line queue-head" aria-rowindex={1}>
            <div role="columnheader" class="place">{left}</div>
            <div role="columnheader" class="other">{right}</div>
            <div role="columnheader">Pod</div>
            <div role="columnheader" class="class">Class</div>
            <div aria-hidden="true" class="memory">Memory</div>
            <div role="columnheader" class="number">Used</div>
            <div role="columnheader" class="number">Request</div>
            <div role="columnheader" class="number">Limit</div>
          </div>
        </div>
        <div
          role="rowgroup"
          class="queue-lines"
          ref={window.ref}
          style={{ height: `${window.height}px` }}
          onKeyDown={press}
          onFocusIn={focused}
        >
          {width === 0 ? null : lines}
        </div>
      </div>
    </div>
  );
});

const NAMES: Readonly<Record<Order, string>> = { kubelet: "Eviction order", kernel: "OOM kill order" };

/** What the parts of a bar mean; only those that are there. */
function Legend({ segments }: { segments: readonly Segment[] }) {
  const pods = segments.flatMap((each) => each.pods.slice(0, 200));
  const has = (which: (pod: PodBlock) => boolean) => pods.some(which);
  const isMeasured = segments.some(({ panel }) => panel.node.isMeasured);
  const isAssumed = segments.some(({ panel }) => !panel.node.isMeasured);
  const isCached = has((pod) => pod.activeCacheBytes + pod.inactiveCacheBytes > 0);
  return (
    <p class="legend queue-legend" aria-hidden="true">
      {isMeasured ? <span class="key-used">used</span> : null}
      {isAssumed ? <span class="key-assumed">used (assumed)</span> : null}
      {isCached ? <span class="key-cache">page cache</span> : null}
      <span class="key-request">request</span>
      {has((pod) => pod.limitBytes !== null) ? <span class="key-limit">limit</span> : null}
      {has((pod) => pod.limitBytes === null) ? <span class="key-unlimited">no limit</span> : null}
    </p>
  );
}

function lay(matches: readonly Match[], order: Order, fits: Fits, isNarrow: boolean): Laid {
  const heights = HEIGHTS[isNarrow ? "narrow" : "wide"];
  const isOne = matches.length === 1;
  const segments: Segment[] = [];
  let lines = 0;
  for (const { panel } of matches) {
    const all = panel.by(order);
    const pods = fits === null ? all : all.filter(fits);
    const shown = isOne ? pods : pods.slice(0, FIRST);
    const more = pods.length - shown.length;
    segments.push({ panel, pods: shown, more, hasHead: !isOne, first: lines, reach: reachOf(panel) });
    lines += (isOne ? 0 : 1) + shown.length + (more > 0 ? 1 : 0);
  }
  const tops = new Float64Array(lines + 1);
  let line = 0;
  const add = (height: number) => {
    tops[line + 1] = (tops[line] as number) + height;
    line++;
  };
  for (const { pods, more, hasHead } of segments) {
    if (hasHead) add(heights.node);
    for (let index = 0; index < pods.length; index++) add(heights.pod);
    if (more > 0) add(heights.more);
  }
  return { segments, tops };
}

function segmentOf(segments: readonly Segment[], line: number): number {
  let [low, high] = [0, segments.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((segments[middle] as Segment).first <= line) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

const reaches = new WeakMap<readonly PodBlock[], number>();

/** The memory that a whole bar stands for, the same for all pods of a node. Limits may lie beyond it. */
function reachOf({ pods }: Panel): number {
  let reach = reaches.get(pods);
  if (reach === undefined) {
    reach = 0;
    for (const { usedBytes, inactiveCacheBytes, requestedBytes } of pods) {
      reach = Math.max(reach, (usedBytes ?? 0) + inactiveCacheBytes, requestedBytes);
    }
    // A limit that is not much larger is within the bar, too.
    const most = reach === 0 ? Infinity : reach * 2.5;
    for (const { limitBytes } of pods) {
      if (limitBytes !== null && limitBytes <= most) reach = Math.max(reach, limitBytes);
    }
    reaches.set(pods, (reach = Math.max(1, reach * 1.05)));
  }
  return reach;
}

interface PodLineProps extends Stand {
  pod: PodBlock;
  order: Order;
  reach: number;
  isMeasured: boolean;
}

const PodLine = kept(function PodLine({ pod, order, reach, isMeasured, number, top, isHere }: PodLineProps) {
  const places = [placeWords(pod, "kubelet"), placeWords(pod, "kernel")];
  const [own = NONE, other = NONE] = order === "kubelet" ? places : places.toReversed();
  const isFirst = placeOf(pod, order) === 1 && own !== SPARED;
  const used = pod.usedBytes === null ? NONE : about(pod.usedBytes);
  return (
    <div
      role="row"
      class={`queue-line queue-pod ${isFirst ? "first" : ""}`}
      aria-rowindex={number + 2}
      style={at(top)}
    >
      <div role="cell" class="place">{own}</div>
      <div role="cell" class="other" title={pod.spared ?? undefined}>
        <span class="label">{order === "kubelet" ? "OOM-killed " : "evicted "}</span>
        {other}
      </div>
      <div role="rowheader" class="who">
        <Swatch pod={keyOf(pod)} qosClass={pod.qosClass} />
        <Name pod={pod} number={number} isHere={isHere} />
      </div>
      <div role="cell" class="class">
        <span class={`chip ${pod.qosClass}`}>{pod.qosClass}</span>
      </div>
      <PodBar pod={pod} reach={reach} isMeasured={isMeasured} />
      <div role="cell" class="number used">
        {used}
        {isMeasured || pod.usedBytes === null ? null : <span class="unseen"> (assumed)</span>}
      </div>
      <div role="cell" class="number request">
        <span class="label">{pod.requestedBytes > 0 ? " of " : ", request "}</span>
        {pod.requestedBytes > 0 ? about(pod.requestedBytes) : "none"}
      </div>
      <div role="cell" class="number limit">
        <span class="label">, limit </span>
        {pod.limitBytes === null ? "none" : about(pod.limitBytes)}
      </div>
    </div>
  );
});

const SPARED = "never";

function placeWords(pod: PodBlock, order: Order): string {
  if (order === "kubelet" && pod.spared) return SPARED;
  const place = placeOf(pod, order);
  return place === null ? NONE : ordinal(place);
}

/** How many letters at the end of a name are always shown: they tell replicas apart. */
const END = 8;

/** A name that is cut in the middle where it does not fit. */
function Name({ pod, number, isHere }: { pod: PodBlock; number: number; isHere: boolean }) {
  const key = keyOf(pod);
  const cut = Math.max(0, key.length - END);
  return (
    <a
      class="name"
      href={href("pod", [pod.namespace, pod.name])}
      title={key}
      aria-label={key}
      data-line={number}
      tabIndex={isHere ? 0 : -1}
    >
      <span class="begin">{key.slice(0, cut)}</span>
      <span class="end">{key.slice(cut)}</span>
    </a>
  );
}
