// What if: requests, limits, priority and thresholds with controls; class, score, both orders and forecast change at once.

import { useMemo, useState } from "preact/hooks";
import { about, bytes, count, plural, signed } from "../../format";
import type { ClusterView, ComparedPod, ContainerExplanation, EditedPod, KubeletEdit, PodEdit, PodPage, PodStanding, WhatIf, WhatIfView } from "../../schema";
import { podPath } from "../cluster/page";
import { Amount, amountOf, sameAmount, useNewest } from "../controls";
import { Curve } from "../forecast/curve";
import { change, href, type Route } from "../router";
import { useAnswer } from "../source";
import { Assumed, Awaited, Card, Chip, Choice, Copyable, Empty, Failed, Key, NONE, Page, Tile } from "../ui";
import type { App, ViewProps } from "../views";
import "./whatIf.css";

const MOST_SUGGESTED = 60;
const MOST_ROWS = 120;
type Side = "requests" | "limits";

/** What is written, as the address has it: `CONTAINER.requests.memory` by name. */
type Written = Readonly<Record<string, string>>;

export function WhatIfPage({ route, app }: ViewProps) {
  const cluster = useAnswer<ClusterView>(app.source, { path: app.path("cluster") });
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
          <Empty title="No pod to change">
            <p>{view.nodes.map((node) => node.problem).filter(Boolean)[0] ?? "Drop manifests, a scenario or a snapshot of a cluster, or open them with o."}</p>
          </Empty>
        </div>
      </Page>
    );
  }
  const wanted = route.query.get("pod") ?? "";
  const chosen = placed.find((pod) => `${pod.namespace}/${pod.name}` === wanted) ?? first;
  return <Editor key={`${chosen.namespace}/${chosen.name}`} app={app} route={route} cluster={view} pod={`${chosen.namespace}/${chosen.name}`} node={chosen.node} isMissing={wanted !== "" && wanted !== `${chosen.namespace}/${chosen.name}`} />;
}

function writtenIn(route: Route): Written {
  try {
    const found: unknown = JSON.parse(route.query.get("write") ?? "{}");
    if (typeof found !== "object" || found === null) return {};
    return Object.fromEntries(Object.entries(found).filter((each): each is [string, string] => typeof each[1] === "string"));
  } catch {
    return {};
  }
}

function Editor({ app, route, cluster, pod, node, isMissing }: { app: App; route: Route; cluster: ClusterView; pod: string; node: string; isMissing: boolean }) {
  const details = useAnswer<PodPage>(app.source, { path: podPath(app.path, pod) });
  const written = writtenIn(route);
  const containers = useMemo(() => (details.data?.explanation.containers ?? []).filter((each) => each.type !== "ephemeral"), [details.data]);
  const request = useMemo(() => requestOf(pod, node, containers, written, route), [pod, node, containers, route]);
  const key = JSON.stringify(request);
  const question = useMemo(() => (details.data === null ? null : { path: app.path("what-if"), body: JSON.parse(key) as WhatIf }), [app, key, details.data === null]);
  const answer = useNewest<WhatIfView>(app.source, question);
  const panel = cluster.nodes.find((each) => each.name === node);
  const memory = panel?.memoryBytes ?? 2 ** 36;
  const view = answer.data;
  const own = view?.pods.find((each) => each.pod === pod);
  const edited = view?.edited[0];
  const write = (name: string, value: string, was: string) => {
    const next = { ...written, [name]: value };
    if (sameAmount(value, was)) delete next[name];
    change({ pod, write: Object.keys(next).length > 0 ? JSON.stringify(next) : null }, true);
  };
  return (
    <Page
      title="What if"
      facts={[cluster.name, ...(node ? [node] : ["one assumed node"]), `Kubernetes ${cluster.kubernetesVersion}`]}
      headline={view === null || own === undefined ? "" : headline(pod, own, edited)}
      tiles={own === undefined || view === null ? null : <Tiles own={own} view={view} />}
    >
      <div class={`column ${answer.isCurrent || app.source.saved !== null ? "" : "stale-answer"}`} aria-busy={!answer.isCurrent}>
        {details.failure !== null ? <Failed failure={details.failure} again={details.again} /> : null}
        {view === null && answer.failure !== null ? <Failed failure={answer.failure} /> : null}
        {view === null ? null : (
          <>
            {edited === undefined ? null : <Class edited={edited} />}
            <Orders view={view} pod={pod} />
            {view.forecast === null ? null : (
              <Card title={`If ${view.forecast.growing} grows: how likely the kubelet is first`}>
                <Curve
                  height={200}
                  lines={[
                    { name: "Before", kind: "was", points: view.forecast.before },
                    { name: "After", kind: "now", points: view.forecast.after },
                  ]}
                />
                <p class="quiet">
                  <a href={href("forecast", [], { growing: view.forecast.growing, node, hard: request.kubelet.evictionHard })}>All about this forecast</a>
                </p>
              </Card>
            )}
            {edited?.patch ? <Patch patch={edited.patch} workload={edited.workload} /> : null}
            <Assumed of={view.assumptions} notes={["usage: the same before and after"]} />
          </>
        )}
      </div>
      <aside class="column turned">
        <Card title="Change" kind="controls">
          <PodPicker cluster={cluster} pod={pod} />
          {isMissing ? <p class="quiet">The pod of this address is gone, or in no order; this one goes first.</p> : null}
          <Awaited answer={details} what="Reading the pod…">
            {(page) => (
              <>
                {containers.map((each) => (
                  <Container key={each.name} container={each} isAlone={containers.length === 1} memory={memory} written={written} write={write} />
                ))}
                <fieldset>
                  <legend>Pod and node</legend>
                  <div class="row">
                    <label class="field">
                      <span>Priority</span>
                      <input type="number" step={100} value={written["priority"] ?? String(page.explanation.priority)} onInput={(event) => write("priority", event.currentTarget.value, String(page.explanation.priority))} />
                    </label>
                  </div>
                  <Amount label="Hard threshold (memory.available)" value={route.query.get("hard") ?? bytes(panel?.thresholdBytes ?? 0)} was={bytes(panel?.thresholdBytes ?? 0)} max={Math.max(memory / 8, amountOf(route.query.get("hard") ?? "") ?? 0)} change={(hard) => change({ hard: sameAmount(hard, bytes(panel?.thresholdBytes ?? 0)) ? null : hard, pod }, true)} />
                </fieldset>
              </>
            )}
          </Awaited>
          {answer.failure !== null && view !== null ? (
            <p class="refused" role="alert">
              {`The API server says no: ${answer.failure.message}`}
            </p>
          ) : null}
          {view?.notes.map((note) => (
            <p key={note} class="refused">
              {note}
            </p>
          ))}
          <button type="button" class="tool" onClick={() => change({ write: null, hard: null })} disabled={Object.keys(written).length === 0 && !route.query.get("hard")}>
            As it is
          </button>
        </Card>
      </aside>
    </Page>
  );
}

/** Make the question of what is written. */
function requestOf(pod: string, node: string, containers: readonly ContainerExplanation[], written: Written, route: Route): WhatIf {
  const edits: PodEdit[] = [];
  for (const { name } of containers) {
    const of = (side: Side) => Object.fromEntries(["memory", "cpu"].flatMap((resource) => (written[`${name}.${side}.${resource}`] === undefined ? [] : [[resource, written[`${name}.${side}.${resource}`] || null]])));
    const [requests, limits] = [of("requests"), of("limits")];
    if (Object.keys(requests).length + Object.keys(limits).length > 0) edits.push({ pod, container: name, requests, limits, priority: null });
  }
  const priority = Number(written["priority"]);
  if (written["priority"] !== undefined && Number.isInteger(priority)) edits.push({ pod, container: "", requests: {}, limits: {}, priority });
  const kubelet: KubeletEdit = { evictionHard: route.query.get("hard") ?? "", evictionSoft: "", evictionSoftGracePeriod: "", systemReserved: "", kubeReserved: "" };
  const [first] = containers;
  return { node, edits, kubelet, growing: first === undefined ? "" : `${pod}:${first.name}` };
}

function Container({ container, isAlone, memory, written, write }: { container: ContainerExplanation; isAlone: boolean; memory: number; written: Written; write: (name: string, value: string, was: string) => void }) {
  const was = (side: Side, resource: string) => container[side][resource] ?? "";
  const value = (side: Side, resource: string) => written[`${container.name}.${side}.${resource}`] ?? was(side, resource);
  const largest = Math.max(2 ** 28, ...(["requests", "limits"] as const).flatMap((side) => [amountOf(was(side, "memory")) ?? 0, (amountOf(value(side, "memory")) ?? 0) / 2]));
  const max = Math.min(memory, largest * 2);
  return (
    <fieldset>
      <legend>{isAlone ? container.name : `${container.name} (${container.type})`}</legend>
      {(["requests", "limits"] as const).map((side) => (
        <Amount key={side} label={side === "requests" ? "Memory request" : "Memory limit"} value={value(side, "memory")} was={was(side, "memory")} max={max} change={(next) => write(`${container.name}.${side}.memory`, next, was(side, "memory"))} />
      ))}
      <div class="row">
        {(["requests", "limits"] as const).map((side) => (
          <label key={side} class="field">
            <span>{side === "requests" ? "CPU request" : "CPU limit"}</span>
            <input value={value(side, "cpu")} placeholder="none" spellcheck={false} autocomplete="off" onInput={(event) => write(`${container.name}.${side}.cpu`, event.currentTarget.value, was(side, "cpu"))} />
          </label>
        ))}
      </div>
    </fieldset>
  );
}

/** Find a pod by a part of its name. */
function PodPicker({ cluster, pod }: { cluster: ClusterView; pod: string }) {
  const [text, setText] = useState<string | null>(null);
  const keys = useMemo(() => cluster.pods.filter((each) => each.evictionPlace !== null).map((each) => `${each.namespace}/${each.name}`), [cluster]);
  const typed = (text ?? "").toLowerCase();
  const found = typed === "" ? keys.slice(0, MOST_SUGGESTED) : keys.filter((each) => each.toLowerCase().includes(typed)).slice(0, MOST_SUGGESTED);
  const take = (value: string) => {
    setText(value);
    if (keys.includes(value) && value !== pod) change({ pod: value, write: null });
  };
  return (
    <label class="field">
      <span>{`Pod (${plural(keys.length, "pod")}: type to find)`}</span>
      <input data-filter list="what-if-pods" value={text ?? pod} spellcheck={false} autocomplete="off" onFocus={(event) => event.currentTarget.select()} onInput={(event) => take(event.currentTarget.value)} onBlur={() => setText(null)} onKeyDown={(event) => event.key === "Enter" && found[0] !== undefined && take(found[0])} />
      <datalist id="what-if-pods">
        {found.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
    </label>
  );
}

function Class({ edited }: { edited: EditedPod }) {
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
        {edited.pods > 1 ? <span class="quiet">{`${plural(edited.pods, "pod")} of this node change`}</span> : null}
      </p>
      <p>{edited.reasonAfter}</p>
      {isOther ? <p class="quiet">{`Before: ${edited.reasonBefore}`}</p> : null}
      <ul class="scores">
        {edited.scores.map((each) => (
          <li key={each.container}>
            <b>{each.container}</b> oom_score_adj {each.before === each.after ? null : <><del>{each.before === null ? NONE : signed(each.before)}</del> → </>}
            <b>{each.after === null ? NONE : signed(each.after)}</b> <span class="quiet">{each.reason}</span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function headline(pod: string, own: ComparedPod, edited: EditedPod | undefined): string {
  const { before, after } = own;
  if (edited === undefined && sameStanding(before, after)) return `${pod} is ${after.qosClass}, evicted ${place(after.evictionPlace, after.pods)} and killed ${place(after.killPlace, after.pods)} of ${plural(after.pods, "pod")}. Change something.`;
  const parts = [
    before.qosClass === after.qosClass ? "" : `becomes ${after.qosClass}`,
    before.evictionPlace === after.evictionPlace ? "" : `is evicted ${place(after.evictionPlace, after.pods)} instead of ${place(before.evictionPlace, before.pods)}`,
    before.killPlace === after.killPlace ? "" : `is killed ${place(after.killPlace, after.pods)} instead of ${place(before.killPlace, before.pods)}`,
  ].filter(Boolean);
  return parts.length > 0 ? `${pod} ${parts.join(", ")}.` : `${pod} keeps its class and both places.`;
}

function sameStanding(one: PodStanding, other: PodStanding): boolean {
  return one.qosClass === other.qosClass && one.evictionPlace === other.evictionPlace && one.killPlace === other.killPlace && one.oomScoreAdj === other.oomScoreAdj;
}

function place(at: number | null, of: number): string {
  return at === null ? "never" : at === 1 ? "first" : at === of ? "last" : `as number ${count(at)}`;
}

function Tiles({ own, view }: { own: ComparedPod; view: WhatIfView }) {
  const { before, after } = own;
  const was = (one: string, other: string) => (one === other ? "" : `was ${one}`);
  const score = (value: number | null) => (value === null ? NONE : signed(value));
  const at = (value: number | null) => (value === null ? NONE : `${count(value)}/${count(after.pods)}`);
  return (
    <>
      <Tile value={after.qosClass} name="QoS class" note={was(before.qosClass, after.qosClass)} kind={`class-${after.qosClass}`} />
      <Tile value={score(after.oomScoreAdj)} name="oom_score_adj" note={was(score(before.oomScoreAdj), score(after.oomScoreAdj))} />
      <Tile value={after.spared ? "spared" : at(after.evictionPlace)} name="evicted by the kubelet" note={was(at(before.evictionPlace), at(after.evictionPlace))} kind="kubelet" />
      <Tile value={at(after.killPlace)} name="killed by the kernel" note={was(at(before.killPlace), at(after.killPlace))} kind="kernel" />
      <Tile value={about(view.headroomAfterBytes)} name="until the kubelet evicts" note={was(about(view.headroomBeforeBytes), about(view.headroomAfterBytes))} kind={view.headroomAfterBytes < 0 ? "kernel" : ""} />
    </>
  );
}

/** Both orders after the edit, each pod with where it stood before. */
function Orders({ view, pod }: { view: WhatIfView; pod: string }) {
  const [shown, setShown] = useState("kubelet");
  const isKernel = shown === "kernel";
  const at = (standing: PodStanding) => (isKernel ? standing.killPlace : standing.evictionPlace) ?? Infinity;
  const rows = useMemo(() => view.pods.toSorted((one, other) => at(one.after) - at(other.after)), [view, shown]);
  const own = rows.findIndex((each) => each.pod === pod);
  const moved = view.pods.filter((each) => at(each.before) !== at(each.after)).length;
  const from = rows.length <= MOST_ROWS ? 0 : Math.max(0, Math.min(own - MOST_ROWS / 2, rows.length - MOST_ROWS));
  return (
    <Card title="Who goes first" tools={<Choice label="Order of" value={shown} options={[["kubelet", "Kubelet evicts"], ["kernel", "Kernel kills"]]} change={setShown} />}>
      <p class="quiet" role="status">
        {moved === 0 ? "No pod changes its place." : `${plural(moved, "pod")} ${moved === 1 ? "changes its" : "change their"} place.`}
      </p>
      <ol class={`who-first ${shown}`} start={from + 1}>
        {rows.slice(from, from + MOST_ROWS).map((each) => {
          const by = at(each.before) - at(each.after);
          return (
            <li key={each.pod} class={`${each.isEdited ? "edited" : ""} ${by === 0 ? "" : "moved"}`} aria-current={each.pod === pod ? "true" : undefined}>
              <span class="number">{count(at(each.after))}</span>
              <a href={href("what-if", [], { pod: each.pod })}>
                <Key of={each.pod} />
              </a>
              <Chip qosClass={each.after.qosClass} />
              <span class="by" title={by === 0 ? undefined : `was number ${at(each.before)}`}>
                {by === 0 ? "" : by > 0 ? `▲ ${count(by)} sooner` : `▼ ${count(-by)} later`}
              </span>
            </li>
          );
        })}
      </ol>
      {rows.length > MOST_ROWS ? <p class="quiet">{`Places ${count(from + 1)} to ${count(from + MOST_ROWS)} of ${count(rows.length)}.`}</p> : null}
    </Card>
  );
}

function Patch({ patch, workload }: { patch: NonNullable<EditedPod["patch"]>; workload: string }) {
  const forms = [...(patch.kubectl === null ? [] : [["kubectl", patch.kubectl] as const]), ["kustomize", patch.kustomize] as const, ["json", patch.json] as const];
  const [form, setForm] = useState<string>(forms[0]?.[0] ?? "kustomize");
  const text = forms.find(([name]) => name === form)?.[1] ?? patch.kustomize;
  return (
    <Card title="The edit as a patch" tools={<Choice label="Form of the patch" value={form} options={forms.map(([name]) => [name, name === "json" ? "JSON patch" : name])} change={setForm} />}>
      <Copyable text={text} what={`the patch of ${workload}`} />
      {patch.kubectl === null ? <p class="quiet">The API server does not change this in an existing object: it has to be made anew.</p> : null}
    </Card>
  );
}
