// What views are made of: the parts of the design, each with its style in app.css.

import { Component, type ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Assumption } from "../schema";
import type { Answered, Failure, Lack } from "./source";

/** The component, rendered again only if one of its properties has changed. */
export function kept<Props extends object>(component: (props: Props) => ComponentChildren) {
  return class extends Component<Props> {
    override shouldComponentUpdate(next: Props): boolean {
      return (Object.keys(next) as (keyof Props)[]).some((name) => next[name] !== this.props[name]);
    }
    render() {
      return component(this.props);
    }
  };
}

/** The frame of a view: a heading with facts, the outcome in one sentence, tiles, and the content. */
export function Page(props: {
  title: string;
  facts?: readonly string[];
  description?: string;
  headline?: string;
  lead?: ComponentChildren;
  tiles?: ComponentChildren;
  tools?: ComponentChildren;
  children?: ComponentChildren;
}) {
  useLayoutEffect(() => {
    document.title = `${props.title} – podqos`;
  }, [props.title]);
  return (
    <>
      <header>
        <div class="title">
          <h1>{props.title}</h1>
          {props.facts?.length ? (
            <p class="facts">
              {props.facts.map((fact) => (
                <span key={fact}>{fact}</span>
              ))}
            </p>
          ) : null}
          {props.tools ? <div class="tools">{props.tools}</div> : null}
        </div>
        {props.description ? <p class="description">{props.description}</p> : null}
        {props.headline ? <p class="headline">{props.headline}</p> : null}
        {props.lead}
        {props.tiles ? <div class="tiles">{props.tiles}</div> : null}
      </header>
      <main>{props.children}</main>
    </>
  );
}

export function Tile({
  value,
  name,
  note = "",
  kind = "",
}: {
  value: string;
  name: string;
  note?: string;
  kind?: string;
}) {
  return (
    <div class={`tile ${kind}`}>
      <b>{value}</b>
      <span>{name}</span>
      <small>{note}</small>
    </div>
  );
}

let cards = 0;

interface CardProps {
  title: string;
  /** Of the heading, for links and tests; by default a number. */
  id?: string;
  /** `wide` for full width. */
  kind?: string;
  tools?: ComponentChildren;
  children: ComponentChildren;
}

export function Card({ title, id: given, kind = "wide", tools, children }: CardProps) {
  const [own] = useState(() => `card-${++cards}`);
  const id = given ?? own;
  return (
    <section class={`card ${kind}`} aria-labelledby={id}>
      <div class="card-head">
        <h2 id={id}>{title}</h2>
        {tools}
      </div>
      {children}
    </section>
  );
}

/** What to open instead of giving a command's option, for assumptions that name one. */
const STATED: readonly (readonly [RegExp, string])[] = [
  [/--node-memory\b/, "a Node with its capacity among the files"],
  [/--kubelet-config\b/, "a KubeletConfiguration among the files"],
  [/-f their manifests, or --system-memory\b/, "their manifests among the files"],
  [/--usage\b/, "a usage table among the files"],
  [/-f POLICIES\b/, "policies among the files"],
  [/-f NAMESPACES\b/, "Namespaces among the files"],
  [/--priority \S+=VALUE/, "a PriorityClass among the files"],
  [/--runtime-class \S+=\S+/, "a RuntimeClass among the files"],
  [/^to apply them to all: .*/, "to apply them to all: put them in the top directory"],
  [/^to choose one: .*/, "to choose one: open only that one"],
];

/** Replace options of commands with what the page offers. */
export function stated(words: string): string {
  return STATED.reduce((text, [option, here]) => text.replace(option, here), words);
}

/** How to replace an assumption, for parentheses; some say it as a sentence. */
export function howToState(words: string, translated = stated): string {
  const here = translated(words);
  if (/^(to|run|check) /.test(here)) return here;
  if (here.startsWith("permission ")) return `needs ${here}`;
  if (/^(podqos|kubectl) /.test(here)) return `see ${here}`;
  const file = /^(.+) among the files$/.exec(here);
  return file === null ? `set with ${here}` : `add ${file[1]} to the files`;
}

/** The assumptions of an answer; nothing if there are none. */
export function Assumed({
  of,
  notes = [],
  title = "Assumed",
  kind = "wide",
}: {
  of: readonly Assumption[];
  notes?: readonly string[];
  title?: string;
  kind?: string;
}) {
  const lines = [
    ...notes,
    ...of.map((each) => `${each.what}: ${each.value} (${howToState(each.stateWith)})`),
  ];
  if (lines.length === 0) return null;
  return (
    <Card title={title} kind={kind}>
      <ul class="reasons">
        {lines.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
    </Card>
  );
}

/** A class: its colour, shape and name. */
export function Chip({ qosClass }: { qosClass: string }) {
  return <span class={`chip ${qosClass}`}>{qosClass}</span>;
}

/** `namespace/name`, which may be broken after the slash. */
export function Key({ of }: { of: string }) {
  const slash = of.indexOf("/") + 1;
  return (
    <span class="key">
      {of.slice(0, slash)}
      <wbr />
      {of.slice(slash)}
    </span>
  );
}

export interface Column<Row> {
  name: string;
  cell(row: Row): ComponentChildren;
  number?: boolean;
}

/** The content of an empty table cell. */
export const NONE = "–";

/** A table whose rows become blocks on narrow screens; the first column names the row. For up to a few
 * hundred rows. */
export function Table<Row>({
  columns,
  rows,
  kind = () => "",
}: {
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  kind?: (row: Row) => string;
}) {
  return (
    <div class="table">
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col" class={column.number ? "number" : ""}>
                {column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, place) => (
            <tr key={place} class={kind(row)}>
              {columns.map((column, index) => {
                const content = column.cell(row);
                const kind = `${column.number ? "number" : ""}${content === NONE ? " none" : ""}`;
                const attributes = { class: kind, "data-name": column.name };
                return index === 0 ? (
                  <th key={column.name} {...attributes} scope="row">
                    {content}
                  </th>
                ) : (
                  <td key={column.name} {...attributes}>
                    {content}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Names and values, one per line. */
export function Facts({ of }: { of: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="told facts-list">
      {of.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A choice of a few options; `change` is called with the chosen value. */
export function Choice({
  label,
  options,
  value,
  change,
}: {
  label: string;
  options: readonly (readonly [string, string])[];
  value: string;
  change: (value: string) => void;
}) {
  return (
    <fieldset class="choice">
      <legend class="unseen">{label}</legend>
      {options.map(([each, words]) => (
        <label key={each} class={each === value ? "chosen" : ""}>
          <input
            type="radio"
            name={label}
            value={each}
            checked={each === value}
            onChange={() => change(each)}
          />
          {words}
        </label>
      ))}
    </fieldset>
  );
}

/** A drop-down list. */
export function Select({
  label,
  options,
  value,
  change,
}: {
  label: string;
  options: readonly (readonly [string, string])[];
  value: string;
  change: (value: string) => void;
}) {
  return (
    <label class="field">
      <span>{label}</span>
      <select value={value} onChange={(event) => change(event.currentTarget.value)}>
        {options.map(([each, words]) => (
          <option key={each} value={each} selected={each === value}>
            {words}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Text with a copy button. */
export function Copyable({ text, what }: { text: string; what: string }) {
  const block = useRef<HTMLPreElement>(null);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      toast(`Copied: ${what}.`);
    } catch {
      // No clipboard, for example in a file: at least select the text.
      if (block.current !== null) getSelection()?.selectAllChildren(block.current);
      toast("Selected: press Ctrl+C to copy.");
    }
  };
  return (
    <div class="copyable">
      <pre ref={block} tabIndex={0} aria-label={what}>
        {text}
      </pre>
      <button type="button" class="tool" onClick={copy} aria-label={`Copy ${what}`}>
        Copy
      </button>
    </div>
  );
}

/** An empty state: what would be here, and how to get it. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="state">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** A loading indicator; visible only after a moment. */
export function Loading({ what }: { what: string }) {
  return (
    <div class="state loading" role="status">
      <span class="spinner" aria-hidden="true" />
      {what}
    </div>
  );
}

const FAILED: Readonly<Record<Lack, string>> = {
  saved: "Not in this saved page",
  away: "No connection",
  gone: "No longer there",
  "": "Can't show this",
};

export function Failed({ failure, again }: { failure: Failure; again?: () => void }) {
  const isAway = failure.lack === "away";
  return (
    <div class={`state ${failure.needsServer ? "" : "failed"}`} role={isAway ? "status" : "alert"}>
      <h2>{FAILED[failure.lack]}</h2>
      {failure.where ? <p class="where">{failure.where}</p> : null}
      <p>{failure.message}</p>
      {isAway ? <p class="quiet">This page tries again by itself.</p> : null}
      {again && failure.lack !== "saved" ? (
        <p>
          <button type="button" class="tool" onClick={again}>
            Try again
          </button>
        </p>
      ) : null}
    </div>
  );
}

/** An answer, its loading indicator, or its error. */
export function Awaited<T>({
  answer,
  what,
  children,
}: {
  answer: Answered<T>;
  what: string;
  children: (data: T) => ComponentChildren;
}) {
  if (answer.failure !== null) return <Failed failure={answer.failure} again={answer.again} />;
  return answer.data === null ? <Loading what={what} /> : <>{children(answer.data)}</>;
}

/** A dialog; `close` is called however it was closed. */
export function Dialog({
  title,
  close,
  children,
}: {
  title: string;
  close: () => void;
  children: ComponentChildren;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog
      ref={dialog}
      onClose={close}
      onClick={(event) => event.target === dialog.current && dialog.current?.close()}
      aria-label={title}
    >
      <div class="dialog">
        <div class="card-head">
          <h2>{title}</h2>
          <button type="button" class="tool" onClick={() => dialog.current?.close()} aria-label="Close">
            ✕
          </button>
        </div>
        {children}
      </div>
    </dialog>
  );
}

interface Toast {
  id: number;
  text: string;
  isTrouble: boolean;
}

let tell: (toast: Toast) => void = () => {};
let toasts = 0;

/** Show a brief message. */
export function toast(text: string, isTrouble = false): void {
  tell({ id: ++toasts, text, isTrouble });
}

export function Toasts() {
  const [shown, setShown] = useState<readonly Toast[]>([]);
  useLayoutEffect(() => {
    tell = (toast) => {
      setShown((before) => [...before.slice(-3), toast]);
      setTimeout(
        () => setShown((before) => before.filter((each) => each.id !== toast.id)),
        toast.isTrouble ? 12_000 : 4000,
      );
    };
  }, []);
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown.map((each) => (
        <div key={each.id} class={`toast ${each.isTrouble ? "trouble" : ""}`}>
          <span>{each.text}</span>
          <button
            type="button"
            class="link"
            aria-label="Dismiss"
            onClick={() => setShown(shown.filter((other) => other !== each))}
          >
            ✕
          </button>
        </div>
      ))}
    </div>
  );
}

/** Download a file. */
export function download(name: string, content: BlobPart, type: string): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
