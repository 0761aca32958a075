// Nodes as panels: figures above, pods as blocks below. Blocks are drawn on a canvas; a link lies over the
// one that the keyboard is at, so that it is reached, read and opened like any other link.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { about, bytes, cores, count, ordinal, plural } from "../../format";
import type { NodePanel, PodBlock } from "../../schema";
import { useTurns } from "../frames";
import { leftOn } from "../headroom";
import { change, go, href } from "../router";
import { Card, Facts, kept, NONE, stated } from "../ui";
import { even, useWidth, useWindow } from "../windowed";
import { at, beyond, boxOf, layout } from "./layout";
import {
  keyOf,
  maskOf,
  sizeOf,
  unlimitedOf,
  WAITING,
  type Fits,
  type Match,
  type Order,
  type Panel,
  type Size,
} from "./model";
import { drawSoon, pictureOf } from "./pictures";
import { PodCount } from "./podCount";

const NARROWEST = 360;
const GAP = 16;
const HEIGHT = 352;
const BLOCKS = 168;
const PROBLEM = 48;

export const Panels = kept(function Panels({
  matches,
  order,
  fits,
  size,
}: {
  matches: readonly Match[];
  order: Order;
  fits: Fits;
  size: Size;
}) {
  const [place, width] = useWidth("panels");
  const look = useLook();
  const columns = Math.max(1, Math.min(matches.length, Math.floor((width + GAP) / (NARROWEST + GAP))));
  const isLarge = matches.length === 1;
  const across = (width - GAP * (columns - 1)) / columns;
  const rows = Math.ceil(matches.length / columns);
  const blocks = isLarge ? Math.min(620, Math.max(320, across * 0.42)) : BLOCKS;
  const row = HEIGHT - BLOCKS + blocks + GAP;
  const window = useWindow(useMemo(() => even(rows, row), [rows, row]));
  const shown = matches.slice(window.from * columns, window.to * columns);
  return (
    <div ref={place} class="wide">
      <div ref={window.ref} class="panels" style={{ height: `${window.height - GAP}px` }}>
        {width === 0
          ? null
          : shown.map(({ panel }, index) => {
              const number = window.from * columns + index;
              const pods = panel.by(order);
              return (
                <NodeCard
                  key={panel.title}
                  node={panel.node}
                  title={panel.title}
                  pods={pods.length}
                  unlimited={unlimitedOf(panel)}
                  left={(number % columns) * (across + GAP)}
                  top={window.top(Math.floor(number / columns))}
                  width={across}
                  height={row - GAP}
                >
                  <Blocks
                    pods={pods}
                    order={order}
                    mask={maskOf(pods, fits)}
                    size={size}
                    look={look}
                    width={across - 34}
                    height={panel.node.problem ? blocks - PROBLEM : blocks}
                  />
                </NodeCard>
              );
            })}
      </div>
    </div>
  );
});

function NodeCard({
  left,
  top,
  width,
  height,
  children,
  ...head
}: HeadProps & { left: number; top: number; width: number; height: number; children: ComponentChildren }) {
  const turns = useTurns(3);
  return (
    <section
      class="card panel"
      style={{ left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` }}
      aria-label={`${head.title}: ${plural(head.pods, "pod")}`}
    >
      {turns > 1 ? <Head {...head} /> : null}
      {turns > 2 ? children : null}
    </section>
  );
}

interface HeadProps {
  node: NodePanel;
  title: string;
  pods: number;
  /** How many of them have no memory limit. */
  unlimited: number;
}

const Head = kept(function Head({ node, title, pods, unlimited }: HeadProps) {
  const isRanked = title !== WAITING;
  const waiting =
    pods === 1
      ? "It is not on a node, so it is not ranked."
      : "They are not on a node, so they are not ranked.";
  return (
    <>
      <HeadLine node={node} title={title} pods={pods} />
      {isRanked ? <Figures node={node} unlimited={unlimited} /> : <p class="quiet figures-room">{waiting}</p>}
      {node.problem ? (
        <p class="problem" title={stated(node.problem)}>
          {stated(node.problem)}
        </p>
      ) : null}
    </>
  );
});

/** The name of a node, how many pods it runs, and what is wrong with it. */
export function HeadLine({ node, title, pods }: { node: NodePanel; title: string; pods: number }) {
  const isLinked = title !== WAITING && node.name !== "";
  const address = href("cluster", [], { node: node.name });
  return (
    <div class="panel-head">
      <h2 title={title}>
        {isLinked ? (
          <a href={address} onClick={(event) => openNode(event, node.name)}>
            {title}
          </a>
        ) : (
          title
        )}
      </h2>
      <p class="quiet">
        <PodCount node={node} pods={pods} />
        {node.conditions.length > 0 ? (
          <span class="condition-chip" title={node.conditions.join(", ")}>
            ⚠ {node.conditions.join(", ")}
          </span>
        ) : null}
      </p>
    </div>
  );
}

/** Keep the filters when a node is opened. */
export function openNode(event: MouseEvent, node: string): void {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  change({ node });
}

function share(part: number, whole: number): string {
  return whole > 0 ? ` ${Math.round((part / whole) * 100)} %` : "";
}

/** The headroom before eviction or, if that comes first, before an OOM kill; named by its limiting factor. */
function headroomOf(node: NodePanel): { left: number | null; name: string } {
  const left = leftOn(node);
  return {
    left: left?.bytes ?? null,
    name: left?.by === "kernel" ? "OOM headroom" : `headroom${left?.signal ?? ""}`,
  };
}

function Figures({ node, unlimited }: { node: NodePanel; unlimited: number }) {
  const { memory, cpu } = node;
  const reach = Math.max(memory.allocatable, node.memoryBytes, node.usedBytes ?? 0, memory.requests, 1);
  const at = (value: number) => `${(value / reach) * 100}%`;
  const { left, name } = headroomOf(node);
  return (
    <>
      <div class="meter" aria-hidden="true">
        <i class="meter-allocatable" style={{ width: at(memory.allocatable) }} />
        {node.usedBytes === null ? null : (
          <i
            class={`meter-used ${left !== null && left < 0 ? "over" : ""}`}
            style={{ width: at(node.usedBytes) }}
          />
        )}
        <i class="meter-requested" style={{ left: at(memory.requests) }} />
        {node.headroom && node.usedBytes !== null ? (
          <i
            class="meter-threshold"
            style={{ left: at(Math.max(0, node.usedBytes + node.headroom.headroomBytes)) }}
          />
        ) : null}
      </div>
      <dl class="figures-grid">
        <Figure name="allocatable" value={memory.allocatable > 0 ? about(memory.allocatable) : NONE} />
        <Figure
          name="requested"
          value={about(memory.requests)}
          note={share(memory.requests, memory.allocatable)}
          kind="requested"
        />
        <Figure
          name={memory.limits > 0 && unlimited > 0 ? `limits, ${count(unlimited)} without` : "limits"}
          value={memory.limits === 0 ? "none" : about(memory.limits)}
          note={limitsNote(memory)}
          isTrouble={memory.limits > memory.allocatable && memory.allocatable > 0}
        />
        <Figure
          name={node.isMeasured ? "used" : "used (assumed)"}
          value={node.usedBytes === null ? "–" : about(node.usedBytes)}
          note={node.usedBytes === null ? "" : share(node.usedBytes, node.memoryBytes)}
          kind="used"
        />
        <Figure
          name={name}
          value={left === null ? "–" : about(left)}
          isTrouble={left !== null && left < 0}
        />
        <Figure
          name="CPU requested"
          value={cores(cpu.requests)}
          note={share(cpu.requests, cpu.allocatable)}
        />
      </dl>
    </>
  );
}

/** How far limits are overcommitted. */
function limitsNote({ allocatable, limits }: NodePanel["memory"]): string {
  return allocatable > 0 && limits > 0 ? ` ${(limits / allocatable).toFixed(1)}×` : "";
}

function Figure({
  name,
  value,
  note = "",
  kind = "",
  isTrouble = false,
}: {
  name: string;
  value: string;
  note?: string;
  kind?: string;
  isTrouble?: boolean;
}) {
  return (
    <div class={`${kind} ${isTrouble ? "trouble" : ""}`}>
      <dt title={name}>{name}</dt>
      <dd>
        {isTrouble ? "⚠ " : ""}
        {value}
        {note ? <small>{note}</small> : null}
      </dd>
    </div>
  );
}

/** The description of a pod on hover or focus. */
function words(pod: PodBlock): string {
  const places = [
    pod.evictionPlace === null
      ? ""
      : pod.spared
        ? `never evicted (${pod.spared})`
        : `evicted ${ordinal(pod.evictionPlace)}`,
    pod.killPlace === null ? "" : `OOM-killed ${ordinal(pod.killPlace)}`,
  ].filter(Boolean);
  const uses = pod.usedBytes === null ? "" : `uses ${bytes(pod.usedBytes)}, `;
  const limit = pod.limitBytes === null ? "no limit" : `limit ${bytes(pod.limitBytes)}`;
  return [
    `${keyOf(pod)}, ${pod.qosClass}, priority ${count(pod.priority)}`,
    `${uses}requests ${bytes(pod.requestedBytes)}, ${limit}`,
    places.join(", "),
  ]
    .filter(Boolean)
    .join("; ");
}

const Blocks = kept(function Blocks({
  pods,
  order,
  mask,
  size,
  look,
  width,
  height,
}: {
  pods: readonly PodBlock[];
  order: Order;
  mask: Uint8Array | null;
  size: Size;
  look: number;
  width: number;
  height: number;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const link = useRef<HTMLAnchorElement>(null);
  const laid = useMemo(
    () =>
      layout(
        pods.map((pod) => sizeOf(pod, size)),
        Math.max(1, width),
        height,
      ),
    [pods, size, width, height],
  );
  const [pointed, setPointed] = useState(-1);
  const [current, setCurrent] = useState(0);
  const moved = useRef(false);
  useLayoutEffect(() => {
    const place = canvas.current;
    return place === null ? undefined : drawSoon(place, () => pictureOf(laid, pods, order, mask));
  }, [laid, pods, order, mask, look]);
  useLayoutEffect(() => {
    if (moved.current) link.current?.focus();
    moved.current = false;
  }, [current]);
  if (pods.length === 0) return <p class="quiet no-pods">No pods.</p>;
  const here = Math.min(current, pods.length - 1);
  const address = (index: number) => {
    const pod = pods[index] as PodBlock;
    return href("pod", [pod.namespace, pod.name]);
  };
  const find = (event: MouseEvent) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    return at(laid, event.clientX - box.left, event.clientY - box.top);
  };
  const press = (event: KeyboardEvent) => {
    const last = pods.length - 1;
    const to: Record<string, number> = {
      ArrowLeft: here - 1,
      ArrowRight: here + 1,
      Home: 0,
      End: last,
      ArrowUp: beyond(laid, here, -1),
      ArrowDown: beyond(laid, here, 1),
    };
    const next = to[event.key];
    if (next === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    moved.current = true;
    setCurrent(Math.max(0, Math.min(last, next)));
  };
  const px = ({ left, top, width: wide, height: high }: ReturnType<typeof boxOf>) => ({
    left: `${left}px`,
    top: `${top}px`,
    width: `${wide}px`,
    height: `${high}px`,
  });
  return (
    <div
      class={`blocks ${pointed === -1 ? "" : "on"}`}
      style={{ height: `${height}px` }}
      onMouseMove={(event) => setPointed(find(event))}
      onMouseLeave={() => setPointed(-1)}
      onClick={(event) => {
        const index = find(event);
        if (index === -1 || event.defaultPrevented || event.target instanceof HTMLAnchorElement) return;
        if (event.ctrlKey || event.metaKey) open(address(index));
        else go(address(index));
      }}
    >
      <canvas
        ref={canvas}
        aria-hidden="true"
        style={{ width: `${laid.width}px`, height: `${laid.height}px` }}
      />
      <a
        key={here}
        ref={link}
        class="spot"
        href={address(here)}
        style={px(boxOf(laid, here))}
        aria-label={words(pods[here] as PodBlock)}
        aria-description="Use the arrow keys to move between the pods of the node"
        onKeyDown={press}
        onFocus={() => setPointed(here)}
        onBlur={() => setPointed(-1)}
      />
      {pointed === -1 || pointed >= pods.length ? null : (
        <>
          <i class="pointed" style={px(boxOf(laid, pointed))} />
          <Tip words={words(pods[pointed] as PodBlock)} box={boxOf(laid, pointed)} width={laid.width} />
        </>
      )}
    </div>
  );
});

function Tip({ words: text, box, width }: { words: string; box: ReturnType<typeof boxOf>; width: number }) {
  const [who = "", ...rest] = text.split("; ");
  const wide = Math.min(340, width);
  const left = Math.max(0, Math.min(width - wide, box.left + box.width / 2 - wide / 2));
  const below = box.top + box.height + 6;
  const tip = useRef<HTMLDivElement>(null);
  // Above the block if there is no room below, and as low as possible if neither has room.
  useLayoutEffect(() => {
    const element = tip.current;
    if (element === null) return;
    element.style.top = `${below}px`;
    const { top, bottom, height } = element.getBoundingClientRect();
    const [over, above] = [bottom - innerHeight + 4, box.top - 6 - height];
    const bar = document.querySelector<HTMLElement>(".bar")?.offsetHeight ?? 0;
    if (over > 0) element.style.top = `${top - below + above > bar ? above : below - over}px`;
  }, [text, below]);
  return (
    <div class="tip" ref={tip} aria-hidden="true" style={{ left: `${left}px`, width: `${wide}px` }}>
      <b>{who}</b>
      {rest.map((line) => (
        <span key={line}>{line}</span>
      ))}
    </div>
  );
}

/** Changes with the theme and the screen resolution: canvases are then redrawn. */
function useLook(): number {
  const [turn, setTurn] = useState(0);
  useLayoutEffect(() => {
    const changed = () => setTurn((before) => before + 1);
    const observer = new MutationObserver(changed);
    observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    const media = ["(prefers-color-scheme: dark)", `(resolution: ${devicePixelRatio}dppx)`].map((each) =>
      matchMedia(each),
    );
    for (const each of media) each.addEventListener("change", changed);
    return () => {
      observer.disconnect();
      for (const each of media) each.removeEventListener("change", changed);
    };
  }, [turn]);
  return turn;
}

/** The facts of a single node. */
export function NodeFacts({ panel }: { panel: Panel }) {
  const { node } = panel;
  const victim = (next: NodePanel["nextEvicted"]) =>
    next === null ? (
      "no pod"
    ) : (
      <>
        <b>{next.pod}</b> ({next.qosClass}){next.explanation ? `: ${next.explanation}` : ""}
      </>
    );
  return (
    <Card title="Next victims">
      <Figures node={node} unlimited={unlimitedOf(panel)} />
      <Facts
        of={[
          ["kubelet", victim(node.nextEvicted)],
          ["kernel", victim(node.nextKilled)],
          ...(node.reversedPairs > 0
            ? [
                [
                  "orders",
                  "kubelet and kernel disagree: a pod evicted late can be OOM-killed early",
                ] as const,
              ]
            : []),
          ["memory", memoryWords(node)],
          ["CPU", cpuWords(node)],
          ...(node.conditions.length > 0 ? [["conditions", node.conditions.join(", ")] as const] : []),
        ]}
      />
    </Card>
  );
}

function memoryWords({ memoryBytes, headroom }: NodePanel): string {
  if (headroom === null) return bytes(memoryBytes);
  const grace = headroom.type === "soft" ? ` for ${headroom.graceSeconds} s` : "";
  const threshold = `${headroom.signal} falls below ${bytes(headroom.thresholdBytes)}${grace}`;
  return `${bytes(memoryBytes)}; the kubelet evicts when ${threshold}, now ${bytes(headroom.availableBytes)}`;
}

function cpuWords({ cpu }: NodePanel): string {
  const of = cpu.allocatable > 0 ? ` of ${cores(cpu.allocatable)}` : "";
  return `${cores(cpu.requests)}${of} cores requested, limits ${cores(cpu.limits)}`;
}
