// The blast radius: each pod leaks in turn; which others die. As a matrix to sort and click, and told one by one.

import { render, type ComponentChildren } from "preact";
import { useCallback, useEffect, useLayoutEffect, useMemo, useState } from "preact/hooks";
import { showBlast } from "../../blast";
import { h } from "../../dom";
import { bare, bytes, count, fate, plural, seconds } from "../../format";
import type { Blast, BlastRadius, ClusterView, Death } from "../../schema";
import { change, go, href, useRoute } from "../router";
import { begin, Progress, useJob, useShown } from "../run/jobs";
import { Failure, useAnswer } from "../source";
import { Card, Chip, Dom, Empty, Failed, Key, Loading, Page, Select, stated } from "../ui";
import type { ViewProps } from "../views";
import "./blast.css";

const MOST_ROWS = 60;
const MOST_COLUMNS = 60;

/** The jobs of this visit, by source and node. */
const JOBS = new Map<string, string>();

export function BlastPage({ route, app }: ViewProps) {
  const cluster = useAnswer<ClusterView>(app.source, app.info.kind === "scenario" ? null : { path: app.path("cluster") });
  const nodes = (cluster.data?.nodes ?? []).filter((each) => each.pods > 0 && !each.problem);
  const isOfNode = app.info.kind !== "scenario";
  const wanted = route.query.get("node") ?? nodes[0]?.name ?? "";
  const id = route.parts[0] ?? null;
  const key = `${app.info.id} ${app.info.generation} ${isOfNode ? wanted : ""}`;
  const [failure, setFailure] = useState<Failure | null>(null);
  const isShown = useShown(key);
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
    if (id !== null || !isReady || app.source.saved !== null) return;
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
            <Progress job={job} what="Letting each pod leak in turn" again={() => void start()} />
          ) : cluster.failure !== null ? (
            <Failed failure={cluster.failure} again={cluster.again} />
          ) : isOfNode && cluster.data !== null && nodes.length === 0 ? (
            <Empty title="No node to look at">
              <p>{cluster.data.nodes.map((each) => each.problem).filter(Boolean)[0] ?? "There are no pods."}</p>
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

/** Name a job in the address, without a step back to where there was none. */
function show(id: string, node: string): void {
  go(href("blast", [id], { node }), false);
}

function Shown({ radius, tools }: { radius: BlastRadius; tools: ComponentChildren }) {
  const chooser = useMemo(() => h("div"), []);
  const make = useCallback(
    (shown: AbortSignal) => {
      const parts = showBlast({ ...radius, assumptions: radius.assumptions.map((each) => ({ ...each, stateWith: stated(each.stateWith) })) });
      const place = h("div", { class: "wide" });
      parts[0]?.querySelector(".tools")?.prepend(chooser);
      parts[1]?.prepend(place);
      render(<Matrix radius={radius} />, place);
      shown.addEventListener("abort", () => render(null, place));
      return parts;
    },
    [radius],
  );
  // Where it was while that was awaited.
  useLayoutEffect(() => render(tools, chooser), [tools]);
  return <Dom make={make} />;
}

interface Row {
  pod: string;
  node: string;
  qosClass: string;
  leak: Blast;
  /** The first death of each other pod. */
  deaths: ReadonlyMap<string, { death: Death; place: number }>;
}

/** Which pod takes which down: a row for each leaking pod, a column for each victim. */
function Matrix({ radius }: { radius: BlastRadius }) {
  const route = useRoute();
  const rates = [...new Set(radius.leaks.map((leak) => leak.rateBytesPerSecond))].sort((one, other) => one - other);
  const harm = (each: number) => radius.leaks.filter((leak) => leak.rateBytesPerSecond === each).reduce((sum, leak) => sum + leak.others.length, 0);
  const rate = Number(route.query.get("rate")) || rates.toSorted((one, other) => harm(other) - harm(one) || other - one)[0] || 0;
  const sort = route.query.get("sort") ?? "-taken";
  const { rows, victims } = useMemo(() => rowsOf(radius, rate, sort), [radius, rate, sort]);
  const [chosen, setChosen] = useState<{ row: string; victim: string } | null>(null);
  const shownRows = rows.slice(0, MOST_ROWS);
  const shownVictims = victims.slice(0, MOST_COLUMNS);
  const picked = shownRows.find((row) => row.pod === chosen?.row);
  const found = chosen === null ? undefined : picked?.deaths.get(chosen.victim);
  const by = (name: string) => (sort === name ? `-${name}` : name);
  const sorted = (name: string) => (sort === name ? "ascending" : sort === `-${name}` ? "descending" : "none");
  if (victims.length === 0) {
    return (
      <Card title="Which pod takes which down" tools={<Rates rates={rates} rate={rate} />}>
        <p class="quiet">At this rate every leaking pod dies first, and takes no other down.</p>
      </Card>
    );
  }
  return (
    <Card title="Which pod takes which down" tools={<Rates rates={rates} rate={rate} />}>
      <p class="quiet">Rows leak, columns die. A number is the order of death: a diamond was killed by the kernel, a circle evicted by the kubelet. Sort by a heading; click a number for more.</p>
      <div class="matrix" tabIndex={0} role="region" aria-label="Matrix of leaks and deaths">
        <table>
          <thead>
            <tr>
              {(
                [
                  ["pod", "Leaking pod"],
                  ["taken", "Takes"],
                  ["soonest", "First after"],
                ] as const
              ).map(([name, title]) => (
                <th key={name} scope="col" aria-sort={sorted(name)} class={name === "pod" ? "corner" : "number"}>
                  <button type="button" class="link" onClick={() => change({ sort: by(name) }, true)}>
                    {title}
                    <span aria-hidden="true">{sort === name ? " ▲" : sort === `-${name}` ? " ▼" : ""}</span>
                  </button>
                </th>
              ))}
              {shownVictims.map((victim) => (
                <th key={victim} scope="col" class="victim-name" aria-sort={sorted(victim)}>
                  <button type="button" class="link" title={victim} onClick={() => change({ sort: by(victim) }, true)}>
                    {bare(victim)}
                    <span aria-hidden="true">{sort === victim ? " ▲" : sort === `-${victim}` ? " ▼" : ""}</span>
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shownRows.map((row) => (
              <tr key={`${row.node} ${row.pod}`} class={chosen?.row === row.pod ? "chosen-row" : ""}>
                <th scope="row" class="corner">
                  <a href={href("pod", row.pod.split("/"))}>
                    <Key of={row.pod} />
                  </a>
                  <Chip qosClass={row.qosClass} />
                </th>
                <td class="number">{count(row.deaths.size)}</td>
                <td class="number">{row.deaths.size === 0 ? "–" : seconds(row.leak.others[0]?.afterSeconds ?? 0)}</td>
                {shownVictims.map((victim) => {
                  const cell = row.deaths.get(victim);
                  if (cell === undefined) return <td key={victim} class={victim === row.pod ? "self" : ""} />;
                  const words = `${row.pod} leaks: ${victim} ${fate(cell.death.by)} as number ${cell.place}, after ${seconds(cell.death.afterSeconds)}`;
                  return (
                    <td key={victim} class={chosen?.victim === victim ? "chosen-column" : ""}>
                      <button type="button" class={`cell ${cell.death.by === "kernel" ? "kernel" : "kubelet"}`} aria-label={words} title={words} aria-pressed={chosen?.row === row.pod && chosen.victim === victim} onClick={() => setChosen({ row: row.pod, victim })}>
                        <span>{count(cell.place)}</span>
                      </button>
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="chosen-death" role="status">
        {found === undefined || picked === undefined ? (
          <span class="quiet">{`${plural(rows.length, "pod")}, ${plural(victims.length, "victim")}${rows.length > MOST_ROWS || victims.length > MOST_COLUMNS ? `; the first ${MOST_ROWS} of each are shown` : ""}.`}</span>
        ) : (
          <>
            If <Key of={picked.pod} /> leaks {bytes(picked.leak.rateBytesPerSecond)}/s, <a href={href("pod", (chosen?.victim ?? "").split("/"))}>{chosen?.victim}</a> is {fate(found.death.by)} as number {found.place}, after {seconds(found.death.afterSeconds)}.
          </>
        )}
      </p>
    </Card>
  );
}

function Rates({ rates, rate }: { rates: readonly number[]; rate: number }) {
  if (rates.length < 2) return null;
  return <Select label="Leak of" value={String(rate)} options={rates.map((each) => [String(each), `${bytes(each)}/s`] as const)} change={(value) => change({ rate: value })} />;
}

function rowsOf(radius: BlastRadius, rate: number, sort: string): { rows: readonly Row[]; victims: readonly string[] } {
  const times = new Map<string, number>();
  const rows: Row[] = radius.leaks
    .filter((leak) => leak.rateBytesPerSecond === rate)
    .map((leak) => {
      const deaths = new Map<string, { death: Death; place: number }>();
      for (const death of leak.others) if (!deaths.has(death.pod)) deaths.set(death.pod, { death, place: deaths.size + 1 });
      for (const pod of deaths.keys()) times.set(pod, (times.get(pod) ?? 0) + 1);
      return { pod: leak.pod, node: leak.node, qosClass: leak.qosClass, leak, deaths };
    });
  const victims = [...times.keys()].sort((one, other) => (times.get(other) ?? 0) - (times.get(one) ?? 0) || one.localeCompare(other));
  const name = sort.replace(/^-/, "");
  const way = sort.startsWith("-") ? -1 : 1;
  const worth = (row: Row): number | string => {
    if (name === "pod") return row.pod;
    if (name === "taken") return row.deaths.size;
    if (name === "soonest") return row.leak.others[0]?.afterSeconds ?? Infinity;
    return row.deaths.get(name)?.place ?? Infinity;
  };
  rows.sort((one, other) => {
    const [first, second] = [worth(one), worth(other)];
    if (first === second) return one.pod.localeCompare(other.pod);
    if (first === Infinity || second === Infinity) return first === Infinity ? 1 : -1;
    return (first < second ? -1 : 1) * way;
  });
  return { rows, victims };
}
