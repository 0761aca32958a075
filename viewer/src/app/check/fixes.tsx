// The fixes: what changes in which file, as a diff to read, copy and download; of a cluster, as patches.

import { useMemo, useState } from "preact/hooks";
import { count, plural } from "../../format";
import type { CheckView, FixedText, FixView } from "../../schema";
import { change, here, type Route } from "../router";
import { useAnswer } from "../source";
import { Awaited, Card, Copyable, download } from "../ui";
import type { App } from "../view";

const MOST_LINES = 400;

export function Fixes({ view, app, route }: { view: CheckView; app: App; route: Route }) {
  const fixable = view.groups.filter((group) => group.fixable > 0);
  const ids = new Set(fixable.map((group) => group.check));
  const chosenIn = (of: Route) => (of.query.get("fix") ?? "").split(",").filter((id) => ids.has(id));
  const chosen = chosenIn(route);
  const isAsked = route.query.has("fix");
  const request = useMemo(
    () => (isAsked ? { path: app.path("fix"), body: { checks: chosen } } : null),
    [app, isAsked, chosen.join()],
  );
  const answer = useAnswer<FixView>(app.source, request);
  const isSaved = app.source.saved !== null;
  const toggle = (id: string, on: boolean) => {
    const now = chosenIn(here()).filter((other) => other !== id);
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
        <legend>
          {chosen.length === 0
            ? "What podqos check --fix writes, or only the checks you select:"
            : "Only these checks:"}
        </legend>
        {fixable.map((group) => (
          <label key={group.check} class="check-line">
            <input
              type="checkbox"
              checked={chosen.includes(group.check)}
              onChange={(event) => toggle(group.check, event.currentTarget.checked)}
            />
            <span>{`${group.check} ${group.title} (${count(group.fixable)})`}</span>
          </label>
        ))}
      </fieldset>
      {isAsked ? (
        <Awaited answer={answer} what="Trying the fixes…">
          {(fixed) => <Fixed fixed={fixed} left={view.items.length} heading="h3" />}
        </Awaited>
      ) : (
        <button type="button" class="tool primary" disabled={isSaved} onClick={() => change({ fix: "all" })}>
          {view.canFix ? "Show the fixes as a diff" : "Show the patches"}
        </button>
      )}
    </Card>
  );
}

interface FixedProps {
  fixed: FixView;
  /** How many findings there were before. */
  left: number;
  /** The level of headings inside. */
  heading: "h3" | "h4";
}

/** What the fixes change. */
export function Fixed({ fixed, left, heading: Heading }: FixedProps) {
  const everything = fixed.files.map((file) => file.diff).join("");
  const changes =
    fixed.files.length > 0
      ? `${plural(fixed.files.length, "file")} ${fixed.files.length === 1 ? "changes" : "change"}`
      : plural(fixed.patches.length, "patch", "patches");
  const verb = fixed.remaining === 1 ? "is" : "are";
  const rest =
    fixed.remaining === 0
      ? "No finding is left."
      : `${count(fixed.remaining)} of ${plural(left, "finding")} ${verb} left.`;
  return (
    <div class="fixed" aria-live="polite">
      <p>
        {fixed.files.length + fixed.patches.length === 0
          ? "Nothing to fix: no fix that was tried is an improvement."
          : `${changes}. ${rest}`}
      </p>
      {fixed.files.length > 1 ? (
        <button
          type="button"
          class="tool"
          onClick={() => download("podqos-fixes.diff", everything, "text/x-diff")}
        >
          Download everything as one diff
        </button>
      ) : null}
      {fixed.files.map((file) => (
        <Diff key={file.name} file={file} heading={Heading} />
      ))}
      {fixed.patches.length > 0 ? <Copyable text={fixed.patches.join("\n")} what="the patches" /> : null}
      {fixed.refused.length > 0 ? (
        <>
          <Heading>Not fixed</Heading>
          <ul class="reasons">
            {fixed.refused.map((reason) => (
              <li key={reason}>{reason}</li>
            ))}
          </ul>
        </>
      ) : null}
    </div>
  );
}

function Diff({ file, heading: Heading }: { file: FixedText; heading: "h3" | "h4" }) {
  const [isWhole, setWhole] = useState(false);
  const base = file.name.split("/").at(-1) ?? "fixed.yaml";
  const lines = file.diff.replace(/\n$/, "").split("\n").slice(2);
  return (
    <section class="diff" aria-label={`Fixes in ${file.name}`}>
      <div class="card-head">
        <Heading>{file.name}</Heading>
        <span class="diff-tools">
          <button
            type="button"
            class="tool"
            onClick={() => download(`${base}.diff`, file.diff, "text/x-diff")}
          >
            Diff
          </button>
          <button type="button" class="tool" onClick={() => download(base, file.text, "application/yaml")}>
            Fixed file
          </button>
        </span>
      </div>
      <pre tabIndex={0} aria-label={`Diff of ${file.name}`}>
        {lines.slice(0, isWhole ? undefined : MOST_LINES).map((line, index) => (
          <span key={index} class={kindOf(line)}>
            {`${line}\n`}
          </span>
        ))}
      </pre>
      {!isWhole && lines.length > MOST_LINES ? (
        <button type="button" class="link" onClick={() => setWhole(true)}>
          Show the whole diff
        </button>
      ) : null}
    </section>
  );
}

function kindOf(line: string): string {
  if (line.startsWith("@@")) return "hunk";
  return line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "";
}
