// The autopsy of a log, of the OOM kills and evictions in a snapshot, or of a text that is pasted.

import { useMemo, useState } from "preact/hooks";
import { plural } from "../../format";
import type { Autopsy, PastedAutopsy } from "../../schema";
import { go } from "../router";
import { pastedPath, placeOf, useAnswer } from "../source";
import { Awaited, Card, Copyable, Empty, Page, stated } from "../ui";
import type { App, ViewProps } from "../view";
import { PasteBox, pasteRoute } from "./paste";
import { AutopsyReport, isEmpty, NextSteps, ReadLine } from "./report";

export function openPasteBox(): void {
  go(pasteRoute());
}

export function AutopsyPage({ app, route }: ViewProps) {
  const pasted = route.query.get("pasted");
  if (pasted !== null) return <PastedPage key={pasted} app={app} number={pasted} />;
  if (route.query.has("paste") || !app.info.views.includes("autopsy")) return <PastePage app={app} />;
  return <SourcePage app={app} />;
}

const INVITATION = "Paste a kernel log, or what kubectl prints, to see who was killed and why";

/** The box alone. */
function PastePage({ app, note = "" }: { app: App; note?: string }) {
  return (
    <Page title="Autopsy" headline={note || INVITATION}>
      <PasteBox app={app} />
    </Page>
  );
}

/** What the source itself tells. */
function SourcePage({ app }: { app: App }) {
  const answer = useAnswer<Autopsy>(app.source, { path: app.path("autopsy") });
  const page = answer.failure === null ? answer.data : null;
  if (page === null) {
    return (
      <Page title="Autopsy">
        <div class="wide">
          <Awaited answer={answer} what="Reading the logs…">
            {() => null}
          </Awaited>
        </div>
      </Page>
    );
  }
  if (isEmpty(page)) {
    return (
      <Page title="Autopsy" headline={page.headline}>
        <div class="wide">
          <Empty title={`No OOM kills and no evictions in ${app.info.name}`} />
        </div>
        <ReadAndNext page={page} />
        <PasteBox app={app} />
      </Page>
    );
  }
  return <Shown page={page} paste="Paste a log" />;
}

/** The answer to a pasted text: kept by this page and by one that is saved from it, but not by the server. */
function PastedPage({ app, number }: { app: App; number: string }) {
  const path = pastedPath(app.info.id, number);
  const [kept] = useState(() => app.source.answers(app.info.id)[path] as PastedAutopsy | undefined);
  const lost = "The pasted text was not stored: paste it again";
  if (kept === undefined) return <PastePage app={app} note={lost} />;
  const problems = kept.problems.length > 0 ? <Problems kept={kept} /> : null;
  if (isEmpty(kept.page)) {
    return (
      <Page title="Autopsy" headline={kept.page.headline}>
        {problems}
        <ReadAndNext page={kept.page} />
        <PasteBox app={app} />
        <Command kept={kept} />
      </Page>
    );
  }
  return (
    <>
      {problems}
      <Shown page={kept.page} paste="Paste another" kept={kept} />
    </>
  );
}

function ReadAndNext({ page }: { page: Autopsy }) {
  return (
    <div class="wide stack">
      <ReadLine page={page} />
      <NextSteps page={page} />
    </div>
  );
}

/** The report, with a way to explain another log; of a pasted one also the command that does the same. */
function Shown({ page, paste, kept }: { page: Autopsy; paste: string; kept?: PastedAutopsy }) {
  const here = useMemo(() => {
    const assumptions = page.assumptions.map((each) => ({ ...each, stateWith: stated(each.stateWith) }));
    return { ...page, assumptions };
  }, [page]);
  const tools = (
    <a class="tool" href={pasteRoute()} title={`${paste} (p)`}>
      {paste}
    </a>
  );
  return (
    <AutopsyReport page={here} tools={tools}>
      {kept === undefined ? null : <Command kept={kept} />}
    </AutopsyReport>
  );
}

function Command({ kept }: { kept: PastedAutopsy }) {
  return (
    <Card title="The same on the command line">
      <p class="quiet">Pipe the text in, or paste it after the command starts and press Ctrl+D.</p>
      <Copyable text={kept.command} what="the command" />
    </Card>
  );
}

function Problems({ kept }: { kept: PastedAutopsy }) {
  return (
    <details class="problems">
      <summary>⚠ {plural(kept.problems.length, "problem")} in the pasted text</summary>
      <ul class="reasons">
        {kept.problems.map((problem, index) => (
          <li key={index}>
            {problem.message.startsWith(problem.file)
              ? problem.message
              : `${placeOf(problem)}: ${problem.message}`}
          </li>
        ))}
      </ul>
    </details>
  );
}
