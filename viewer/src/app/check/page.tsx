// What check finds, grouped by check with the most severe first, and its fixes as a diff and as files.

import { useMemo } from "preact/hooks";
import { count, plural } from "../../format";
import type { CheckItem, CheckView } from "../../schema";
import { change, type Route } from "../router";
import { useAnswer } from "../source";
import { Assumed, Awaited, Card, Empty, Page, Select, Tile } from "../ui";
import type { App, ViewProps } from "../view";
import { Fixes } from "./fixes";
import { Group, type Matching } from "./groups";
import "./check.css";

const SEVERITIES = ["error", "warning", "info"] as const;
/** So few findings are shown at once. */
const FEW = 3;

export function CheckPage({ route, app }: ViewProps) {
  const answer = useAnswer<CheckView>(app.source, { path: app.path("check") });
  if (answer.data !== null && answer.failure === null) {
    return <Shown view={answer.data} route={route} app={app} />;
  }
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
  const groups = useMemo(() => matching(view, severity, check, text), [view, severity, check, text]);
  const shown = groups.reduce((sum, { items }) => sum + items.length, 0);
  const fixable = view.items.filter((item) => item.canBeFixed).length;
  const { summary } = view;
  return (
    <Page
      title="Check"
      facts={[plural(summary.objects, "object"), plural(summary.files, "file")]}
      headline={view.verdict || (view.items.length === 0 ? "No findings." : "")}
      tiles={
        <>
          <Tile
            value={count(summary.errors)}
            name={summary.errors === 1 ? "error" : "errors"}
            kind={summary.errors > 0 ? "kernel" : ""}
          />
          <Tile
            value={count(summary.warnings)}
            name={summary.warnings === 1 ? "warning" : "warnings"}
            kind={summary.warnings > 0 ? "warned" : ""}
          />
          <Tile value={count(summary.infos)} name="info" />
          <Tile value={count(fixable)} name="can be fixed here" kind={fixable > 0 ? "kubelet" : ""} />
        </>
      }
    >
      {view.items.length === 0 ? (
        <div class="wide">
          <Empty title="No findings">
            <p>{view.notes.join(" ") || "Nothing to do: no check found a problem in these objects."}</p>
          </Empty>
        </div>
      ) : (
        <>
          <div class="column">
            <Filters view={view} get={get} shown={shown} />
            <Card title="Findings by check">
              {groups.length === 0 ? <p class="quiet">No finding matches.</p> : null}
              <ul class="check-groups">
                {groups.map(({ group, items }) => (
                  <Group
                    key={group.check}
                    group={group}
                    items={items}
                    isOpen={isOpen(route, group.check, groups)}
                    isFixing={get("fixing") === group.check}
                    app={app}
                    canFix={view.canFix}
                  />
                ))}
              </ul>
            </Card>
          </div>
          <aside class="column turned">
            <Fixes view={view} app={app} route={route} />
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

/** Whether a group shows its findings: those named in the address, and everything if there is little. */
function isOpen(route: Route, check: string, groups: readonly Matching[]): boolean {
  const open = route.query.get("open");
  if (open !== null) return open.split(",").includes(check);
  return groups.length === 1 || groups.reduce((sum, { items }) => sum + items.length, 0) <= FEW;
}

function matching(view: CheckView, severity: string, check: string, text: string): readonly Matching[] {
  const words = ({ subject, reason, place, title }: CheckItem) =>
    `${subject} ${reason} ${place} ${title}`.toLowerCase();
  return view.groups
    .filter((group) => !check || group.check === check)
    .map((group) => ({
      group,
      items: group.items
        .map((index) => view.items[index] as CheckItem)
        .filter((item) => (!severity || item.severity === severity) && (!text || words(item).includes(text))),
    }))
    .filter(({ items }) => items.length > 0);
}

function Filters({ view, get, shown }: { view: CheckView; get: (name: string) => string; shown: number }) {
  const checks = view.groups.map(
    ({ check, checkName, items }) => [check, `${check} ${checkName} (${count(items.length)})`] as const,
  );
  return (
    <section class="card filters" aria-label="Filters">
      <label class="field grow">
        <span>Find</span>
        <input
          type="search"
          data-filter
          value={get("q")}
          placeholder="object, reason or file ( / )"
          onInput={(event) => change({ q: event.currentTarget.value }, true)}
        />
      </label>
      <Select
        label="Severity"
        value={get("severity")}
        options={[["", "all"], ...SEVERITIES.map((level) => [level, level] as const)]}
        change={(value) => change({ severity: value })}
      />
      <Select
        label="Check"
        value={get("check")}
        options={[["", "all"], ...checks]}
        change={(value) => change({ check: value })}
      />
      <p class="legend">
        <span class="quiet" role="status">
          {`${count(shown)} of ${plural(view.items.length, "finding")}`}
        </span>
      </p>
    </section>
  );
}
