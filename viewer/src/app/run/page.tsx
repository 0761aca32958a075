// A run inside the app: of a scenario, simulated on the server, or of a file that holds one. Other values make another run,
// to be compared with it.

import { useCallback, useEffect, useState } from "preact/hooks";
import { showRun } from "../../runPage";
import type { JobInfo, RunView } from "../../schema";
import { go, href } from "../router";
import { Failure, useAnswer } from "../source";
import { Awaited, Dom, Empty, Failed, Page, toast } from "../ui";
import type { App, ViewProps } from "../views";
import { begin, nameOf, Progress, useJob, useRuns, useShown } from "./jobs";

const EXAMPLES = "limits.memory@web=1Gi\npriority@web=1000\nkubelet.evictionHard.memory.available=1Gi\ngrowth@web=0.5";

export function RunPage({ route, app }: ViewProps) {
  if (app.info.kind === "run") return <FromFile app={app} />;
  if (app.info.kind !== "scenario") {
    return (
      <Page title="Run">
        <Empty title="No run">
          <p>Drop a scenario with its manifests, or the output of podqos simulate -o json.</p>
        </Empty>
      </Page>
    );
  }
  return <OfScenario key={route.parts[0] ?? ""} id={route.parts[0] ?? null} app={app} />;
}

function FromFile({ app }: { app: App }) {
  const answer = useAnswer<RunView>(app.source, { path: app.path("run") });
  const run = answer.failure === null ? answer.data : null;
  const make = useCallback((shown: AbortSignal) => (run === null ? [] : showRun(run, shown)), [run]);
  if (run !== null) return <Dom make={make} />;
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

function OfScenario({ id, app }: { id: string | null; app: App }) {
  const runs = useRuns(app);
  const known = runs ?? [];
  const [failure, setFailure] = useState<Failure | null>(null);
  const isShown = useShown(app.info.id);
  const start = useCallback(
    async (edits: readonly string[]) => {
      setFailure(null);
      try {
        const job = await begin(app.source, { kind: "run", source: app.info.id, ...(edits.length > 0 ? { edits } : {}) });
        if (isShown(app.info.id)) go(href("run", [job.id]));
      } catch (error) {
        const found = error instanceof Failure ? error : new Failure({ message: String(error) });
        setFailure(found);
        toast(found.message, true);
      }
    },
    [app],
  );
  // Without a run in the address, the first one of this scenario is shown, or made.
  useEffect(() => {
    if (id !== null || app.source.saved !== null || runs === null) return;
    const [first] = known;
    if (first !== undefined) go(href("run", [first.id]), false);
    else void start([]);
  }, [id, runs === null]);
  const job = useJob<RunView>(app.source, id);
  const run = job.result;
  const make = useCallback((shown: AbortSignal) => (run === null ? [] : showRun(run, shown)), [run]);
  if (id === null) return <Page title="Run">{failure === null ? null : <Failed failure={failure} again={() => void start([])} />}</Page>;
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
          {app.source.saved === null ? <Again runs={known} id={id} start={start} /> : null}
          <Dom make={make} />
        </>
      )}
    </>
  );
}

/** Run it with other values, and compare. */
function Again({ runs, id, start }: { runs: readonly JobInfo[]; id: string; start: (edits: readonly string[]) => Promise<void> }) {
  const own = runs.find((each) => each.id === id);
  const [text, setText] = useState(own?.edits.join("\n") ?? "");
  const [isBusy, setBusy] = useState(false);
  const others = runs.filter((each) => each.id !== id);
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  return (
    <section class="run-bar" aria-label="Other values">
      <details open={own !== undefined && own.edits.length > 0}>
        <summary>{`This run: ${own === undefined ? "of an earlier state" : nameOf(own)}. Run it with other values, and compare.`}</summary>
        <form
          class="card run-form"
          onSubmit={(event) => {
            event.preventDefault();
            setBusy(true);
            void start(lines).finally(() => setBusy(false));
          }}
        >
          <label class="field">
            <span>One change a line, as podqos simulate --what-if takes them</span>
            <textarea rows={4} value={text} placeholder={EXAMPLES} spellcheck={false} onInput={(event) => setText(event.currentTarget.value)} />
          </label>
          <div class="row">
            <button type="submit" class="tool primary" disabled={isBusy || lines.length === 0}>
              Run with these
            </button>
            {others.length > 0 ? (
              <p class="runs-done">
                Compare with:
                {others.map((each) => (
                  <a key={each.id} href={runs.indexOf(each) < runs.findIndex((run) => run.id === id) ? href("compare", [each.id, id]) : href("compare", [id, each.id])}>
                    {nameOf(each)}
                  </a>
                ))}
              </p>
            ) : null}
          </div>
        </form>
      </details>
    </section>
  );
}
