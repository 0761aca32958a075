// The blast radius of a source: each pod leaks in turn, and others are OOM-killed or evicted. As a sortable
// matrix and as a list.

import { useCallback, useEffect, useState } from "preact/hooks";
import type { BlastRadius, ClusterView, NodePanel } from "../../schema";
import { go, here, href } from "../router";
import { begin, jobOf, Progress, useGone, useJob, useShown } from "../run/jobs";
import { Failure, useAnswer } from "../source";
import { Empty, Failed, Loading, Page, Select, stated } from "../ui";
import type { ViewProps } from "../view";
import { Matrix } from "./matrix";
import { BlastReport } from "./report";

/** Maximum number of leaks listed individually. */
const LISTED = 10;

/** The jobs of this visit, by source and node. */
const JOBS = new Map<string, string>();

export function BlastPage({ route, app }: ViewProps) {
  const isOfNode = app.info.kind !== "scenario";
  const cluster = useAnswer<ClusterView>(app.source, isOfNode ? { path: app.path("cluster") } : null);
  const nodes = (cluster.data?.nodes ?? []).filter((node) => node.pods > 0 && !node.problem);
  const wanted = route.query.get("node") ?? riskiest(nodes)?.name ?? "";
  const id = jobOf(route, app.source, "leaks");
  const key = `${app.info.id} ${app.info.generation} ${isOfNode ? wanted : ""}`;
  const [failure, setFailure] = useState<Failure | null>(null);
  const isShown = useShown(key, route);
  const isReady = !isOfNode || nodes.length > 0;
  const start = useCallback(async () => {
    setFailure(null);
    try {
      const node = isOfNode && wanted ? { node: wanted } : {};
      const job = await begin(app.source, { kind: "blast", source: app.info.id, ...node });
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
  // A job that the server no longer has, for example because it was restarted, is started again.
  useGone(job, id, () => {
    JOBS.delete(key);
    go(href("blast", [], { ...Object.fromEntries(here().query), node: isOfNode ? wanted : null }), false);
  });
  const tools =
    isOfNode && nodes.length > 1 ? (
      <Select
        label="Node"
        value={wanted}
        options={nodes.map(({ name }) => [name, name] as const)}
        change={(node) => go(href("blast", [], { node }))}
      />
    ) : null;
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
              <p>{cluster.data.nodes.map((node) => node.problem).filter(Boolean)[0] ?? "It has no pods."}</p>
            </Empty>
          ) : (
            <Loading what="Reading the cluster…" />
          )}
        </div>
      </Page>
    );
  }
  const all = "the matrix shows all of them";
  return (
    <BlastReport radius={job.result} tools={tools} most={LISTED} all={all} stated={stated}>
      <Matrix radius={job.result} />
    </BlastReport>
  );
}

/** The node with the least headroom: what leaks there does the most harm. */
function riskiest(nodes: readonly NodePanel[]): NodePanel | undefined {
  const headroom = ({ headroomBytes }: NodePanel) => headroomBytes ?? Infinity;
  return nodes.reduce<NodePanel | undefined>(
    (least, node) => (least === undefined || headroom(node) < headroom(least) ? node : least),
    undefined,
  );
}

/** Put a job into the address without a new history entry. */
function show(id: string, node: string): void {
  go(href("blast", [id], { ...Object.fromEntries(here().query), node }), false);
}
