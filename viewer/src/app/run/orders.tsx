// Both kill orders at the cursor, side by side; lines join a pod's two places.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { bytes, count, plural, signed, time } from "../../format";
import { nameOf } from "../../run";
import type { EvictionRank, KernelRank, OrdersView } from "../../schema";
import { crossings, firstOfPods, ordersAt } from "./ranks";
import { useLooking, type State } from "./state";

const MOST = 12;
/** The width of the lines between the two orders. */
const BRIDGE = 46;

export function Orders({ state }: { state: State }) {
  const { node, timeUs, kill, pod } = useLooking(state, "node", "timeUs", "kill", "pod");
  const orders = ordersAt(node.orders, timeUs, kill?.timeUs === timeUs);
  return (
    <div aria-live="polite" class={pod === null ? "" : "focused"}>
      {orders === null ? (
        <p class="quiet">No kill orders were recorded for this node.</p>
      ) : (
        <Both state={state} orders={orders} focus={pod} />
      )}
    </div>
  );
}

interface Line {
  pod: number;
  path: string;
}

interface Bridge {
  height: number;
  lines: readonly Line[];
}

function Both({ state, orders, focus }: { state: State; orders: OrdersView; focus: number | null }) {
  const kernel = firstOfPods(orders.kernel);
  const rows = Math.min(MOST, orders.kubelet.length);
  const headroom = orders.kernelLeftBytes > 0 ? bytes(orders.kernelLeftBytes) : "no";
  const place = useRef<HTMLDivElement>(null);
  const bridge = useBridge(place);
  const row = (rank: Ranked, index: number) => (
    <Rank key={index} state={state} rank={rank} place={index + 1} isFocused={rank.pod === focus} />
  );
  return (
    <>
      <p class="moment">
        <strong class="when">{time(orders.timeUs)}</strong>
        {` · ${bytes(orders.availableBytes)} available · ${headroom} headroom before an OOM kill`}
      </p>
      <div class="orders" ref={place}>
        <h3 class="kubelet">kubelet evicts</h3>
        <span />
        <h3 class="kernel">kernel kills</h3>
        <ol class="order" aria-label="The order in which the kubelet would evict">
          {orders.kubelet.slice(0, rows).map(evicted).map(row)}
        </ol>
        <svg class="bridge" width={BRIDGE} height={bridge.height} aria-hidden="true">
          {bridge.lines.map(({ pod, path }) => (
            <path
              key={pod}
              class={pod === focus ? "focus" : ""}
              data-pod={pod}
              d={path}
              stroke={state.run.pods[pod]?.colour ?? "gray"}
            />
          ))}
        </svg>
        <ol class="order" aria-label="The order in which the kernel would kill">
          {kernel.slice(0, rows).map(killed).map(row)}
        </ol>
      </div>
      <p class="quiet">{verdict(orders, kernel, orders.kubelet.length - rows)}</p>
    </>
  );
}

function verdict(orders: OrdersView, kernel: readonly KernelRank[], more: number): string {
  const { kubelet, reversedPairs } = orders;
  const agree = reversedPairs === 0;
  const disagree = "The orders disagree: a pod evicted late can be OOM-killed early";
  const words = agree ? "Both orders agree" : disagree;
  const hasTies = crossings(kubelet, kernel) > reversedPairs;
  const end = hasTies ? `. ${agree ? "Lines that cross" : "Other crossing lines"} are ties.` : ".";
  return `${words}${end}${more > 0 ? ` ${plural(more, "more pod")} not shown.` : ""}`;
}

interface Ranked {
  pod: number;
  figures: string;
  more: string;
  reason: string;
}

function evicted(rank: EvictionRank): Ranked {
  const usage = rank.usage === null ? "no statistics" : bytes(rank.usage);
  const hasRequest = rank.request > 0;
  const requested = hasRequest ? `${usage} of ${bytes(rank.request)}` : `${usage}, no request`;
  const over = rank.overRequest && hasRequest ? " (over)" : "";
  const figures = rank.spared === null ? `${requested}${over}` : `never: ${rank.spared}`;
  return { pod: rank.pod, figures, more: `priority ${count(rank.priority)}`, reason: rank.reason };
}

function killed(rank: KernelRank): Ranked {
  const more = `${bytes(rank.usedBytes)}, adj ${signed(rank.oomScoreAdj)}`;
  return { pod: rank.pod, figures: `badness ${bytes(rank.badnessBytes)}`, more, reason: rank.reason };
}

function Rank(props: { state: State; rank: Ranked; place: number; isFocused: boolean }) {
  const { state, rank, place, isFocused } = props;
  const pod = state.run.pods[rank.pod];
  const reason = rank.reason ? `: before the next one: ${rank.reason}` : "";
  return (
    <li
      class={`rank ${pod?.qosClass ?? ""}${isFocused ? " focus" : ""}`}
      data-pod={rank.pod}
      title={`${pod?.key ?? "?"} (${pod?.qosClass ?? "?"})${reason}`}
      style={{ "--colour": pod?.colour ?? "gray" }}
      onPointerEnter={() => state.change({ pod: rank.pod })}
      onPointerLeave={() => state.change({ pod: null })}
    >
      <b>{String(place)}</b>
      <span class="who">{nameOf(state.run, pod?.key ?? "?")}</span>
      <span class="figures">{rank.figures}</span>
      <span class="figures">{rank.more}</span>
    </li>
  );
}

/** The lines that join each pod's two places; rows are as high as their names need, so they are measured. */
function useBridge(place: { current: HTMLDivElement | null }): Bridge {
  const [bridge, setBridge] = useState<Bridge>({ height: 0, lines: [] });
  const measure = () => {
    const orders = [...(place.current?.querySelectorAll<HTMLElement>(".order") ?? [])];
    const [kubelet = [], kernel = []] = orders.map((order) => {
      const top = order.offsetTop;
      return ([...order.children] as HTMLElement[]).map((row) => {
        const height = row.offsetHeight;
        return { pod: Number(row.dataset["pod"]), middle: row.offsetTop - top + height / 2, height };
      });
    });
    const places = new Map(kernel.map((row) => [row.pod, row.middle]));
    const lines = kubelet.flatMap(({ pod, middle }) => {
      const other = places.get(pod);
      if (other === undefined) return [];
      const half = BRIDGE / 2;
      return [{ pod, path: `M0 ${middle}C${half} ${middle} ${half} ${other} ${BRIDGE} ${other}` }];
    });
    const height = Math.max(0, ...[...kubelet, ...kernel].map((row) => row.middle + row.height / 2));
    setBridge((was) => (isSame(was, { height, lines }) ? was : { height, lines }));
  };
  useLayoutEffect(measure);
  useLayoutEffect(() => {
    if (place.current === null) return;
    const observer = new ResizeObserver(measure);
    observer.observe(place.current);
    return () => observer.disconnect();
  }, []);
  return bridge;
}

function isSame(one: Bridge, other: Bridge): boolean {
  if (one.height !== other.height || one.lines.length !== other.lines.length) return false;
  return one.lines.every(({ pod, path }, index) => {
    const line = other.lines[index];
    return pod === line?.pod && path === line.path;
  });
}
