// The findings of one check: what and how often; opened, the fix for all and what is affected.

import { useLayoutEffect, useMemo, useState } from "preact/hooks";
import { count, plural } from "../../format";
import type { CheckGroup, CheckItem, FixView } from "../../schema";
import { change, here } from "../router";
import { useAnswer } from "../source";
import { Awaited } from "../ui";
import type { App } from "../view";
import { useWindow } from "../windowed";
import { Fixed } from "./fixes";

const SIGNS: Readonly<Record<string, string>> = { error: "✖", warning: "▲", info: "●" };
/** Longer lists are rendered where the reader looks. */
const MOST_WHOLE = 60;
/** The height of a finding until it is measured, in pixels. */
const USUAL_HEIGHT = 33;

/** A group with those of its findings that match the filter. */
export interface Matching {
  group: CheckGroup;
  items: readonly CheckItem[];
}

interface GroupProps extends Matching {
  isOpen: boolean;
  isFixing: boolean;
  canFix: boolean;
  app: App;
}

export function Group({ group, items, isOpen, isFixing, canFix, app }: GroupProps) {
  const isSaved = app.source.saved !== null;
  const fixing = useMemo(
    () => (isFixing ? { path: app.path("fix"), body: { checks: [group.check] } } : null),
    [app, isFixing, group.check],
  );
  const answer = useAnswer<FixView>(app.source, fixing);
  const id = `group-${group.check}`;
  const all = group.items.length;
  const number = items.length === all ? count(all) : `${count(items.length)} of ${count(all)}`;
  return (
    <li class={`check-group ${group.severity}`}>
      <h3>
        <button
          type="button"
          aria-expanded={isOpen}
          aria-controls={id}
          onClick={() => toggle(group.check, isOpen)}
        >
          <span class="sign" aria-hidden="true">
            {SIGNS[group.severity]}
          </span>
          <span class="unseen">{`${group.severity}: `}</span>
          <span class="group-title">{group.title}</span>
          <span class="group-count">{number}</span>
        </button>
      </h3>
      <p class="group-who">
        {group.subjects} <span class="quiet">{note(group)}</span>
      </p>
      <div id={id} class="group-body" hidden={!isOpen}>
        {isOpen ? (
          <>
            {group.reason ? <p>{`${group.reason}.`}</p> : null}
            {group.consequence ? <p class="quiet">{sentence(group.consequence)}</p> : null}
            {all > 1 && group.patch ? (
              <pre tabIndex={0} aria-label={`Fix for all findings of ${group.check}`}>
                {group.patch}
              </pre>
            ) : null}
            {group.fix ? (
              <p>
                <button
                  type="button"
                  class="tool primary"
                  disabled={isSaved}
                  aria-expanded={isFixing}
                  onClick={() => change({ fixing: isFixing ? null : group.check })}
                >
                  {isFixing ? "Hide the fix" : `${group.fix}: show the ${canFix ? "diff" : "patches"}`}
                </button>
              </p>
            ) : null}
            {isFixing ? (
              <Awaited answer={answer} what="Trying the fixes…">
                {(fixed) => <Fixed fixed={fixed} left={all} heading="h4" />}
              </Awaited>
            ) : null}
            <h4>{`${plural(group.objects, "affected object")}`}</h4>
            {items.length > MOST_WHOLE ? (
              <Windowed group={group} items={items} />
            ) : (
              <ol class="findings">
                {items.map((item, index) => (
                  <li key={index} class="finding">
                    <Finding item={item} group={group} />
                  </li>
                ))}
              </ol>
            )}
          </>
        ) : null}
      </div>
    </li>
  );
}

function note({ check, checkName, fix }: CheckGroup): string {
  return `${check} ${checkName}${fix ? " · can be fixed here" : ""}`;
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

/** Open or close a group. */
function toggle(check: string, isOpen: boolean): void {
  const open = (here().query.get("open") ?? "").split(",").filter((other) => other !== "" && other !== check);
  change({ open: (isOpen ? open : [...open, check]).join(",") || "none" });
}

function Finding({ item, group }: { item: CheckItem; group: CheckGroup }) {
  const shared = new Set(group.items.length > 1 ? group.patch.split("\n") : []);
  const patch = item.patch.split("\n").filter((line) => !shared.has(line));
  return (
    <>
      <p class="finding-place">
        <b>{item.subject}</b>
        {item.container ? ` container ${item.container}` : ""} <span class="quiet">{item.place}</span>
        {item.also ? <span class="quiet"> (also {item.also})</span> : null}
      </p>
      {group.reason ? null : <p>{item.reason}</p>}
      {group.consequence || !item.consequence ? null : <p class="quiet">{item.consequence}</p>}
      {patch.join("") ? (
        <pre tabIndex={0} aria-label={`Fix for ${item.subject}`}>
          {patch.join("\n")}
        </pre>
      ) : null}
      {item.isFixed || !item.onRequest ? null : <p class="quiet">Fixed only if you ask for this check.</p>}
    </>
  );
}

/** A long list: only what is near the visible part is rendered, each at its measured height. */
function Windowed({ group, items }: Matching) {
  const [heights, setHeights] = useState<ReadonlyMap<number, number>>(new Map());
  const tops = useMemo(() => {
    const all = new Float64Array(items.length + 1);
    for (let index = 0; index < items.length; index++) {
      all[index + 1] = (all[index] as number) + (heights.get(index) ?? USUAL_HEIGHT);
    }
    return all;
  }, [items, heights]);
  const window = useWindow(tops);
  useLayoutEffect(() => setHeights(new Map()), [items]);
  useLayoutEffect(() => {
    const measured = [...(window.ref.current?.children ?? [])].map((row) => {
      const index = Number((row as HTMLElement).dataset["index"]);
      return [index, (row as HTMLElement).offsetHeight] as const;
    });
    const different = measured.filter(([index, height]) => height > 0 && heights.get(index) !== height);
    if (different.length > 0) setHeights(new Map([...heights, ...different]));
  });
  const rows = items.slice(window.from, window.to);
  return (
    <div ref={window.ref} role="list" class="findings windowed" style={{ height: `${window.height}px` }}>
      {rows.map((item, offset) => {
        const index = window.from + offset;
        return (
          <div
            key={index}
            role="listitem"
            aria-setsize={items.length}
            aria-posinset={index + 1}
            class="finding"
            data-index={index}
            style={{ top: `${window.top(index)}px` }}
          >
            <Finding item={item} group={group} />
          </div>
        );
      })}
    </div>
  );
}
