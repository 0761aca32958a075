// What if: requests, limits, priority and thresholds with controls; class, score, both orders and forecast
// change at once, on every node that an edit touches.

import { useEffect, useMemo, useState } from "preact/hooks";
import { about, bySignal, bytes, count, ordinal, plural, signed } from "../../format";
import type {
  ChangedNode,
  ClusterView,
  ComparedPod,
  ContainerExplanation,
  EditedPod,
  ForecastView,
  KubeletEdit,
  MovedPod,
  PodBlock,
  PodEdit,
  PodPage,
  PodStanding,
  WhatIf,
  WhatIfView,
} from "../../schema";
import { podPath } from "../cluster/page";
import { Amount, amountOf, sameAmount, useNewest } from "../controls";
import { Curve, isFlat } from "../forecast/curve";
import { ABOUT_RISKIEST } from "../forecast/request";
import { useLater, useTurns } from "../frames";
import { type Left, leftAfter, leftOn, until } from "../headroom";
import { change, here, href, type Route } from "../router";
import { useAnswer, type Request } from "../source";
import { Swatch } from "../swatch";
import {
  Assumed,
  Awaited,
  Card,
  Chip,
  Choice,
  Copyable,
  Empty,
  Failed,
  kept,
  Key,
  Loading,
  NONE,
  Page,
  Table,
  Tile,
} from "../ui";
import type { App, ViewProps } from "../view";
import "./whatIf.css";

const MOST_SUGGESTED = 60;
const MOST_ROWS = 120;
const MOST_TOLD = 12;
const SETTLED_MS = 400;
type Side = "requests" | "limits";

/** The changes to one workload or pod: `CONTAINER.requests.memory` and `priority`, by name. */
type Written = Readonly<Record<string, string>>;
/** All changes: by `Deployment shop/web`, or by `shop/web-0` for a single pod. */
type Edits = Readonly<Record<string, Written>>;

const keyOf = (pod: PodBlock) => `${pod.namespace}/${pod.name}`;

export function WhatIfPage({ route, app }: ViewProps) {
  const cluster = useAnswer<ClusterView>(app.source, { path: app.path("cluster") });
  // Where no pod is in the address, the page opens on the one whose growth does most harm, and stays there.
  const [isFirst] = useState(() => !route.query.has("pod"));
  const about = useMemo(
    () => (isFirst ? { path: app.path("forecast"), body: ABOUT_RISKIEST } : null),
    [app, isFirst],
  );
  const risk = useNewest<ForecastView>(app.source, about);
  const view = app.live?.cluster ?? cluster.data;
  if (view === null) {
    return (
      <Page title="What if">
        <div class="wide">
          <Awaited answer={cluster} what="Reading the cluster…">
            {() => null}
          </Awaited>
        </div>
      </Page>
    );
  }
  const placed = view.pods.filter((pod) => pod.evictionPlace !== null);
  const [first] = placed;
  if (first === undefined) {
    return (
      <Page title="What if">
        <div class="wide">
          <Empty title="No pods to change">
            <p>
              {view.nodes.map((node) => node.problem).filter(Boolean)[0] ??
                "Drop manifests, a scenario or a cluster snapshot here, or press o to open them."}
            </p>
          </Empty>
        </div>
      </Page>
    );
  }
  const wanted = route.query.get("pod") ?? "";
  if (wanted === "" && risk.data === null && risk.failure === null) {
    return (
      <Page title="What if">
        <div class="wide">
          <Loading what="Looking for the riskiest pod…" />
        </div>
      </Page>
    );
  }
  const riskiest = risk.data?.growing ?? "";
  const found = placed.find((pod) => keyOf(pod) === (wanted || podOf(riskiest)));
  const chosen = found ?? first;
  const growing = keyOf(chosen) === podOf(riskiest) ? riskiest : keyOf(chosen);
  return (
    <Editor
      app={app}
      route={route}
      cluster={view}
      block={chosen}
      growing={growing}
      isMissing={wanted !== "" && found === undefined}
    />
  );
}

/** The pod of `namespace/name:container`. */
function podOf(growing: string): string {
  return growing.split(":")[0] ?? "";
}

/** Return a value once it has been stable for a while. */
function useSettled(value: string, ms: number): string {
  const [settled, setSettled] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}

function editsIn(route: Route): Edits {
  const isRecord = (value: unknown): value is Record<string, unknown> =>
    typeof value === "object" && value !== null;
  try {
    const found: unknown = JSON.parse(route.query.get("write") ?? "{}");
    if (!isRecord(found)) return {};
    const texts = (of: unknown): Written =>
      isRecord(of)
        ? Object.fromEntries(
            Object.entries(of).filter((each): each is [string, string] => typeof each[1] === "string"),
          )
        : {};
    return Object.fromEntries(Object.entries(found).map(([target, of]) => [target, texts(of)]));
  } catch {
    return {};
  }
}

/** The current query, for a link that keeps the changes. */
function asWritten(): Record<string, string> {
  return Object.fromEntries(here().query);
}

/** A link to another pod or node adds the changes only when it is used: they change far more often. */
function reach({ target }: Event): void {
  const link = target instanceof Element ? target.closest("a") : null;
  const { pod, at } = link?.dataset ?? {};
  if (link && (pod ?? at))
    link.href = href("what-if", [], { ...asWritten(), ...(pod ? { pod, alone: null, at: null } : { at }) });
}

/** Change the values of one target; the others stay as in the address. */
function rewrite(
  target: string,
  turn: (before: Written) => Written,
  more: Readonly<Record<string, string | boolean>> = {},
): void {
  const now = editsIn(here());
  const next = Object.entries({ ...now, [target]: turn(now[target] ?? {}) }).filter(
    ([, of]) => Object.keys(of).length > 0,
  );
  change({ ...more, write: next.length > 0 ? JSON.stringify(Object.fromEntries(next)) : null }, true);
}

const SETTINGS = ["hard", "soft", "grace", "everywhere"] as const;

interface EditorProps {
  app: App;
  route: Route;
  cluster: ClusterView;
  block: PodBlock;
  /** The container that grows in the forecast, or the pod. */
  growing: string;
  isMissing: boolean;
}

function Editor({ app, route, cluster, block, growing, isMissing }: EditorProps) {
  const pod = keyOf(block);
  const isSaved = app.source.saved !== null;
  const details = useAnswer<PodPage>(app.source, { path: podPath(app.path, pod) });
  const edits = editsIn(route);
  // Running replicas can be changed one by one; those of a manifest are identical.
  const replicas =
    block.workload === ""
      ? 1
      : cluster.pods.filter((each) => each.workload === block.workload && each.evictionPlace !== null).length;
  const isAlone =
    block.workload !== "" &&
    (route.query.get("alone") === "1" || (edits[pod] !== undefined && edits[block.workload] === undefined));
  const target = block.workload === "" || isAlone ? pod : block.workload;
  const written = edits[target] ?? {};
  const key = JSON.stringify(requestOf(cluster, block, edits, route, growing));
  const question = useMemo(
    () => ({ path: app.path("what-if"), body: JSON.parse(key) as WhatIf }),
    [app, key],
  );
  const answer = useNewest<WhatIfView>(app.source, question, pod);
  // The current node is answered at once; all affected nodes, once the controls are at rest.
  const hasMore = answer.isCurrent && answer.data !== null && !answer.data.isWhole;
  const settled = useSettled(hasMore ? key : "", isSaved ? 0 : SETTLED_MS);
  const whole = useNewest<WhatIfView>(
    app.source,
    useMemo(
      () =>
        settled === ""
          ? null
          : { path: app.path("what-if"), body: { ...(JSON.parse(settled) as WhatIf), isWhole: true } },
      [app, settled],
    ),
    pod,
  );
  const panel = cluster.nodes.find((each) => each.name === block.node);
  const memory = panel?.memoryBytes ?? 2 ** 36;
  const threshold = bytes(panel?.thresholdBytes ?? 0);
  const view =
    hasMore && settled === key && whole.isCurrent && whole.data !== null ? whole.data : answer.data;
  const own = view?.pods.find((each) => each.pod === pod);
  // Until the answer arrives, show the current state.
  const now: PodStanding = {
    ...block,
    pods: cluster.pods.filter((each) => each.node === block.node && each.evictionPlace !== null).length,
  };
  const isChanged = Object.keys(edits).length > 0 || SETTINGS.some((name) => route.query.get(name));
  const write = (name: string, value: string, was: string) =>
    rewrite(
      target,
      (before) => {
        const { [name]: _, ...others } = before;
        return sameAmount(value, was) ? others : { ...others, [name]: value };
      },
      { pod, alone: isAlone },
    );
  const containers = useMemo(
    () => (details.data?.explanation.containers ?? []).filter((each) => each.type !== "ephemeral"),
    [details.data],
  );
  const [hard, soft, grace] = ["hard", "soft", "grace"].map((name) => route.query.get(name));
  const later = useLater(view);
  const answered = useMemo(
    () =>
      later === null ? null : <Answered key={pod} view={later} pod={pod} kubelet={{ hard, soft, grace }} />,
    [later, pod],
  );
  return (
    <Page
      title="What if"
      facts={[
        cluster.name,
        ...(block.node ? [block.node] : ["one assumed node"]),
        `Kubernetes ${cluster.kubernetesVersion}`,
      ]}
      headline={view === null ? asItIs(pod, now, isChanged) : headline(pod, own, view, isChanged)}
      tiles={
        view === null ? (
          <Tiles before={now} after={now} left={panel === undefined ? null : leftOn(panel)} />
        ) : own === undefined ? null : (
          <Tiles {...own} left={leftAfter(view)} view={view} />
        )
      }
    >
      <div
        class={`column ${answer.isLate && !isSaved ? "stale-answer" : ""}`}
        aria-busy={!answer.isCurrent && !isSaved}
        onPointerOver={reach}
        onFocusIn={reach}
        onPointerDown={reach}
        onClick={reach}
      >
        {details.failure !== null ? <Failed failure={details.failure} again={details.again} /> : null}
        {view === null && answer.failure !== null ? <Failed failure={answer.failure} /> : null}
        {view === null || (details.isLoading && details.data === null) ? null : answered}
      </div>
      <aside class="column turned">
        <Card title="Change" kind="controls">
          <fieldset class="all-controls" disabled={isSaved}>
            <PodPicker cluster={cluster} pod={pod} />
            {isMissing ? (
              <p class="quiet">
                The pod in this address is gone or not ranked. Showing the first one instead.
              </p>
            ) : null}
            <Awaited answer={details} what="Reading the pod…">
              {(page) => (
                <>
                  {replicas > 1 && page.admission === null ? (
                    <Choice
                      label="Scope of the change"
                      value={isAlone ? "1" : "0"}
                      options={[
                        ["0", `all ${count(replicas)} replicas`],
                        ["1", "only this pod"],
                      ]}
                      change={(value) => change({ pod, alone: value === "1" })}
                    />
                  ) : block.workload ? (
                    <p class="quiet">{changing(replicas, block.workload)}</p>
                  ) : null}
                  {containers.map((each) => (
                    <Container
                      key={each.name}
                      container={each}
                      isAlone={containers.length === 1}
                      memory={memory}
                      written={written}
                      write={write}
                    />
                  ))}
                  <label class="field">
                    <span>Priority</span>
                    <input
                      type="number"
                      step={100}
                      value={written["priority"] ?? String(page.explanation.priority)}
                      onInput={(event) =>
                        write("priority", event.currentTarget.value, String(page.explanation.priority))
                      }
                    />
                  </label>
                  <fieldset>
                    <legend>Kubelet</legend>
                    <Amount
                      label="Hard threshold (memory.available)"
                      value={route.query.get("hard") ?? threshold}
                      was={threshold}
                      max={Math.max(memory / 8, amountOf(route.query.get("hard") ?? "") ?? 0)}
                      change={(hard) =>
                        change({ hard: sameAmount(hard, threshold) ? null : hard, pod }, true)
                      }
                    />
                    <div class="row">
                      <label class="field">
                        <span>Soft threshold</span>
                        <input
                          value={route.query.get("soft") ?? ""}
                          placeholder="none"
                          spellcheck={false}
                          autocomplete="off"
                          onInput={(event) => change({ soft: event.currentTarget.value, pod }, true)}
                        />
                      </label>
                      <label class="field">
                        <span>Grace period</span>
                        <input
                          value={route.query.get("grace") ?? ""}
                          placeholder="1m30s"
                          spellcheck={false}
                          autocomplete="off"
                          onInput={(event) => change({ grace: event.currentTarget.value, pod }, true)}
                        />
                      </label>
                    </div>
                    {cluster.nodes.length > 1 ? (
                      <label class="check">
                        <input
                          type="checkbox"
                          checked={route.query.get("everywhere") === "1"}
                          onChange={(event) => change({ everywhere: event.currentTarget.checked, pod }, true)}
                        />
                        {`on all ${count(cluster.nodes.length)} nodes, not only on ${block.node}`}
                      </label>
                    ) : null}
                  </fieldset>
                  {answer.failure !== null && view !== null && !isSaved ? (
                    <p class="refused" role="alert">
                      {answer.failure.needsServer
                        ? answer.failure.message
                        : `The API server rejects this: ${answer.failure.message}`}
                    </p>
                  ) : null}
                  <Made edits={edits} target={target} cluster={cluster} />
                  <button
                    type="button"
                    class="tool"
                    onClick={() =>
                      change({
                        write: null,
                        alone: null,
                        hard: null,
                        soft: null,
                        grace: null,
                        everywhere: null,
                      })
                    }
                    disabled={!isChanged}
                  >
                    Reset
                  </button>
                </>
              )}
            </Awaited>
          </fieldset>
        </Card>
      </aside>
    </Page>
  );
}

/** The answer, below the pod's tiles: one part per frame. */
function Answered({
  view,
  pod,
  kubelet,
}: {
  view: WhatIfView;
  pod: string;
  kubelet: Readonly<Record<string, string | null | undefined>>;
}) {
  const orders = useLater(view);
  const turns = useTurns(3);
  const rest = useLater(orders);
  const curve = useMemo(
    () =>
      rest.forecast === null ? null : (
        <Card title={`If ${rest.forecast.growing} grows`}>
          <p>{rest.forecast.textAfter}</p>
          {rest.forecast.textAfter === rest.forecast.textBefore ? null : (
            <p class="quiet">{`Before: ${rest.forecast.textBefore}`}</p>
          )}
          {isFlat(rest.forecast.before) && isFlat(rest.forecast.after) ? null : (
            <Curve
              height={200}
              lines={[
                { name: "Before", kind: "was", points: rest.forecast.before },
                { name: "After", kind: "now", points: rest.forecast.after },
              ]}
            />
          )}
          <p class="quiet">
            <a href={href("forecast", [], { growing: rest.forecast.growing, node: rest.node, ...kubelet })}>
              Full forecast
            </a>
          </p>
        </Card>
      ),
    [rest],
  );
  return (
    <>
      <Elsewhere view={view} />
      {view.edited.map((each) => (
        <Class key={each.workload} edited={each} isMoved={view.moved.length > 0} />
      ))}
      {view.nodes.length > 1 ? <Nodes view={view} /> : null}
      {turns > 1 ? <Orders view={orders} pod={pod} /> : null}
      {turns > 2 ? (
        <>
          {curve}
          {rest.edited.map((each) =>
            each.patch ? <Patch key={each.workload} patch={each.patch} workload={each.workload} /> : null,
          )}
          <Assumed
            of={rest.assumptions}
            notes={[
              "usage: the same before and after",
              ...(rest.edited.length > 0 && rest.moved.length === 0
                ? ["placement: pods stay on their node where they fit"]
                : []),
            ]}
          />
        </>
      ) : null}
    </>
  );
}

/** Build the request from the changes. */
function requestOf(
  cluster: ClusterView,
  block: PodBlock,
  edits: Edits,
  route: Route,
  growing: string,
): WhatIf {
  const asked: PodEdit[] = [];
  for (const [target, written] of Object.entries(edits)) {
    const isPod = !target.includes(" ");
    const pod = isPod
      ? target
      : target === block.workload
        ? keyOf(block)
        : cluster.pods
            .filter((each) => each.workload === target && each.evictionPlace !== null)
            .map(keyOf)[0];
    if (pod === undefined) continue;
    const alone = isPod && cluster.pods.some((each) => keyOf(each) === pod && each.workload !== "");
    const amounts = new Map<string, Record<Side, Record<string, string | null>>>();
    for (const [field, value] of Object.entries(written)) {
      const [container = "", side, resource] = field.split(".");
      if ((side !== "requests" && side !== "limits") || resource === undefined) continue;
      const of = amounts.get(container) ?? { requests: {}, limits: {} };
      of[side][resource] = value || null;
      amounts.set(container, of);
    }
    for (const [container, of] of amounts) asked.push({ pod, alone, container, ...of, priority: null });
    const priority = Number(written["priority"]);
    if (written["priority"] !== undefined && Number.isInteger(priority))
      asked.push({ pod, alone, container: "", requests: {}, limits: {}, priority });
  }
  const get = (name: string) => route.query.get(name) ?? "";
  const kubelet: KubeletEdit = {
    evictionHard: get("hard"),
    evictionSoft: get("soft"),
    evictionSoftGracePeriod: get("soft") && get("grace"),
    systemReserved: "",
    kubeReserved: "",
  };
  return {
    node: route.query.get("at") ?? block.node,
    edits: asked,
    kubelet,
    everywhere: get("everywhere") === "1",
    isWhole: false,
    growing,
  };
}

/** What a saved page contains: of all changes that were tried, those in the address. */
export async function whatIfToSave({ route, app }: ViewProps): Promise<readonly Request[]> {
  const cluster = app.live?.cluster ?? (await app.source.ask<ClusterView>({ path: app.path("cluster") }));
  const placed = cluster.pods.filter((pod) => pod.evictionPlace !== null);
  const about = { path: app.path("forecast"), body: ABOUT_RISKIEST };
  const wanted = route.query.get("pod");
  const riskiest =
    wanted === null && placed.length > 0 ? (await app.source.ask<ForecastView>(about)).growing : "";
  const block = placed.find((pod) => keyOf(pod) === (wanted ?? podOf(riskiest))) ?? placed[0];
  if (block === undefined) return [{ path: app.path("cluster") }];
  const growing = keyOf(block) === podOf(riskiest) ? riskiest : keyOf(block);
  const body = requestOf(cluster, block, editsIn(route), route, growing);
  const asked = [
    { path: app.path("cluster") },
    ...(wanted === null ? [about] : []),
    { path: podPath(app.path, keyOf(block)) },
    { path: app.path("what-if"), body },
  ];
  const { isWhole } = await app.source.ask<WhatIfView>({ path: app.path("what-if"), body });
  return isWhole ? asked : [...asked, { path: app.path("what-if"), body: { ...body, isWhole: true } }];
}

/** All changes, each with an undo button. */
function Made({ edits, target, cluster }: { edits: Edits; target: string; cluster: ClusterView }) {
  const others = Object.entries(edits);
  if (others.length === 0) return null;
  return (
    <ul class="made" aria-label="Changes">
      {others.map(([each, written]) => {
        const pod = each.includes(" ")
          ? cluster.pods.filter((block) => block.workload === each).map(keyOf)[0]
          : each;
        return (
          <li key={each} aria-current={each === target ? "true" : undefined}>
            <a
              href={href("what-if", [], {
                ...asWritten(),
                pod: pod ?? null,
                alone: each.includes(" ") ? null : "1",
              })}
            >
              {each}
            </a>
            <small class="quiet">
              {Object.entries(written)
                .map(([name, value]) => `${name} ${value || "none"}`)
                .join(", ")}
            </small>
            <button
              type="button"
              class="link"
              aria-label={`Undo the change to ${each}`}
              onClick={() => rewrite(each, () => ({}))}
            >
              ✕
            </button>
          </li>
        );
      })}
    </ul>
  );
}

/** Effects beyond the order on the node: pods that no longer fit, preempted pods, rejections. */
function Elsewhere({ view }: { view: WhatIfView }) {
  if (view.moved.length + view.preempted.length + view.notes.length === 0) return null;
  return (
    <Card title="Side effects" kind="wide mind">
      <ul class="reasons">
        {view.moved.slice(0, MOST_TOLD).map((each) => (
          <li key={each.pod}>{moved(each)}</li>
        ))}
        {view.moved.length > MOST_TOLD ? (
          <li>
            {`and ${plural(view.moved.length - MOST_TOLD, "more pod")} that no longer fit on their node`}
          </li>
        ) : null}
        {view.preempted.map((each) => (
          <li key={each.pod}>
            <b>{each.pod}</b>{" "}
            {`is preempted on ${each.node}: ${each.by} has the higher priority and needs its place.`}
          </li>
        ))}
        {view.notes.slice(0, MOST_TOLD).map((note) => (
          <li key={note}>{note}</li>
        ))}
        {view.notes.length > MOST_TOLD ? (
          <li>{`and ${count(view.notes.length - MOST_TOLD)} more like this`}</li>
        ) : null}
      </ul>
    </Card>
  );
}

function moved(each: MovedPod) {
  const resize =
    each.resize === null
      ? "It cannot be resized in place."
      : each.resize === "Infeasible"
        ? "An in-place resize is infeasible: the node does not have that much."
        : "An in-place resize is deferred until there is room.";
  const then =
    each.to === null
      ? `A new pod stays pending while the old one keeps running: ${each.message}`
      : each.to === each.node
        ? "A new pod fits there once the other changed pods have left."
        : `A new pod is scheduled to ${each.to}.`;
  return (
    <>
      <b>{each.pod}</b> {`no longer fits on ${each.node} (${each.lacks}). ${resize} ${then}`}
    </>
  );
}

function counted(value: number | null): string {
  return value === null ? "…" : value > 0 ? count(value) : NONE;
}

/** The affected nodes; one of them is shown. */
function Nodes({ view }: { view: WhatIfView }) {
  return (
    <Card title={`${plural(view.nodes.length, "node")} affected`}>
      <Table<ChangedNode>
        rows={view.nodes.slice(0, MOST_ROWS)}
        kind={(each) => (each.node === view.node ? "edited" : "")}
        columns={[
          {
            name: "Node",
            cell: (each) =>
              each.node === view.node ? (
                <b>{each.node}</b>
              ) : (
                <a href={href("what-if", [], { ...asWritten(), at: each.node })} data-at={each.node}>
                  {each.node}
                </a>
              ),
          },
          {
            name: "Changed pods",
            number: true,
            cell: (each) => (each.edited > 0 ? count(each.edited) : NONE),
          },
          { name: "Safer", number: true, cell: (each) => counted(each.safer) },
          {
            name: "At greater risk",
            number: true,
            cell: (each) =>
              each.problem ? <span class="problem">{each.problem}</span> : counted(each.atRisk),
          },
          {
            name: "Headroom before eviction",
            number: true,
            cell: (each) =>
              each.headroomBeforeBytes === null || each.headroomAfterBytes === null ? (
                "…"
              ) : each.headroomBeforeBytes === each.headroomAfterBytes ? (
                `${about(each.headroomAfterBytes)}${bySignal(each.headroomSignal)}`
              ) : (
                <>
                  <del>{about(each.headroomBeforeBytes)}</del> → <b>{about(each.headroomAfterBytes)}</b>
                  {bySignal(each.headroomSignal)}
                </>
              ),
          },
        ]}
      />
    </Card>
  );
}

function Container({
  container,
  isAlone,
  memory,
  written,
  write,
}: {
  container: ContainerExplanation;
  isAlone: boolean;
  memory: number;
  written: Written;
  write: (name: string, value: string, was: string) => void;
}) {
  const was = (side: Side, resource: string) => container[side][resource] ?? "";
  const value = (side: Side, resource: string) =>
    written[`${container.name}.${side}.${resource}`] ?? was(side, resource);
  const largest = Math.max(
    2 ** 28,
    ...(["requests", "limits"] as const).flatMap((side) => [
      amountOf(was(side, "memory")) ?? 0,
      (amountOf(value(side, "memory")) ?? 0) / 2,
    ]),
  );
  const max = Math.min(memory, largest * 2);
  return (
    <fieldset>
      <legend>{isAlone ? container.name : `${container.name} (${container.type})`}</legend>
      {(["requests", "limits"] as const).map((side) => (
        <Amount
          key={side}
          label={side === "requests" ? "Memory request" : "Memory limit"}
          value={value(side, "memory")}
          was={was(side, "memory")}
          max={max}
          change={(next) => write(`${container.name}.${side}.memory`, next, was(side, "memory"))}
        />
      ))}
      <div class="row">
        {(["requests", "limits"] as const).map((side) => (
          <label key={side} class="field">
            <span>{side === "requests" ? "CPU request" : "CPU limit"}</span>
            <input
              value={value(side, "cpu")}
              placeholder="none"
              spellcheck={false}
              autocomplete="off"
              onInput={(event) =>
                write(`${container.name}.${side}.cpu`, event.currentTarget.value, was(side, "cpu"))
              }
            />
          </label>
        ))}
      </div>
    </fieldset>
  );
}

/** Find a pod by part of its name. */
function PodPicker({ cluster, pod }: { cluster: ClusterView; pod: string }) {
  const [text, setText] = useState<string | null>(null);
  // A workload stands for its first pod: all its replicas change.
  const pods = useMemo(() => {
    const placed = cluster.pods.filter((each) => each.evictionPlace !== null);
    const found = new Map<string, string>();
    for (const each of placed)
      if (each.workload !== "" && !found.has(each.workload)) found.set(each.workload, keyOf(each));
    for (const each of placed) found.set(keyOf(each), keyOf(each));
    return found;
  }, [cluster]);
  const keys = useMemo(() => [...pods.keys()], [pods]);
  const typed = (text ?? "").toLowerCase();
  const found =
    typed === ""
      ? keys.slice(0, MOST_SUGGESTED)
      : keys.filter((each) => each.toLowerCase().includes(typed)).slice(0, MOST_SUGGESTED);
  const take = (value: string) => {
    setText(value);
    const found = pods.get(value);
    if (found !== undefined && found !== pod) change({ pod: found, alone: null, at: null });
  };
  return (
    <label class="field">
      <span>{`Pod or workload (type to find one of ${count(keys.length)})`}</span>
      <input
        data-filter
        list="what-if-pods"
        value={text ?? pod}
        spellcheck={false}
        autocomplete="off"
        onFocus={(event) => event.currentTarget.select()}
        onInput={(event) => take(event.currentTarget.value)}
        onBlur={() => setText(null)}
        onKeyDown={(event) => event.key === "Enter" && found[0] !== undefined && take(found[0])}
      />
      <datalist id="what-if-pods">
        {found.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
    </label>
  );
}

function Class({ edited, isMoved }: { edited: EditedPod; isMoved: boolean }) {
  const isOther = edited.classBefore !== edited.classAfter;
  return (
    <Card title={edited.workload}>
      <p class="turns">
        <Chip qosClass={edited.classBefore} />
        {isOther ? (
          <>
            <span aria-label="becomes">→</span> <Chip qosClass={edited.classAfter} />
          </>
        ) : (
          <span class="quiet">stays</span>
        )}
        {edited.pods > 1 ? (
          <span class="quiet">
            {`${plural(edited.pods, "pod")} on ${plural(edited.nodes, "node")} change`}
          </span>
        ) : null}
      </p>
      <p>{edited.reasonAfter}</p>
      {isOther ? <p class="quiet">{`Before: ${edited.reasonBefore}`}</p> : null}
      <ul class="scores">
        {edited.scores.map((each) => (
          <li key={each.container}>
            <b>{each.container}</b> oom_score_adj{" "}
            {each.before === each.after ? null : (
              <>
                <del>{each.before === null ? NONE : signed(each.before)}</del> →{" "}
              </>
            )}
            <b>{each.after === null ? NONE : signed(each.after)}</b> <span class="quiet">{each.reason}</span>
          </li>
        ))}
      </ul>
      {edited.costs.length > 0 ? (
        <ul class="reasons">
          {edited.costs.map((cost) => (
            <li key={cost}>{`Cost: ${cost}.`}</li>
          ))}
        </ul>
      ) : null}
      {edited.resize === null || isMoved ? null : <p class="resize">{sentence(edited.resize.text)}</p>}
    </Card>
  );
}

function changing(pods: number, workload: string): string {
  return `${plural(pods, "pod")} of ${workload} ${pods === 1 ? "changes" : "change"}.`;
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

function asItIs(
  pod: string,
  { qosClass, evictionPlace, killPlace, pods }: PodStanding,
  isChanged: boolean,
): string {
  const [evicted, killed] = [`evicted ${place(evictionPlace, pods)}`, `OOM-killed ${place(killPlace, pods)}`];
  const of = `of ${plural(pods, "pod")}`;
  const places =
    killPlace === null ? `${evicted} ${of} and never OOM-killed` : `${evicted} and ${killed} ${of}`;
  return `${pod} is ${qosClass}, ${places}.${isChanged ? "" : " Change a value to see the effect."}`;
}

function headline(pod: string, own: ComparedPod | undefined, view: WhatIfView, isChanged: boolean): string {
  const { before = null, after = null } = own ?? {};
  const told: string[] = [];
  if (before !== null && after !== null) {
    if (!isChanged) return asItIs(pod, after, isChanged);
    const turned = (words: string, field: "evictionPlace" | "killPlace") => {
      if (before[field] === after[field]) return "";
      const [now, then] = [place(after[field], after.pods), place(before[field], before.pods)];
      return `is ${words} ${now} instead of ${then}`;
    };
    const parts = [
      before.qosClass === after.qosClass ? "" : `becomes ${after.qosClass}`,
      turned("evicted", "evictionPlace"),
      turned("OOM-killed", "killPlace"),
    ].filter(Boolean);
    told.push(
      parts.length > 0
        ? `${pod} ${parts.join(", ")}.`
        : `${pod} keeps its class and its place in both orders.`,
    );
  } else if (before !== null)
    told.push(
      `${pod} leaves ${view.node} for ${view.moved.find((each) => each.pod === pod)?.to ?? "no node"}.`,
    );
  if (!isChanged) return told.join(" ");
  const stuck = view.moved.filter((each) => each.to === null).length;
  if (stuck > 0) told.push(`${plural(stuck, "pod")} ${stuck === 1 ? "fits" : "fit"} on no node.`);
  else if (view.moved.length > 0) {
    const fit = view.moved.length === 1 ? "no longer fits on its node" : "no longer fit on their nodes";
    told.push(`${plural(view.moved.length, "pod")} ${fit}.`);
  }
  const on =
    view.nodes.length < 2
      ? ""
      : view.isWhole
        ? ` on ${plural(view.nodes.length, "node")}`
        : ` on ${view.node}, still counting the other nodes`;
  const both = view.mixed > 0 ? `, ${count(view.mixed)} earlier in one order and later in the other` : "";
  if (view.safer + view.atRisk + view.mixed > 0)
    told.push(`${plural(view.safer, "pod")} safer, ${count(view.atRisk)} at greater risk${both}${on}.`);
  return told.join(" ");
}

function place(at: number | null, of: number): string {
  return at === null ? "never" : at === 1 ? "first" : at === of ? "last" : ordinal(at);
}

function Tiles({
  before,
  after,
  left,
  view,
}: Pick<ComparedPod, "before" | "after"> & {
  left: (Left & { was?: number }) | null;
  view?: WhatIfView;
}) {
  const was = (one: string, other: string) => (one === other || before === null ? "" : `was ${one}`);
  const score = (of: PodStanding | null) =>
    of?.oomScoreAdj === null || of === null ? NONE : signed(of.oomScoreAdj);
  const at = (value: number | null | undefined, of: PodStanding | null) =>
    value === null || value === undefined || of === null ? NONE : `${ordinal(value)} of ${count(of.pods)}`;
  const evicted = (of: PodStanding | null) => (of?.spared ? "never" : at(of?.evictionPlace, of));
  return (
    <>
      <Tile
        value={after?.qosClass ?? "gone"}
        name="QoS class"
        note={was(before?.qosClass ?? "", after?.qosClass ?? "")}
        kind={`class-${after?.qosClass ?? ""}`}
      />
      <Tile value={score(after)} name="oom_score_adj" note={was(score(before), score(after))} />
      <Tile
        value={evicted(after)}
        name="to be evicted by the kubelet"
        note={was(evicted(before), evicted(after))}
        kind="kubelet"
      />
      <Tile
        value={at(after?.killPlace, after)}
        name="to be killed by the kernel"
        note={was(at(before?.killPlace, before), at(after?.killPlace, after))}
        kind="kernel"
      />
      <Tile
        value={left === null ? NONE : about(left.bytes)}
        name={`headroom before ${until(left)}`}
        note={left?.was === undefined ? "" : was(about(left.was), about(left.bytes))}
        kind={left !== null && left.bytes < 0 ? "kernel" : ""}
      />
      <Tile
        value={view === undefined ? NONE : `${count(view.safer)} / ${count(view.atRisk)}`}
        name="pods safer / at greater risk"
        note={
          view === undefined || view.nodes.length < 2
            ? ""
            : view.isWhole
              ? `on ${plural(view.nodes.length, "node")}`
              : `on ${view.node} only`
        }
        kind={view !== undefined && view.atRisk > view.safer ? "warned" : ""}
      />
    </>
  );
}

/** Both kill orders after the change, each pod with its previous place. */
const Orders = kept(function Orders({ view, pod }: { view: WhatIfView; pod: string }) {
  const [shown, setShown] = useState("kubelet");
  const isKernel = shown === "kernel";
  const at = (standing: PodStanding | null) =>
    standing === null ? Infinity : ((isKernel ? standing.killPlace : standing.evictionPlace) ?? Infinity);
  const rows = useMemo(
    () => view.pods.toSorted((one, other) => at(one.after) - at(other.after)),
    [view, shown],
  );
  const own = rows.findIndex((each) => each.pod === pod);
  const moved = view.pods.filter((each) => at(each.before) !== at(each.after)).length;
  const from =
    rows.length <= MOST_ROWS ? 0 : Math.max(0, Math.min(own - MOST_ROWS / 2, rows.length - MOST_ROWS));
  const turned = (each: ComparedPod): string => {
    if (each.before === null) return "comes";
    if (each.after === null) return "leaves";
    const by = at(each.before) - at(each.after);
    if (by === 0 || Number.isNaN(by)) return "";
    return by > 0 ? `▲ ${count(by)} earlier` : `▼ ${count(-by)} later`;
  };
  return (
    <Card
      title={view.nodes.length > 1 ? `Kill orders on ${view.node}` : "Kill orders"}
      tools={
        <Choice
          label="Order of"
          value={shown}
          options={[
            ["kubelet", "Eviction order"],
            ["kernel", "OOM kill order"],
          ]}
          change={setShown}
        />
      }
    >
      <p class="quiet" role="status">
        {moved === 0
          ? "No pod changes its place."
          : `${plural(moved, "pod")} ${moved === 1 ? "changes its" : "change their"} place.`}
      </p>
      <ol class={`who-first ${shown}`} start={from + 1}>
        {rows.slice(from, from + MOST_ROWS).map((each) => {
          const words = turned(each);
          const was =
            words === "" || each.before === null || each.after === null
              ? undefined
              : `was number ${at(each.before)}`;
          const place = each.after === null || at(each.after) === Infinity ? NONE : count(at(each.after));
          return (
            <Standing
              key={each.pod}
              pod={each.pod}
              place={place}
              words={words}
              was={was}
              qosClass={(each.after ?? each.before)?.qosClass ?? ""}
              colourClass={(each.before ?? each.after)?.qosClass ?? ""}
              isEdited={each.isEdited}
              isHere={each.pod === pod}
            />
          );
        })}
      </ol>
      {rows.length > MOST_ROWS ? (
        <p class="quiet">
          {`Places ${count(from + 1)} to ${count(from + MOST_ROWS)} of ${count(rows.length)}.`}
        </p>
      ) : null}
    </Card>
  );
});

const Standing = kept(function Standing(props: {
  pod: string;
  place: string;
  words: string;
  was: string | undefined;
  qosClass: string;
  colourClass: string;
  isEdited: boolean;
  isHere: boolean;
}) {
  return (
    <li
      class={`${props.isEdited ? "edited" : ""} ${props.words === "" ? "" : "moved"}`}
      aria-current={props.isHere ? "true" : undefined}
    >
      <span class="number">{props.place}</span>
      <a href={href("what-if", [], { pod: props.pod })} data-pod={props.pod}>
        <Swatch pod={props.pod} qosClass={props.colourClass} />
        <Key of={props.pod} />
      </a>
      <Chip qosClass={props.qosClass} />
      <span class="by" title={props.was}>
        {props.words}
      </span>
    </li>
  );
});

function Patch({ patch, workload }: { patch: NonNullable<EditedPod["patch"]>; workload: string }) {
  const forms = [
    ...(patch.kubectl === null ? [] : [["kubectl", patch.kubectl] as const]),
    ["kustomize", patch.kustomize] as const,
    ...(patch.json === "" ? [] : [["json", patch.json] as const]),
  ];
  const [form, setForm] = useState<string>(forms[0]?.[0] ?? "kustomize");
  const text = forms.find(([name]) => name === form)?.[1] ?? patch.kustomize;
  return (
    <Card
      title="The change as a patch"
      tools={
        <Choice
          label="Form of the patch"
          value={form}
          options={forms.map(([name]) => [
            name,
            name === "json" ? "JSON patch" : name === "kustomize" ? "Kustomize" : name,
          ])}
          change={setForm}
        />
      }
    >
      <Copyable text={text} what={`the patch of ${workload}`} />
      {patch.kubectl === null ? (
        <p class="quiet">The API server rejects this change for an existing object: recreate the object.</p>
      ) : null}
    </Card>
  );
}
