// The box that an OOM log is pasted into. The text is sent to podqos ui, which keeps nothing of it; the
// answer is kept by this page alone.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { about, plural } from "../../format";
import type { PastedAutopsy } from "../../schema";
import { go, href } from "../router";
import { Failure, pastedPath, ServerSource } from "../source";
import { Card, Copyable } from "../ui";
import type { App } from "../view";

/** What can be pasted, and where it comes from. */
const EXAMPLES: readonly (readonly [string, string])[] = [
  ["dmesg -T", "the node's kernel log: every OOM kill, with the reason and what would have prevented it"],
  ["journalctl -k", "the same, in any output format, also as your log service exports it"],
  ["kubectl describe pod POD", "one pod: OOMKilled, exit code 137, its limits and events"],
  ["kubectl get pods,nodes,events -A -o yaml", "who was killed or evicted in the cluster"],
  ["journalctl -u kubelet", "evictions, and the reason for each"],
];

/** A field with more characters than this takes seconds to react: the beginning is shown instead. */
const LONG = 200_000;
const FIRST = 12;
const MOST_COLUMNS = 300;

/** The text in the box, while the page is open; nowhere else. */
let draft = "";
let pastes = 0;

export function pasteRoute(): string {
  return href("autopsy", [], { paste: true });
}

/** Have a text explained next to a source; return the address of the answer, which only this page keeps. */
export async function explainPasted(
  source: ServerSource,
  text: Blob,
  beside: string,
  { of = null, signal }: { of?: string | null; signal?: AbortSignal } = {},
): Promise<string> {
  const answer = await source.paste<PastedAutopsy>(text, of, signal ?? new AbortController().signal);
  const number = String(++pastes);
  source.keep({ path: pastedPath(beside, number) }, answer);
  return href("autopsy", [], { pasted: number });
}

export function PasteBox({ app }: { app: App }) {
  return (
    <>
      {app.source instanceof ServerSource ? <Box app={app} source={app.source} /> : <Saved />}
      <Card title="What to paste">
        <dl class="told opened examples">
          {EXAMPLES.map(([command, told]) => (
            <div key={command}>
              <dt>
                <code>{command}</code>
              </dt>
              <dd>{told}</dd>
            </div>
          ))}
        </dl>
      </Card>
    </>
  );
}

function Box({ app, source }: { app: App; source: ServerSource }) {
  const [text, setText] = useState(draft);
  const [trouble, setTrouble] = useState("");
  const [isAsking, setAsking] = useState(false);
  const hasPods = app.info.views.includes("cluster") && app.info.kind !== "scenario";
  const [isNamed, setNamed] = useState(hasPods);
  const box = useRef<HTMLTextAreaElement>(null);
  const long = useRef<HTMLPreElement>(null);
  const lines = useMemo(() => text.split("\n"), [text]);
  const control = useRef<AbortController | null>(null);
  const limit = app.session.limits?.pasteBytes ?? 0;
  const tooLarge = (size: number) =>
    `This is ${about(size)} of text; at most ${about(limit)} can be pasted. ` +
    "Paste the lines around one OOM kill, or run podqos autopsy FILE.";
  const write = (now: string) => {
    draft = now;
    setText(now);
    setTrouble("");
  };
  const clear = () => {
    write("");
    requestAnimationFrame(() => box.current?.focus());
  };
  const explain = async () => {
    if (text.trim() === "" || isAsking) return;
    const body = new Blob([text]);
    if (limit > 0 && body.size > limit) return setTrouble(tooLarge(body.size));
    control.current = new AbortController();
    const { signal } = control.current;
    setAsking(true);
    setTrouble("");
    try {
      go(await explainPasted(source, body, app.info.id, { of: isNamed ? app.info.id : null, signal }));
    } catch (error) {
      if (!signal.aborted) setTrouble(error instanceof Failure ? error.message : String(error));
    }
    setAsking(false);
  };
  useLayoutEffect(() => {
    const paste = (event: ClipboardEvent) => {
      const isHere = event.target === box.current;
      const isField = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement;
      if (!isHere && (isField || document.querySelector("dialog[open]") !== null)) return;
      const given = event.clipboardData?.getData("text/plain") ?? "";
      const size = given.length > limit / 4 ? new Blob([given]).size : given.length;
      if (limit > 0 && size > limit) setTrouble(tooLarge(size));
      else if (given === "" || (isHere && given.length <= LONG)) return;
      else {
        // Wherever the focus is, there is one place for a log.
        write(given);
        requestAnimationFrame(() => (box.current ?? long.current)?.focus());
      }
      event.preventDefault();
    };
    document.addEventListener("paste", paste);
    return () => document.removeEventListener("paste", paste);
  }, [limit]);
  useLayoutEffect(() => {
    // What is pasted next replaces what was explained.
    if (draft !== "") box.current?.select();
    long.current?.focus({ preventScroll: true });
    return () => control.current?.abort();
  }, []);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      void explain();
    }
  };
  return (
    <Card title="Paste">
      <form
        class="paste"
        onKeyDown={onKeyDown}
        onSubmit={(event) => {
          event.preventDefault();
          void explain();
        }}
      >
        {text.length > LONG ? (
          <pre class="long" ref={long} tabIndex={0} aria-label="The beginning of the pasted text">
            {lines.slice(0, FIRST).map((line) => `${line.slice(0, MOST_COLUMNS)}\n`)}
            {lines.length > FIRST ? `… ${plural(lines.length - FIRST, "more line")}` : ""}
          </pre>
        ) : (
          <label class="field tall">
            <span>
              Kernel log, kubectl output, kubelet log{limit > 0 ? `, up to ${about(limit)}` : ""}. It is sent
              to podqos ui, nowhere else, and not stored.
            </span>
            <textarea
              ref={box}
              rows={12}
              spellcheck={false}
              autocomplete="off"
              value={text}
              onInput={(event) => write(event.currentTarget.value)}
              aria-describedby={trouble ? "paste-trouble" : undefined}
            />
          </label>
        )}
        {hasPods ? (
          <label class="check">
            <input
              type="checkbox"
              checked={isNamed}
              onChange={(event) => setNamed(event.currentTarget.checked)}
            />
            <span>Match victims to the pods of {app.info.name}</span>
          </label>
        ) : null}
        {trouble ? (
          <p class="refused" id="paste-trouble" role="alert">
            {trouble}
          </p>
        ) : null}
        <p class="row">
          <button
            type="submit"
            class="tool primary"
            disabled={text.trim() === "" || isAsking}
            title="Explain (Ctrl+Enter)"
          >
            {isAsking ? "Reading…" : "Explain"}
          </button>
          {text === "" ? null : (
            <button type="button" class="tool" onClick={clear}>
              Clear
            </button>
          )}
          {text === "" ? null : <span class="quiet">{plural(lines.length, "line")}</span>}
        </p>
      </form>
    </Card>
  );
}

/** In a saved page there is no one to read the text. */
function Saved() {
  return (
    <Card title="Paste">
      <p>
        This saved page cannot read a log: that needs podqos on your machine. Start the page with podqos ui
        and paste the log there, or run:
      </p>
      <Copyable text="dmesg | podqos autopsy -" what="the command" />
    </Card>
  );
}
