// The view of a pod: class and why, what is stored and written for it, its place in both orders, how to be
// safer, and how it died before.

import { count, ordinal, plural, signed } from "../../format";
import type { CgroupExplanation, ContainerExplanation, PodPage as Pod } from "../../schema";
import { useTurns } from "../frames";
import { href } from "../router";
import { useAnswer } from "../source";
import { Death } from "../autopsy/death";
import "../autopsy/autopsy.css";
import { Assumed, Awaited, Card, Chip, Empty, NONE, Page, Table, Tile } from "../ui";
import type { ViewProps } from "../view";
import { podPath } from "../cluster/page";
import { Places } from "./places";
import { Protection } from "./protection";
import { Usage } from "./usage";

export function PodPage({ route, app }: ViewProps) {
  const [namespace = "", name = ""] = route.parts;
  const key = `${namespace}/${name}`;
  const answer = useAnswer<Pod>(app.source, name ? { path: podPath(app.path, key) } : null);
  const isOther = answer.data !== null && `${answer.data.namespace}/${answer.data.name}` !== key;
  if (answer.data !== null && answer.failure === null && !isOther)
    return <Shown key={key} pod={answer.data} canTry={app.source.saved === null} />;
  return (
    <Page title={name || "Pod"} tools={<Back />}>
      <div class="wide">
        {name ? (
          <Awaited answer={isOther ? { ...answer, data: null } : answer} what={`Reading ${key}…`}>
            {() => null}
          </Awaited>
        ) : (
          <Empty title="Which pod?">
            <p>Choose one on the Cluster page.</p>
          </Empty>
        )}
      </div>
    </Page>
  );
}

function Back() {
  return <a href={href("cluster")}>← Cluster</a>;
}

function Shown({ pod, canTry }: { pod: Pod; canTry: boolean }) {
  const { explanation: why, standing } = pod;
  // One card per frame, visible ones first.
  const most = 5 + why.cgroups.length;
  const turns = useTurns(most);
  const facts = [
    `namespace ${pod.namespace}`,
    ...(pod.workload ? [pod.workload] : []),
    ...(pod.node ? [`on ${pod.node}`] : []),
    `Kubernetes ${pod.kubernetesVersion}`,
  ];
  return (
    <Page
      title={pod.name}
      facts={facts}
      headline={headline(pod)}
      tools={<Back />}
      tiles={<Tiles pod={pod} />}
    >
      <div class="column">
        <Card title={`Why ${why.qosClass}`} kind="turn-1">
          <p>{why.reason}</p>
          <Containers containers={why.containers} />
          {why.notes.length > 0 ? (
            <ul class="reasons">
              {why.notes.map((note) => (
                <li key={note}>{note}</li>
              ))}
            </ul>
          ) : null}
        </Card>
        {turns > 2 ? <Usage usage={pod.usage} kind="turn-4" /> : null}
        {turns > 3 ? <Stored pod={pod} /> : null}
        {turns > 4 ? <Cgroups cgroups={why.cgroups.slice(0, turns - 4)} /> : null}
      </div>
      <aside class="column">
        {turns > 1 ? (
          <Card title="Kill orders" kind="turn-2">
            {standing === null ? (
              <p class="quiet">{pod.problem || "It is not ranked."}</p>
            ) : (
              <Places pod={pod} />
            )}
          </Card>
        ) : null}
        {turns > 2 ? (
          <>
            <Protection pod={pod} canTry={canTry} />
            <Past pod={pod} />
          </>
        ) : null}
      </aside>
      {turns === most ? <Assumed of={pod.assumptions} kind="wide turn-7" /> : null}
    </Page>
  );
}

function headline(pod: Pod): string {
  const { standing } = pod;
  if (standing === null) return pod.problem;
  const of = plural(standing.pods, "pod");
  const kubelet = standing.spared
    ? `The kubelet never evicts it (${standing.spared})`
    : standing.evictionPlace === null
      ? ""
      : `The kubelet evicts it ${nth(standing.evictionPlace, standing.pods)}`;
  const kernel =
    standing.killPlace === null ? "" : `the kernel kills it ${nth(standing.killPlace, standing.pods)}`;
  const never = standing.killPlace === null ? " The kernel cannot kill it: no container has a process." : "";
  return `${[kubelet, kernel].filter(Boolean).join(", ")} of ${of} on its node.${never}`;
}

function nth(place: number, of: number): string {
  return place === 1 ? "first" : place === of ? "last" : ordinal(place);
}

function Tiles({ pod }: { pod: Pod }) {
  const { explanation: why, standing } = pod;
  const place = (value: number | null | undefined) =>
    value === null || value === undefined || standing === null
      ? NONE
      : `${ordinal(value)} of ${count(standing.pods)}`;
  const adjustments = why.containers.flatMap((each) => (each.oomScoreAdj === null ? [] : [each.oomScoreAdj]));
  const [least, most] = [Math.min(...adjustments), Math.max(...adjustments)];
  return (
    <>
      <Tile
        value={why.qosClass}
        name="QoS class"
        note={
          why.decidedBy === ""
            ? ""
            : why.qosClassAsWritten === why.qosClass
              ? ""
              : `${why.qosClassAsWritten} as written`
        }
        kind={`class-${why.qosClass}`}
      />
      <Tile
        value={
          adjustments.length === 0
            ? NONE
            : least === most
              ? signed(most)
              : `${signed(least)} – ${signed(most)}`
        }
        name="oom_score_adj"
        note={adjustments.length > 1 ? plural(adjustments.length, "container") : ""}
      />
      <Tile
        value={standing?.spared ? "never" : place(standing?.evictionPlace)}
        name="to be evicted by the kubelet"
        note={standing?.spared ?? ""}
        kind="kubelet"
      />
      <Tile
        value={place(standing?.killPlace)}
        name="to be killed by the kernel"
        note={standing !== null && standing.killPlace === null ? "no process" : ""}
        kind="kernel"
      />
      <Tile value={count(why.priority)} name="priority" note={why.priorityClassName} />
      <Tile
        value={count(pod.deaths.length + pod.endings.length)}
        name={
          pod.deaths.length + pod.endings.length === 1 ? "past kill or eviction" : "past kills and evictions"
        }
        kind={pod.deaths.length > 0 ? "kernel" : ""}
      />
    </>
  );
}

function amounts(of: Readonly<Record<string, string>>): string {
  return (
    Object.entries(of)
      .map(([name, value]) => `${name} ${value}`)
      .join(", ") || NONE
  );
}

function Containers({ containers }: { containers: readonly ContainerExplanation[] }) {
  return (
    <Table<ContainerExplanation>
      rows={containers}
      columns={[
        {
          name: "Container",
          cell: (each) => (
            <>
              <span class="key">{each.name}</span>
              {each.type === "container" ? null : <small class="quiet">{each.type}</small>}
            </>
          ),
        },
        { name: "Requests", cell: (each) => <span class="amounts">{amounts(each.requests)}</span> },
        { name: "Limits", cell: (each) => <span class="amounts">{amounts(each.limits)}</span> },
        {
          name: "Class by resource",
          cell: (each) => (
            <span class="amounts">
              {Object.entries(each.qosClassPerResource).map(([resource, qosClass]) => (
                <span key={resource} class="by-itself">
                  {resource} <Chip qosClass={qosClass} />
                </span>
              ))}
            </span>
          ),
        },
        {
          name: "oom_score_adj",
          number: true,
          cell: (each) =>
            each.oomScoreAdj === null ? NONE : <span title={each.oomReason}>{signed(each.oomScoreAdj)}</span>,
        },
        { name: "Reason", cell: (each) => <span class="amounts quiet">{each.oomReason}</span> },
      ]}
    />
  );
}

/** What admission changed before the pod was stored. */
function Stored({ pod: { admission, explanation } }: { pod: Pod }) {
  const changes =
    admission === null
      ? explanation.policyChanges.map((each) => ({ step: "policy", ...each }))
      : admission.steps.flatMap((step) => step.changes.map((each) => ({ step: step.step, ...each })));
  // Changes of resources first: this page is about them.
  changes.sort((one, other) => Number(one.resource === null) - Number(other.resource === null));
  const refusal = admission?.refusal?.message ?? explanation.refusal;
  return (
    <Card title="Stored after admission" kind="turn-5">
      {refusal ? (
        <p class="problem">
          Rejected: {refusal}
          {admission?.refusal?.hint ? ` ${admission.refusal.hint}` : ""}
        </p>
      ) : null}
      {changes.some((each) => each.resource !== null) || refusal ? null : (
        <p class="quiet">Admission does not change requests or limits.</p>
      )}
      {changes.length > 0 ? (
        <Table
          rows={changes}
          columns={[
            { name: "Field", cell: (each) => <span class="key field-path">{each.path}</span> },
            { name: "Written", cell: (each) => (each.before === null ? NONE : String(each.before)) },
            { name: "Stored", cell: (each) => (each.after === null ? NONE : <b>{String(each.after)}</b>) },
            {
              name: "By",
              cell: (each) => (
                <span class="amounts">
                  {each.step}
                  {each.reason ? <small class="quiet">{each.reason}</small> : null}
                </span>
              ),
            },
          ]}
        />
      ) : refusal ? null : (
        <p class="quiet">
          {admission === null
            ? "The pod comes from the API server, so admission has already run."
            : "Admission changes nothing."}
        </p>
      )}
      {admission?.warnings.map((each) => (
        <p key={each.message} class="quiet">
          {each.message}
        </p>
      ))}
    </Card>
  );
}

function Cgroups({ cgroups }: { cgroups: readonly CgroupExplanation[] }) {
  if (cgroups.length === 0) return null;
  return (
    <Card title="Cgroups" kind="turn-6">
      {cgroups.map((group) => (
        <details key={group.ociPath || group.path} class="cgroup" open={group.level !== "sandbox"}>
          <summary>
            <b>{group.container || group.level}</b> <code class="key">{group.path ?? group.ociPath}</code>
          </summary>
          <Table
            rows={group.files}
            columns={[
              { name: "File", cell: (file) => <code>{file.name}</code> },
              {
                name: "Value",
                number: true,
                cell: (file) =>
                  file.value === null ? <span class="quiet">not written</span> : <code>{file.value}</code>,
              },
              { name: "Reason", cell: (file) => <span class="amounts quiet">{file.reason}</span> },
            ]}
          />
        </details>
      ))}
    </Card>
  );
}

function Past({ pod }: { pod: Pod }) {
  return (
    <Card title="Past OOM kills and evictions" kind="turn-4">
      {pod.deaths.length > 0 ? (
        <ol class="kills autopsy">
          {pod.deaths.map((death, index) => (
            <Death key={index} death={death} number={index + 1} isFirst={index === 0} />
          ))}
        </ol>
      ) : null}
      {pod.endings.length > 0 ? (
        <ul class="reasons">
          {pod.endings.map((each) => (
            <li key={each}>{each}</li>
          ))}
        </ul>
      ) : null}
      {pod.deaths.length + pod.endings.length === 0 ? (
        <p class="quiet">None known. Add a kernel log to see more.</p>
      ) : null}
    </Card>
  );
}
