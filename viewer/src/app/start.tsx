// The page before anything is open: a demo, a box to paste into, and a place to drop files.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { about } from "../format";
import type { SessionLimits } from "../schema";
import { Choosers, selected, type Upload } from "./opening";
import { href } from "./router";
import { Card, Empty, Page } from "./ui";
import "./start.css";

/** What can be opened, and what the page shows for it. */
const OPENED: readonly (readonly [string, string])[] = [
  [
    "manifests",
    "eviction order and OOM kill order, what-if changes, findings; " +
      "add a usage table (CSV, kubectl top pods) to rank by actual usage",
  ],
  ["a snapshot", "the same for a whole cluster, saved by podqos snapshot"],
  ["a scenario", "a simulated run, second by second; add the manifests that it names"],
  [
    "a kernel log",
    "why each process was killed, and what would have saved it; kubelet logs and kubectl describe work, too",
  ],
];

export interface Opening {
  upload: Upload;
  /** Open a text as what it is; return why that failed, or nothing. */
  paste: (text: string) => Promise<string>;
  /** Open the demo; return why that failed, or nothing. */
  demo: () => Promise<string>;
  limits: SessionLimits | null;
}

export function StartPage({ upload, paste, demo, limits }: Opening) {
  const [text, setText] = useState("");
  const [trouble, setTrouble] = useState("");
  const [isBusy, setBusy] = useState<"" | "demo" | "text">("");
  const box = useRef<HTMLTextAreaElement>(null);
  const run = async (what: "demo" | "text", open: () => Promise<string>) => {
    if (isBusy !== "") return;
    setBusy(what);
    setTrouble("");
    setTrouble(await open());
    setBusy("");
  };
  const openText = (given: string) => void run("text", () => paste(given));
  const latest = useRef(openText);
  latest.current = openText;
  useLayoutEffect(() => {
    // Wherever the focus is, there is one place for what is pasted.
    const pasted = (event: ClipboardEvent) => {
      const isField = event.target instanceof HTMLTextAreaElement || event.target instanceof HTMLInputElement;
      const files = [...(event.clipboardData?.files ?? [])];
      if (document.querySelector("dialog[open]") !== null || (isField && files.length === 0)) return;
      const given = event.clipboardData?.getData("text/plain") ?? "";
      if (files.length > 0) upload(selected(files));
      else if (given.trim() !== "") {
        setText(given);
        latest.current(given);
      } else return;
      event.preventDefault();
    };
    document.addEventListener("paste", pasted);
    return () => document.removeEventListener("paste", pasted);
  }, [upload]);
  const tools = (
    <button
      type="button"
      class="tool primary"
      disabled={isBusy !== ""}
      onClick={() => void run("demo", demo)}
    >
      {isBusy === "demo" ? "Opening…" : "Open the demo"}
    </button>
  );
  return (
    <Page
      title="Which pod dies first?"
      headline="Open manifests, a cluster snapshot, a scenario or a kernel log to find out"
    >
      <div class="wide start">
        <Card title="Demo" kind="" tools={tools}>
          <p class="quiet">
            An incident: a sidecar without limits, and a service evicted before the batch jobs that fill the
            node. This podqos computes it; nothing is downloaded.
          </p>
        </Card>
        <Card title="Drop files here" kind="drop-target">
          <p class="quiet">
            Files or a directory, anywhere on this page
            {limits ? `, up to ${about(limits.uploadBytes)}` : ""}. They are sent to podqos ui and nowhere
            else.
          </p>
          <Choosers upload={upload} />
        </Card>
        <Card title="Paste" kind="start-paste">
          <form
            class="paste"
            onKeyDown={(event) => {
              if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
              event.preventDefault();
              openText(text);
            }}
            onSubmit={(event) => {
              event.preventDefault();
              openText(text);
            }}
          >
            <label class="field tall">
              <span>YAML, JSON, a kernel log or what kubectl prints; Ctrl+V works anywhere on this page</span>
              <textarea
                ref={box}
                rows={7}
                spellcheck={false}
                autocomplete="off"
                value={text}
                onInput={(event) => setText(event.currentTarget.value)}
                aria-describedby={trouble ? "start-trouble" : undefined}
              />
            </label>
            {trouble ? (
              <p class="refused" id="start-trouble" role="alert">
                {trouble}
              </p>
            ) : null}
            <p class="row">
              <button type="submit" class="tool primary" disabled={text.trim() === "" || isBusy !== ""}>
                {isBusy === "text" ? "Reading…" : "Open pasted text"}
              </button>
            </p>
          </form>
        </Card>
        <Card title="What can be opened" kind="start-kinds">
          <dl class="told opened">
            {OPENED.map(([what, seen]) => (
              <div key={what}>
                <dt>{what}</dt>
                <dd>{seen}</dd>
              </div>
            ))}
          </dl>
        </Card>
      </div>
    </Page>
  );
}

/** The address of a source that is gone. */
export function GonePage({ open }: { open: () => void }) {
  return (
    <Page title="podqos">
      <Empty title="This source is gone">
        <p>
          Files opened in the page are deleted after a while, and only the visitor who opened them can see
          them.
        </p>
        <p>
          <button type="button" class="tool primary" onClick={open}>
            Open files
          </button>{" "}
          <a class="tool" href={href("", [], { source: null })}>
            Start
          </a>
        </p>
      </Empty>
    </Page>
  );
}
