// What check finds, and its fixes: as a diff, and as files to download.

import { useMemo, useState } from "preact/hooks";
import { count, plural } from "../../format";
import type { CheckItem, CheckView, FixedText, FixView } from "../../schema";
import { change, here, type Route } from "../router";
import { useAnswer } from "../source";
import { Assumed, Awaited, Card, Copyable, download, Empty, Page, Select, Tile } from "../ui";
import type { App, ViewProps } from "../view";
import "./check.css";

const SEVERITIES = ["error", "warning", "info"] as const;
const SIGNS: Readonly<Record<string, string>> = { error: "✖", warning: "▲", info: "●" };
const MOST = 200;

export function CheckPage({ route, app }: ViewProps) {
  const answer = useAnswer<CheckView>(app.source, { path: app.path("check") });
  if (answer.data !== null && answer.failure === null) return <Shown view={answer.data} route={route} app={app} />;
  return (
    <Page title="Check">
      <div class="wide">
        <Awaited answer={answer} what="Checking…">
          {() => null}
        </Awaited>
      </div>
    </Page>
  );
}

function Shown({ view, route, app }: { view: CheckView; route: Route; app: App }) {
  const get = (name: string) => route.query.get(name) ?? "";
  const [severity, check, text] = [get("severity"), get("check"), get("q").toLowerCase()];
  const found = useMemo(
    // Most severe first, then in file order.
    () => SEVERITIES.flatMap((level) => view.items.filter((each) => each.severity === level)).filter((each) => (!severity || each.severity === severity) && (!check || each.check === check) && (!text || `${each.subject} ${each.reason} ${each.place} ${each.title}`.toLowerCase().includes(text))),
    [view, severity, check, text],
  );
  const fixable = view.items.filter((each) => each.isFixed);
  const byCheck = useMemo(() => grouped(view.items), [view]);
  const { summary } = view;
  return (
    <Page
      title="Check"
      facts={[plural(summary.objects, "object"), plural(summary.files, "file")]}
      headline={view.verdict || (view.items.length === 0 ? "No findings." : "")}
      tiles={
        <>
          <Tile value={count(summary.errors)} name={summary.errors === 1 ? "error" : "errors"} kind={summary.errors > 0 ? "kernel" : ""} />
          <Tile value={count(summary.warnings)} name={summary.warnings === 1 ? "warning" : "warnings"} kind={summary.warnings > 0 ? "warned" : ""} />
          <Tile value={count(summary.infos)} name={"info"} />
          <Tile value={count(fixable.length)} name="can be fixed here" kind={fixable.length > 0 ? "kubelet" : ""} />
        </>
      }
    >
      {view.items.length === 0 ? (
        <div class="wide">
          <Empty title="No findings">
            <p>{view.notes.length > 0 ? view.notes.join(" ") : "Problems that would surface under node pressure are listed here, with the fix for each."}</p>
          </Empty>
        </div>
      ) : (
        <>
          <div class="column">
            <section class="card filters" aria-label="Filters">
              <label class="field grow">
                <span>Find</span>
                <input type="search" data-filter value={get("q")} placeholder="object, reason or file ( / )" onInput={(event) => change({ q: event.currentTarget.value }, true)} />
              </label>
              <Select label="Severity" value={severity} options={[["", "all"], ...SEVERITIES.map((each) => [each, each] as const)]} change={(value) => change({ severity: value })} />
              <Select label="Check" value={check} options={[["", "all"], ...[...byCheck].map(([id, items]) => [id, `${id} ${items[0]?.checkName ?? ""} (${items.length})`] as const)]} change={(value) => change({ check: value })} />
              <p class="legend">
                <span class="quiet" role="status">{`${count(found.length)} of ${plural(view.items.length, "finding")}`}</span>
              </p>
            </section>
            <Card title="Findings">
              {found.length === 0 ? <p class="quiet">No finding matches.</p> : null}
              <ol class="findings">
                {found.slice(0, MOST).map((each, index) => (
                  <Finding key={`${each.fingerprint}-${index}`} item={each} />
                ))}
              </ol>
              {found.length > MOST ? <p class="quiet">{`${plural(found.length - MOST, "more finding")}: use the filter, or save the data as JSON.`}</p> : null}
            </Card>
          </div>
          <aside class="column turned">
            <Fixes view={view} byCheck={byCheck} app={app} route={route} />
            {view.notes.length > 0 ? (
              <Card title="About the files">
                <ul class="reasons">
                  {view.notes.map((note) => (
                    <li key={note}>{note}</li>
                  ))}
                </ul>
              </Card>
            ) : null}
            <Assumed of={view.assumptions} />
          </aside>
        </>
      )}
    </Page>
  );
}

function grouped(items: readonly CheckItem[]): Map<string, CheckItem[]> {
  const found = new Map<string, CheckItem[]>();
  for (const each of items) found.set(each.check, [...(found.get(each.check) ?? []), each]);
  return found;
}

function Finding({ item }: { item: CheckItem }) {
  return (
    <li class={`finding ${item.severity}`}>
      <h3>
        <span class="sign" aria-hidden="true">
          {SIGNS[item.severity]}
        </span>
        <span class="unseen">{`${item.severity}: `}</span>
        {item.title}
      </h3>
      <p class="finding-place">
        <b>{item.subject}</b>
        {item.container ? ` container ${item.container}` : ""} <span class="quiet">{item.place}</span>
      </p>
      <p>{item.reason}</p>
      <p class="quiet">{item.consequence}</p>
      {item.patch ? <pre tabIndex={0} aria-label={`Fix for ${item.subject}`}>{item.patch}</pre> : null}
      <p class="quiet">{`${item.check} ${item.checkName}${item.isFixed ? " · can be fixed here" : item.onRequest ? " · can be fixed here if you select its check" : ""}`}</p>
    </li>
  );
}

function Fixes({ view, byCheck, app, route }: { view: CheckView; byCheck: ReadonlyMap<string, readonly CheckItem[]>; app: App; route: Route }) {
  const chosenIn = (of: Route) => (of.query.get("fix") ?? "").split(",").filter((each) => byCheck.has(each));
  const chosen = chosenIn(route);
  const isAsked = route.query.has("fix");
  const request = useMemo(() => (isAsked ? { path: app.path("fix"), body: { checks: chosen } } : null), [app, isAsked, chosen.join()]);
  const answer = useAnswer<FixView>(app.source, request);
  const fixable = [...byCheck].filter(([, items]) => items.some((each) => each.isFixed || each.onRequest));
  const isSaved = app.source.saved !== null;
  const toggle = (id: string, on: boolean) => {
    const now = chosenIn(here()).filter((each) => each !== id);
    change({ fix: (on ? [...now, id] : now).join(",") || "all" });
  };
  if (fixable.length === 0) {
    return (
      <Card title="Fixes">
        <p class="quiet">None of these can be fixed automatically.</p>
      </Card>
    );
  }
  return (
    <Card title="Fixes">
      <fieldset class="fix-choice" disabled={isSaved}>
        <legend>{chosen.length === 0 ? "Applies everything that podqos check --fix fixes, or only the checks you select:" : "Only these checks:"}</legend>
        {fixable.map(([id, items]) => (
          <label key={id} class="check-line">
            <input type="checkbox" checked={chosen.includes(id)} onChange={(event) => toggle(id, event.currentTarget.checked)} />
            <span>{`${id} ${items[0]?.title ?? ""} (${items.filter((each) => each.isFixed || each.onRequest).length})`}</span>
          </label>
        ))}
      </fieldset>
      {isAsked ? (
        <Awaited answer={answer} what="Applying the fixes…">
          {(fixed) => <Fixed fixed={fixed} left={view.items.length} />}
        </Awaited>
      ) : (
        <button type="button" class="tool primary" disabled={isSaved} onClick={() => change({ fix: "all" })}>
          {view.canFix ? "Show the fixes as a diff" : "Show the patches"}
        </button>
      )}
    </Card>
  );
}

function Fixed({ fixed, left }: { fixed: FixView; left: number }) {
  const everything = fixed.files.map((file) => file.diff).join("");
  return (
    <div class="fixed" aria-live="polite">
      <p>{fixed.files.length + fixed.patches.length === 0 ? "Nothing to fix." : `${plural(fixed.files.length || fixed.patches.length, fixed.files.length > 0 ? "file changes" : "patch", fixed.files.length > 0 ? "files change" : "patches")}; ${count(fixed.remaining)} of ${plural(left, "finding")} ${fixed.remaining === 1 ? "is" : "are"} left.`}</p>
      {fixed.files.length > 1 ? (
        <button type="button" class="tool" onClick={() => download("podqos-fixes.diff", everything, "text/x-diff")}>
          Download everything as one diff
        </button>
      ) : null}
      {fixed.files.map((file) => (
        <Diff key={file.name} file={file} />
      ))}
      {fixed.patches.length > 0 ? <Copyable text={fixed.patches.join("\n")} what="the patches" /> : null}
      {fixed.refused.length > 0 ? (
        <>
          <h3>Not fixed</h3>
          <ul class="reasons">
            {fixed.refused.map((each) => (
              <li key={each}>{each}</li>
            ))}
          </ul>
        </>
      ) : null}
    </div>
  );
}

function Diff({ file }: { file: FixedText }) {
  const [isWhole, setWhole] = useState(false);
  const base = file.name.split("/").at(-1) ?? "fixed.yaml";
  const kind = (line: string) => (line.startsWith("@@") ? "hunk" : line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "");
  return (
    <section class="diff" aria-label={`Fixes in ${file.name}`}>
      <div class="card-head">
        <h3>{file.name}</h3>
        <span class="diff-tools">
          <button type="button" class="tool" onClick={() => download(`${base}.diff`, file.diff, "text/x-diff")}>
            Diff
          </button>
          <button type="button" class="tool" onClick={() => download(base, file.text, "application/yaml")}>
            Fixed file
          </button>
        </span>
      </div>
      <pre tabIndex={0} aria-label={`Diff of ${file.name}`}>
        {file.diff
          .replace(/\n$/, "")
          .split("\n")
          .slice(2, isWhole ? undefined : 400)
          .map((line, index) => (
            <span key={index} class={kind(line)}>
              {`${line}\n`}
            </span>
          ))}
      </pre>
      {!isWhole && file.diff.split("\n").length > 402 ? (
        <button type="button" class="link" onClick={() => setWhole(true)}>
          Show the whole diff
        </button>
      ) : null}
    </section>
  );
}
