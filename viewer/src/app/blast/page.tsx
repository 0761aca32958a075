// The blast radius: each pod leaks in turn, and others are killed or evicted. As a sortable matrix and as a list.

import { render, type ComponentChildren } from "preact";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { showBlast } from "../../blast";
import { h } from "../../dom";
import { bytes, fate, plural, seconds } from "../../format";
import type { BlastRadius, ClusterView, Death } from "../../schema";
import { afterFrame } from "../frames";
import { change, go, here, href, useRoute } from "../router";
import { begin, jobOf, Progress, useJob, useShown } from "../run/jobs";
import { Failure, useAnswer } from "../source";
import { Card, Dom, Empty, Failed, Key, Loading, Page, Select, stated } from "../ui";
import type { ViewProps } from "../view";
import { Board, type Leaking } from "./board";
import "./blast.css";

/** Maximum number of leaks listed individually. */
const TOLD = 20;

/** The jobs of this visit, by source and node. */
const JOBS = new Map<string, string>();

export function BlastPage({ route, app }: ViewProps) {
  const cluster = useAnswer<ClusterView>(app.source, app.info.kind === "scenario" ? null : { path: app.path("cluster") });
  const nodes = (cluster.data?.nodes ?? []).filter((each) => each.pods > 0 && !each.problem);
  const isOfNode = app.info.kind !== "scenario";
  const wanted = route.query.get("node") ?? nodes[0]?.name ?? "";
  const id = jobOf(route, app.source, "leaks");
  const key = `${app.info.id} ${app.info.generation} ${isOfNode ? wanted : ""}`;
  const [failure, setFailure] = useState<Failure | null>(null);
  const isShown = useShown(key, route);
  const isReady = !isOfNode || nodes.length > 0;
  const start = useCallback(async () => {
    setFailure(null);
    try {
      const job = await begin(app.source, { kind: "blast", source: app.info.id, ...(isOfNode && wanted ? { node: wanted } : {}) });
      JOBS.set(key, job.id);
      if (isShown(key)) show(job.id, isOfNode ? wanted : "");
    } catch (error) {
      setFailure(error instanceof Failure ? error : new Failure({ message: String(error) }));
    }
  }, [app, key]);
  useEffect(() => {
    if (id !== null || !isReady || app.source.saved !== null || !isShown(key)) return;
    const known = JOBS.get(key);
    if (known === undefined) void start();
    else show(known, isOfNode ? wanted : "");
  }, [id, isReady, key]);
  const job = useJob<BlastRadius>(app.source, id);
  const tools = isOfNode && nodes.length > 1 ? <Select label="Node" value={wanted} options={nodes.map((each) => [each.name, each.name] as const)} change={(node) => go(href("blast", [], { node }))} /> : null;
  if (job.result === null) {
    return (
      <Page title="Blast radius" tools={tools}>
        <div class="wide">
          {failure !== null ? (
            <Failed failure={failure} again={() => void start()} />
          ) : id !== null ? (
            <Progress job={job} what="Simulating a leak in every pod" again={() => void start()} />
          ) : cluster.failure !== null ? (
            <Failed failure={cluster.failure} again={cluster.again} />
          ) : isOfNode && cluster.data !== null && nodes.length === 0 ? (
            <Empty title="No nodes">
              <p>{cluster.data.nodes.map((each) => each.problem).filter(Boolean)[0] ?? "It has no pods."}</p>
            </Empty>
          ) : (
            <Loading what="Reading the cluster…" />
          )}
        </div>
      </Page>
    );
  }
  return <Shown radius={job.result} tools={tools} />;
}

/** Put a job into the address without a new history entry. */
function show(id: string, node: string): void {
  go(href("blast", [id], { ...Object.fromEntries(here().query), node }), false);
}

function Shown({ radius, tools }: { radius: BlastRadius; tools: ComponentChildren }) {
  const chooser = useMemo(() => h("div"), []);
  const make = useCallback(
    (shown: AbortSignal) => {
      const parts = showBlast({ ...radius, assumptions: radius.assumptions.map((each) => ({ ...each, stateWith: stated(each.stateWith) })) }, TOLD, "the matrix shows all of them");
      const place = h("div", { class: "wide" });
      parts[0]?.querySelector(".tools")?.prepend(chooser);
      parts[1]?.prepend(place);
      render(<Matrix radius={radius} />, place);
      shown.addEventListener("abort", () => render(null, place));
      return parts;
    },
    [radius],
  );
  // The state before the answer arrived.
  useLayoutEffect(() => render(tools, chooser), [tools]);
  return <Dom make={make} />;
}

/** Which pod takes which down: a row for each leaking pod, a column for each victim. */
function Matrix({ radius }: { radius: BlastRadius }) {
  const { query } = useRoute();
  const rates = useMemo(() => ratesOf(radius), [radius]);
  const [worst] = rates;
  const rate = Number(query.get("rate")) || worst || 0;
  const sort = query.get("sort") ?? "-taken";
  const { leaks, victims } = useMemo(() => leaksOf(radius, rate), [radius, rate]);
  const rows = useMemo(() => sorted(leaks, sort), [leaks, sort]);
  const [leaking, victim] = [query.get("leaks") ?? "", query.get("dies") ?? ""];
  const found = leaks.find((each) => each.pod === leaking)?.deaths.get(victim);
  const place = useRef<HTMLDivElement>(null);
  const board = useRef<Board | null>(null);
  const isThere = victims.length > 0;
  useLayoutEffect(() => {
    if (!isThere) return;
    const gone = new AbortController();
    board.current = new Board((name) => afterFrame(() => sortBy(name)), (leaks, dies) => afterFrame(() => change({ leaks, dies }, true)), gone.signal);
    place.current?.replaceChildren(board.current.element);
    return () => gone.abort();
  }, [isThere]);
  useLayoutEffect(() => {
    if (isThere) board.current?.show({ rows, victims, sort, chosen: found === undefined ? null : [leaking, victim] });
  });
  return (
    <Card title="Which pod takes which down" tools={<Rates rates={rates.toSorted((one, other) => one - other)} rate={rate} />}>
      <p class="quiet">
        {isThere
          ? "Each row is a leaking pod, each column a possible victim. Numbers show the order in which victims are lost: ◆ OOM-killed by the kernel, ● evicted by the kubelet. Click a heading to sort, or a number for details (arrow keys work, too)."
          : "At this rate, no leaking pod takes another one down: it is always the first to die."}
      </p>
      {isThere ? <div ref={place} /> : null}
      {isThere ? (
        <p class="chosen-death" role="status">
          {found === undefined ? (
            <span class="quiet">{`${plural(rows.length, "pod")}, ${plural(victims.length, "victim")}.`}</span>
          ) : (
            <>
              If <Key of={leaking} /> leaks {bytes(rate)}/s, <a href={href("pod", victim.split("/"))}>{victim}</a> is victim number {found.place}: {fate(found.death.by)} after {seconds(found.death.afterSeconds)}.
            </>
          )}
        </p>
      ) : null}
    </Card>
  );
}

/** Sort by a column, or reverse the order if it is already sorted by it. */
function sortBy(name: string): void {
  change({ sort: here().query.get("sort") === name ? `-${name}` : name }, true);
}

function Rates({ rates, rate }: { rates: readonly number[]; rate: number }) {
  if (rates.length < 2) return null;
  return <Select label="Leak rate" value={String(rate)} options={rates.map((each) => [String(each), `${bytes(each)}/s`] as const)} change={(value) => change({ rate: value })} />;
}

/** Leak rates, the one with the most victims first. */
function ratesOf(radius: BlastRadius): readonly number[] {
  const harm = new Map<number, number>();
  for (const leak of radius.leaks) harm.set(leak.rateBytesPerSecond, (harm.get(leak.rateBytesPerSecond) ?? 0) + leak.others.length);
  return [...harm.keys()].sort((one, other) => (harm.get(other) ?? 0) - (harm.get(one) ?? 0) || other - one);
}

/** What each pod takes down at a rate, and the victims, most frequent first. */
function leaksOf(radius: BlastRadius, rate: number): { leaks: readonly Leaking[]; victims: readonly string[] } {
  const times = new Map<string, number>();
  const leaks = radius.leaks
    .filter((leak) => leak.rateBytesPerSecond === rate)
    .map(({ pod, qosClass, others }) => {
      const deaths = new Map<string, { death: Death; place: number }>();
      for (const death of others) if (!deaths.has(death.pod)) deaths.set(death.pod, { death, place: deaths.size + 1 });
      for (const victim of deaths.keys()) times.set(victim, (times.get(victim) ?? 0) + 1);
      return { pod, qosClass: qosClass ?? "", deaths };
    });
  return { leaks, victims: [...times.keys()].sort((one, other) => (times.get(other) ?? 0) - (times.get(one) ?? 0) || (one < other ? -1 : 1)) };
}

function sorted(leaks: readonly Leaking[], sort: string): readonly Leaking[] {
  const name = sort.replace(/^-/, "");
  const way = sort.startsWith("-") ? -1 : 1;
  const worth = ({ pod, deaths }: Leaking): number | string => {
    if (name === "pod") return pod;
    if (name === "taken") return deaths.size;
    if (name === "soonest") return deaths.values().next().value?.death.afterSeconds ?? Infinity;
    return deaths.get(name)?.place ?? Infinity;
  };
  return leaks.toSorted((one, other) => {
    const [first, second] = [worth(one), worth(other)];
    if (first === second) return one.pod < other.pod ? -1 : 1;
    if (first === Infinity || second === Infinity) return first === Infinity ? 1 : -1;
    return (first < second ? -1 : 1) * way;
  });
}
