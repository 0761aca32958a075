// The autopsy of a log, of the OOM kills and evictions in a snapshot, or of a text that is pasted.

import { render } from "preact";
import { useCallback, useMemo, useState } from "preact/hooks";
import { isEmpty, leadOf, nextSteps, readLine, showAutopsy } from "../../autopsy";
import { h } from "../../dom";
import { plural } from "../../format";
import type { AutopsyPage as Autopsy, PastedAutopsy } from "../../schema";
import { go } from "../router";
import { pastedPath, placeOf, useAnswer } from "../source";
import { Awaited, Card, Copyable, Dom, Empty, Page, stated } from "../ui";
import type { App, ViewProps } from "../view";
import { PasteBox, pasteRoute } from "./paste";

export function openPasteBox(): void {
  go(pasteRoute());
}

export function AutopsyPage({ app, route }: ViewProps) {
  const pasted = route.query.get("pasted");
  if (pasted !== null) return <PastedPage key={pasted} app={app} number={pasted} />;
  if (route.query.has("paste") || !app.info.views.includes("autopsy")) return <PastePage app={app} />;
  return <SourcePage app={app} />;
}

/** The box alone. */
function PastePage({ app, note = "" }: { app: App; note?: string }) {
  return (
    <Page title="Autopsy" headline={note || "Paste a kernel log, or what kubectl prints, to see who was killed and why"}>
      <PasteBox app={app} />
    </Page>
  );
}

/** What the source itself tells. */
function SourcePage({ app }: { app: App }) {
  const answer = useAnswer<Autopsy>(app.source, { path: app.path("autopsy") });
  const page = answer.failure === null ? answer.data : null;
  const make = useCallback(() => (page === null ? [] : shown(page, [pasteButton("Paste a log")])), [page]);
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
      <Page title="Autopsy" headline={leadOf(page)}>
        <div class="wide">
          <Empty title={`No OOM kills and no evictions in ${app.info.name}`} />
        </div>
        <ReadAndNext page={page} />
        <PasteBox app={app} />
      </Page>
    );
  }
  return <Dom make={make} />;
}

/** The answer to a pasted text: kept by this page, and by a page that is saved from it, but not by the server. */
function PastedPage({ app, number }: { app: App; number: string }) {
  const [kept] = useState(() => app.source.answers(app.info.id)[pastedPath(app.info.id, number)] as PastedAutopsy | undefined);
  const page = kept?.page;
  const make = useCallback(() => {
    if (kept === undefined) return [];
    const command = h("div", { class: "wide" });
    render(<Command kept={kept} />, command);
    return shown(kept.page, [pasteButton("Paste another")], [command]);
  }, [kept]);
  const problems = useMemo(() => (kept === undefined || kept.problems.length === 0 ? null : <Problems kept={kept} />), [kept]);
  if (kept === undefined || page === undefined) return <PastePage app={app} note="The pasted text was not stored: paste it again" />;
  if (isEmpty(page)) {
    return (
      <Page title="Autopsy" headline={leadOf(page)}>
        {problems}
        <ReadAndNext page={page} />
        <PasteBox app={app} />
        <Command kept={kept} />
      </Page>
    );
  }
  return (
    <>
      {problems}
      <Dom make={make} />
    </>
  );
}

function ReadAndNext({ page }: { page: Autopsy }) {
  const make = useCallback(() => [...readLine(page), ...nextSteps(page)], [page]);
  return (
    <div class="wide stack">
      <Dom make={make} />
    </div>
  );
}

function shown(page: Autopsy, tools: readonly HTMLElement[], cards: readonly HTMLElement[] = []): readonly HTMLElement[] {
  return showAutopsy({ ...page, assumptions: page.assumptions.map(stated) }, { tools, cards });
}

function pasteButton(words: string): HTMLElement {
  return h("a", { class: "tool", href: pasteRoute(), title: `${words} (p)` }, words);
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
        {kept.problems.map((each, index) => (
          <li key={index}>{each.message.startsWith(each.file) ? each.message : `${placeOf(each)}: ${each.message}`}</li>
        ))}
      </ul>
    </details>
  );
}

