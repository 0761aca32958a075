// The cluster view: the pods of nodes in eviction or OOM kill order, as a queue, as blocks and as a table.

import { useMemo } from "preact/hooks";
import { count, plural } from "../../format";
import type { ClusterView } from "../../schema";
import { useLater, useTurns } from "../frames";
import { change, here, href, type Route } from "../router";
import { useAnswer, type Request } from "../source";
import { Assumed, Awaited, Card, Chip, Choice, Empty, Page, Select, stated, Tile } from "../ui";
import type { App, ViewProps } from "../view";
import { AnswerCard } from "./answer";
import {
  fitting,
  hasUsage,
  keyOf,
  matching,
  panelsOf,
  WAITING,
  type Filters,
  type Fits,
  type Match,
  type Order,
  type Size,
} from "./model";
import { GuardCard } from "./guard";
import { HeadLine, NodeFacts, Panels } from "./panels";
import { Queue } from "./queue";
import { PodTable } from "./table";

export const CLASSES = ["Guaranteed", "Burstable", "BestEffort"] as const;

const CHIPS = CLASSES.map((each) => <Chip key={each} qosClass={each} />);

export function ClusterPage({ route, app }: ViewProps) {
  const live = app.live?.cluster ?? null;
  const answer = useAnswer<ClusterView>(app.source, live === null ? { path: app.path("cluster") } : null);
  const newest = live ?? answer.data;
  if (newest !== null) return <Shown view={newest} route={route} app={app} />;
  return (
    <Page title="Cluster">
      <Awaited answer={answer} what="Reading the cluster…">
        {() => null}
      </Awaited>
    </Page>
  );
}

type Show = "queue" | "blocks" | "table";
const NEXT: Readonly<Record<string, Show>> = { queue: "blocks", blocks: "table", table: "queue" };

/** Show the next of queue, blocks and table. */
export function turnOver(): void {
  show(NEXT[here().query.get("show") ?? "queue"] ?? "queue");
}

function show(as: Show): void {
  change({ show: as === "queue" ? null : as });
}

/** The filters in the address. */
function asked(route: Route, hasUsage: boolean) {
  const get = (name: string) => route.query.get(name) ?? "";
  const filters: Filters = {
    namespace: get("ns"),
    qosClass: get("class"),
    priority: get("priority"),
    text: get("q"),
  };
  const order: Order = get("order") === "kernel" ? "kernel" : "kubelet";
  const given = get("size");
  const size: Size =
    given === "requested" || given === "limit" || given === "used" ? given : hasUsage ? "used" : "requested";
  return { filters, order, size, node: route.query.get("node"), as: showOf(get("show")), sort: get("sort") };
}

function showOf(given: string): Show {
  return given === "blocks" || given === "table" ? given : "queue";
}

function Shown({ view, route, app }: { view: ClusterView; route: Route; app: App }) {
  const isMeasured = useMemo(() => hasUsage(view), [view]);
  const chosen = asked(route, isMeasured);
  const { filters, order, size, node, as, sort } = asked(useLater(route), isMeasured);
  const panels = useMemo(() => panelsOf(view), [view]);
  const fits = useMemo(
    () => fitting(filters),
    [filters.namespace, filters.qosClass, filters.priority, filters.text],
  );
  const matches = useMemo(() => matching(panels, fits), [panels, fits]);
  const found = matches.reduce((sum, each) => sum + each.count, 0);
  const isFiltered = found < view.pods.length;
  const shown = useMemo(
    () =>
      matches.filter(({ panel, count }) =>
        node === null ? !isFiltered || count > 0 : panel.node.name === node && panel.title !== WAITING,
      ),
    [matches, node, isFiltered],
  );
  // What is above comes with the first frame, what can be chosen with the next, then the pods, then what is
  // below them: nothing that is seen is pushed away by what comes later.
  const turns = useTurns(4);
  const [first] = shown;
  const only = node !== null && shown.length === 1 ? first : undefined;
  const tabled = useMemo(() => (only ? [only.panel] : panels), [only?.panel, panels]);
  const { facts, tiles } = useMemo(() => ({ facts: factsOf(view), tiles: <Tiles view={view} /> }), [view]);
  const choices = useMemo(
    () => <Choices view={view} {...chosen} />,
    [
      view,
      chosen.filters.namespace,
      chosen.filters.qosClass,
      chosen.filters.priority,
      chosen.size,
      chosen.order,
      chosen.as,
    ],
  );
  if (view.pods.length === 0 && panels.length === 0) {
    return (
      <Page title="Cluster">
        {view.notes.length === 0 ? (
          <Empty title="No nodes or pods">
            <p>{`${view.name} contains neither.`}</p>
          </Empty>
        ) : (
          <Empty title="No pods could be read">
            {view.notes.map((note) => (
              <p key={note}>{note}</p>
            ))}
          </Empty>
        )}
      </Page>
    );
  }
  const shownPods = node === null ? found : (first?.count ?? 0);
  return (
    <Page
      title={only ? only.panel.title : "Cluster"}
      facts={facts}
      lead={<AnswerCard app={app} view={view} node={node} />}
      tiles={node === null ? tiles : null}
      tools={
        only ? (
          <a href={href("cluster", [], { ...Object.fromEntries(route.query), node: null })}>All nodes</a>
        ) : null
      }
    >
      <section class="card wide filters" aria-label="Filters">
        <label class="field grow">
          <span>Find</span>
          <input
            type="search"
            data-filter
            value={chosen.filters.text}
            placeholder="pod, workload or node ( / )"
            onInput={(event) => change({ q: event.currentTarget.value }, true)}
          />
        </label>
        {turns > 1 ? (
          <>
            {choices}
            <p class="legend">
              {CHIPS}
              <span class="quiet" role="status">
                {isFiltered || only
                  ? `${count(shownPods)} of ${plural(view.pods.length, "pod")}`
                  : plural(view.pods.length, "pod")}
                {isFiltered && node === null
                  ? ` on ${count(shown.length)} of ${plural(panels.length, "node")}`
                  : ""}
              </span>
              {isFiltered ? (
                <button
                  type="button"
                  class="link"
                  onClick={() => change({ q: null, ns: null, class: null, priority: null })}
                >
                  Show all
                </button>
              ) : null}
            </p>
          </>
        ) : null}
      </section>
      {turns < 3 ? null : shownPods === 0 && (isFiltered || shown.length === 0) ? (
        <div class="wide">
          <Empty title={shown.length === 0 && node !== null ? `No such node: ${node}` : "No pods match"}>
            <p>
              <button
                type="button"
                class="tool"
                onClick={() => change({ q: null, ns: null, class: null, priority: null, node: null })}
              >
                Show all
              </button>
            </p>
          </Empty>
        </div>
      ) : as === "table" ? (
        <Card title="Pods">
          <PodTable panels={tabled} order={order} fits={fits} sort={sort} />
        </Card>
      ) : as === "queue" ? (
        <QueueCard matches={shown} order={order} fits={fits} />
      ) : (
        <Panels matches={shown} order={order} fits={fits} size={size} />
      )}
      {turns > 3 ? (
        <>
          {first && first.panel.title !== WAITING && shown.length === 1 && as !== "table" ? (
            <NodeFacts panel={first.panel} />
          ) : null}
          {view.guard === null ? null : <GuardCard guard={view.guard} />}
          <Assumed
            title={view.notes.length > 0 ? "Assumed and noted" : "Assumed"}
            of={view.assumptions}
            notes={view.notes}
          />
        </>
      ) : null}
    </Page>
  );
}

/** The queue; of a single node with its name above it. */
function QueueCard({ matches, order, fits }: { matches: readonly Match[]; order: Order; fits: Fits }) {
  const only = matches.length === 1 ? matches[0]?.panel : undefined;
  return (
    <section
      class="card wide queue-card"
      aria-label={order === "kernel" ? "OOM kill order" : "Eviction order"}
    >
      {only === undefined ? null : (
        <>
          <HeadLine node={only.node} title={only.title} pods={only.pods.length} />
          {only.node.problem ? <p class="problem">{stated(only.node.problem)}</p> : null}
        </>
      )}
      <Queue matches={matches} order={order} fits={fits} />
    </section>
  );
}

/** The drop-down filters; rendered again only if a choice has changed. */
function Choices({
  view,
  filters,
  size,
  order,
  as,
}: {
  view: ClusterView;
  filters: Filters;
  size: Size;
  order: Order;
  as: Show;
}) {
  const namespaces = useMemo(() => [...new Set(view.pods.map((pod) => pod.namespace))].toSorted(), [view]);
  const priorities = useMemo(
    () => [...new Set(view.pods.map((pod) => pod.priority))].toSorted((one, other) => one - other),
    [view],
  );
  return (
    <>
      <Select
        label="Namespace"
        value={filters.namespace}
        options={[["", "all"], ...namespaces.map((each) => [each, each] as const)]}
        change={(ns) => change({ ns })}
      />
      <Select
        label="Class"
        value={filters.qosClass}
        options={[
          ["", "all"],
          ...CLASSES.map((each) => [each, `${each} (${count(view.classes[each] ?? 0)})`] as const),
        ]}
        change={(value) => change({ class: value })}
      />
      <Select
        label="Priority"
        value={filters.priority}
        options={[
          ["", "all"],
          ...priorities.map((each) => [String(each), `at least ${count(each)}`] as const),
        ]}
        change={(priority) => change({ priority })}
      />
      {as === "blocks" ? (
        <Select
          label="Size by memory"
          value={size}
          options={[
            ...(hasUsage(view) ? [["used", "used"] as const] : []),
            ["requested", "requested"],
            ["limit", "limit"],
          ]}
          change={(value) => change({ size: value })}
        />
      ) : null}
      <Choice
        label="Order"
        value={order}
        options={[
          ["kubelet", "Eviction order"],
          ["kernel", "OOM kill order"],
        ]}
        change={(value) => change({ order: value === "kernel" ? value : null })}
      />
      <Choice
        label="Show as"
        value={as}
        options={[
          ["queue", "Queue"],
          ["blocks", "Blocks"],
          ["table", "Table"],
        ]}
        change={(value) => show(showOf(value))}
      />
    </>
  );
}

function factsOf(view: ClusterView): string[] {
  const taken = view.takenAt ? new Date(view.takenAt) : null;
  const when =
    taken !== null && !Number.isNaN(taken.getTime())
      ? [`as of ${taken.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" })}`]
      : [];
  return [view.name, ...(view.kubernetesVersion ? [`Kubernetes ${view.kubernetesVersion}`] : []), ...when];
}

function Tiles({ view }: { view: ClusterView }) {
  return (
    <>
      {view.tiles.map(({ value, name, note, kind }) => (
        <Tile
          key={name}
          value={kind === "" ? value : `⚠ ${value}`}
          name={name}
          note={note}
          kind={kind === "alarm" ? "kernel" : kind}
        />
      ))}
    </>
  );
}

const MOST_SAVED = 100;

/** The pods that can be opened in a saved page: the first ones that pass the filters. */
export async function podsToSave({ route, app }: ViewProps): Promise<readonly Request[]> {
  const view = app.live?.cluster ?? (await app.source.ask<ClusterView>({ path: app.path("cluster") }));
  const fits = fitting(asked(route, hasUsage(view)).filters);
  const pods = panelsOf(view).flatMap((panel) => panel.by("kubelet").filter((pod) => fits?.(pod) ?? true));
  return pods.slice(0, MOST_SAVED).map((pod) => ({ path: podPath(app.path, keyOf(pod)) }));
}

export function podPath(path: (rest: string) => string, key: string): string {
  return path(`pods?pod=${encodeURIComponent(key)}`);
}
