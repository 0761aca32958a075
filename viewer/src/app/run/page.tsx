// A run inside the app: of a scenario, simulated on the server, or of a file that holds one. Other values
// make another run, to be compared with it.

import { useCallback, useEffect, useState } from "preact/hooks";
import type { RunView } from "../../schema";
import { go, here, href } from "../router";
import { Failure, useAnswer } from "../source";
import { Awaited, Empty, Failed, Page, toast } from "../ui";
import type { App, ViewProps } from "../view";
import { Again } from "./again";
import { begin, jobOf, Progress, useGone, useJob, useRuns, useShown } from "./jobs";
import { RunReport } from "./report";

export function RunPage({ route, app }: ViewProps) {
  if (app.info.kind === "run") return <FromFile app={app} />;
  if (app.info.kind !== "scenario") {
    return (
      <Page title="Run">
        <Empty title="No run yet">
          <p>Open a scenario with its manifests, or the output of podqos simulate -o json.</p>
        </Empty>
      </Page>
    );
  }
  return <OfScenario key={route.parts[0] ?? ""} route={route} app={app} />;
}

function FromFile({ app }: { app: App }) {
  const answer = useAnswer<RunView>(app.source, { path: app.path("run") });
  const run = answer.failure === null ? answer.data : null;
  if (run !== null) return <RunReport run={run} />;
  return (
    <Page title="Run">
      <div class="wide">
        <Awaited answer={answer} what="Reading the run…">
          {() => null}
        </Awaited>
      </div>
    </Page>
  );
}

/** The changes in the address, which stay while their run is computed. */
function asked(): Record<string, string | null> {
  const { query } = here();
  return { edits: query.get("edits"), of: query.get("of") };
}

function OfScenario({ route, app }: ViewProps) {
  const id = jobOf(route, app.source, "kills");
  const runs = useRuns(app);
  const known = runs ?? [];
  const [failure, setFailure] = useState<Failure | null>(null);
  const isShown = useShown(app.info.id, route);
  const start = useCallback(
    async (edits: readonly string[]) => {
      setFailure(null);
      try {
        const job = await begin(app.source, {
          kind: "run",
          source: app.info.id,
          ...(edits.length > 0 ? { edits } : {}),
        });
        if (!isShown(app.info.id)) return;
        // A changed run is shown in comparison with the unchanged one.
        const plain = runs?.find((each) => each.edits.length === 0);
        go(
          edits.length > 0 && plain !== undefined
            ? href("compare", [plain.id, job.id])
            : href("run", [job.id], edits.length > 0 ? {} : asked()),
        );
      } catch (error) {
        const found = error instanceof Failure ? error : new Failure({ message: String(error) });
        setFailure(found);
        toast(found.message, true);
      }
    },
    [app, runs],
  );
  // Without a run in the address, show the first one of this scenario, or start it.
  useEffect(() => {
    if (id !== null || app.source.saved !== null || runs === null || !isShown(app.info.id)) return;
    const [first] = known;
    if (first !== undefined) go(href("run", [first.id], asked()), false);
    else void start([]);
  }, [id, runs === null]);
  const job = useJob<RunView>(app.source, id);
  // A run that the server no longer has, for example because it was restarted, is computed again.
  useGone(job, id, () => go(href("run", [], asked()), false));
  const run = job.result;
  if (id === null)
    return (
      <Page title="Run">
        {failure === null ? null : <Failed failure={failure} again={() => void start([])} />}
      </Page>
    );
  const own = known.find((each) => each.id === id);
  return (
    <>
      {run === null ? (
        <Page title={app.info.name} facts={own?.edits ?? []}>
          <div class="wide">
            <Progress job={job} what="Simulating" again={() => void start(own?.edits ?? [])} />
          </div>
        </Page>
      ) : (
        <>
          {app.source.saved === null ? (
            <Again app={app} run={run} runs={known} id={id} start={start} />
          ) : null}
          <RunReport run={run} />
        </>
      )}
    </>
  );
}
