// The app around the views: navigation, sources, live indicator, files that are dropped, saving, keys.

import { render } from "preact";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { plural } from "../format";
import { isTyping, toggleTheme } from "../frame";
import type { Saved } from "../run";
import { age, since, useLive, type Live } from "./live";
import { useLater } from "./frames";
import { comeBack, leave } from "./places";
import { go, here, href, useRoute, type Route } from "./router";
import { Failure, keyOf, placeOf, SavedSource, ServerSource, useAnswer, type Source } from "./source";
import type { ClusterView, Session, SourceInfo } from "../schema";
import { Awaited, Dialog, download, Empty, toast, Toasts } from "./ui";
import type { App, View } from "./view";
import { VIEWS } from "./views";

const START = "start";
/** What is open where nothing is. */
const NOTHING: SourceInfo = { id: START, kind: "", name: "nothing", files: [], views: [], problems: [], generation: 0, isLive: false };
/** Input that is meant for the chosen view, not for the one before. */
const NEXT = ["keydown", "pointerdown", "click"] as const;
/** The first view for each kind of opened source. */
const FIRST_VIEWS: Readonly<Record<string, string>> = { scenario: "run", run: "run", log: "autopsy" };

export function startApp(place: HTMLElement, saved: Saved | null): void {
  const source: Source = saved === null ? new ServerSource() : new SavedSource(saved);
  if (saved?.route && !location.hash) history.replaceState(null, "", saved.route);
  render(<Shell source={source} />, place);
}

function Shell({ source }: { source: Source }) {
  const answer = useAnswer<Session>(source, { path: "/api/session" });
  const route = useRoute();
  return (
    <div class="app">
      <Awaited answer={answer} what="Reading…">
        {(session) => <Opened source={source} session={session} route={route} reload={answer.again} />}
      </Awaited>
      <Toasts />
    </div>
  );
}

function Opened({ source, session, route, reload }: { source: Source; session: Session; route: Route; reload: () => void }) {
  // An opened source is shown at once, before the server lists it.
  const [opened, setOpened] = useState<SourceInfo | null>(null);
  useLayoutEffect(() => setOpened(null), [session]);
  const sources = opened === null || session.sources.some((each) => each.id === opened.id) ? session.sources : [...session.sources, opened];
  const id = route.query.get("source") ?? sources[0]?.id ?? START;
  const info = sources.find((each) => each.id === id) ?? null;
  const isLive = info !== null && info.isLive && source.saved === null;
  const path = useCallback((rest: string) => `/api/sources/${encodeURIComponent(id)}/${rest}`, [id]);
  const live = useLive(source instanceof ServerSource, {
    jobs: (jobs) => (source as ServerSource).tellJobs(jobs),
    state: (cluster) => {
      (source as ServerSource).tellState(START, cluster);
      // Files may have other problems now; a cluster changes too often to ask.
      if (session.sources.some((each) => each.id === START && each.kind !== "snapshot")) reload();
    },
    restarted: () => (source as ServerSource).tellRestarted(),
  });
  const [window, setWindow] = useState<"help" | "open" | null>(null);
  const view = viewOf(route, info);
  // A view that needs no source is about what is given to it there.
  const about = info ?? (view?.isFree === true && sources.length === 0 && id === START ? NOTHING : null);
  const app = useMemo<App | null>(() => (about === null ? null : { source, session, info: about, live: isLive ? live : null, path }), [source, session, about, isLive, live, path]);
  const place = useRef<HTMLDivElement>(null);
  // The new view is rendered one frame after the navigation shows it as selected.
  const wanted = `${view?.id ?? ""}/${route.parts.join("/")}/${id}`;
  const shown = useLater(wanted, NEXT);
  const last = useRef({ view, route, app, id });
  if (shown === wanted) last.current = { view, route, app, id };
  useLayoutEffect(() => (leave() && shown === wanted ? comeBack() : undefined), [route]);
  const before = useRef(shown);
  useLayoutEffect(() => {
    if (before.current === shown) return;
    before.current = shown;
    scrollTo(0, 0);
    place.current?.focus({ preventScroll: true });
    return comeBack();
  }, [shown]);

  const bar = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    // Sticky elements below the bar need its height.
    const observer = new ResizeObserver(() => document.documentElement.style.setProperty("--bar", `${bar.current?.offsetHeight ?? 0}px`));
    if (bar.current !== null) observer.observe(bar.current);
    return () => observer.disconnect();
  }, []);

  const upload = useCallback(
    async (files: readonly File[]) => {
      if (!(source instanceof ServerSource)) return toast("This is a saved page: start podqos ui to open files.", true);
      let opened: SourceInfo | null = null;
      try {
        if (files.length > 0) opened = await source.upload(files);
      } catch (error) {
        toast(error instanceof Failure ? placed(error.where, error.message) : String(error), true);
      }
      if (opened === null) return;
      setOpened(opened);
      reload();
      setWindow(null);
      const first = FIRST_VIEWS[opened.kind] ?? "cluster";
      go(href(VIEWS.some((each) => each.id === first) ? first : "", [], { source: opened.id === START ? null : opened.id }));
    },
    [source, reload],
  );

  const save = async () => {
    if (app === null || view === undefined || !(source instanceof ServerSource)) return;
    try {
      const address = location.hash || href(view.id);
      const more = (await view.toSave?.({ route: here(), app })) ?? [];
      const answers: Record<string, unknown> = { ...source.answers(id) };
      for (const request of more) answers[keyOf(request)] ??= await source.ask(request);
      await savePage({ session: { ...session, sources: [app.info], live: false }, answers, route: address, savedAt: new Date().toISOString() }, `podqos-${view.id}.html`);
    } catch (error) {
      toast(`The page could not be saved: ${error instanceof Error ? error.message : String(error)}`, true);
    }
  };
  const data = () => download(`podqos-${view?.id ?? "data"}.json`, JSON.stringify(source.answers(id), null, 1), "application/json");

  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (isTyping(event) || document.querySelector("dialog[open]") !== null) return;
      const listed = VIEWS.filter((each) => !each.isInner);
      const chosen = listed[Number(event.key) - 1];
      if (chosen !== undefined && isGiven(chosen, info)) go(href(chosen.id));
      else if (event.key === "?") setWindow("help");
      else if (event.key === "o") setWindow("open");
      else if (event.key === "/") document.querySelector<HTMLElement>("[data-filter]")?.focus();
      else {
        const action = viewOf(here(), info)?.press?.[event.key];
        if (action === undefined) return;
        action();
      }
      event.preventDefault();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, [info]);

  // Not rendered again when only the view changes.
  const top = useMemo(
    () => (
      <div class="bar" ref={bar}>
        <a class="brand" href={href("cluster")}>
          podqos
        </a>
        <Navigation shown={sources.length > 0 || about !== null ? view : undefined} info={sources.length > 0 ? info : NOTHING} />
        <div class="bar-tools">
          {sources.length > 1 ? <Sources sources={sources} id={id} /> : null}
          {source.saved?.savedAt ? <span class="age">saved {new Date(source.saved.savedAt).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" })}</span> : null}
          {isLive ? <Indicator live={live} /> : null}
          {source instanceof ServerSource ? (
            <button type="button" class="tool" title="Open files (o)" onClick={() => setWindow("open")}>
              Open
            </button>
          ) : null}
          {app === null ? null : <Menu items={[...(source instanceof ServerSource ? [["Save as one HTML file", save] as const] : []), ["Save the data as JSON", data]]} />}
          <button type="button" class="tool" title="Toggle dark mode (t)" aria-label="Toggle dark mode" onClick={toggleTheme}>
            ◐
          </button>
          <button type="button" class="tool" title="Keyboard shortcuts (?)" aria-label="Keyboard shortcuts" onClick={() => setWindow("help")}>
            ?
          </button>
        </div>
      </div>
    ),
    [source, session, opened, app, info, about, view, id, isLive, live],
  );
  return (
    <>
      <button type="button" class="skip" onClick={() => place.current?.focus()}>
        Skip to content
      </button>
      {top}
      <div class="view" ref={place} tabIndex={-1}>
        <Content {...last.current} source={source} open={() => setWindow("open")} isGone={sources.length > 0 || id !== START} />
      </div>
      {source instanceof ServerSource ? <DropZone upload={upload} /> : null}
      {window === "help" ? <Help view={view} close={() => setWindow(null)} /> : null}
      {window === "open" ? <Open upload={upload} close={() => setWindow(null)} limit={session.limits?.uploadBytes} /> : null}
    </>
  );
}

/** The view, or why it is not available. */
function Content({ view, route, app, id, source, isGone, open }: { view: View | undefined; route: Route; app: App | null; id: string; source: Source; isGone: boolean; open: () => void }) {
  if (view === undefined) return <Missing view={route.view} />;
  if (app === null) return <NoSource isGone={isGone} open={open} />;
  if (!isGiven(view, app.info)) {
    return (
      <main>
        <Empty title={`${view.title} is not available for ${app.info.name}`}>
          <p>
            {`Available for ${KINDS[app.info.kind] ?? "it"}: `}
            {VIEWS.filter((each) => !each.isInner && isGiven(each, app.info)).map((each, index) => (
              <span key={each.id}>
                {index > 0 ? ", " : ""}
                <a href={href(each.id)}>{each.title}</a>
              </span>
            ))}
          </p>
        </Empty>
      </main>
    );
  }
  return (
    <>
      {source.saved === null ? null : <p class="saved-note">{`This is a saved page. It cannot ${view.unsaved}; podqos ui can.`}</p>}
      {app.info.problems.length > 0 ? <Problems info={app.info} /> : null}
      <view.component key={`${view.id}/${id}`} route={route} app={app} />
    </>
  );
}

const KINDS: Readonly<Record<string, string>> = { manifests: "manifests", snapshot: "a snapshot", scenario: "a scenario", log: "a log", run: "a finished run" };

/** The view of an address; by default, the first available one. */
function viewOf(route: Route, info: SourceInfo | null): View | undefined {
  return VIEWS.find((each) => each.id === route.view) ?? (route.view === "" ? VIEWS.find((each) => isGiven(each, info)) : undefined);
}

function isGiven(view: View, info: SourceInfo | null): boolean {
  return view.isFree === true || view.needs === undefined || info === null || info.views.includes(view.needs);
}

function Navigation({ shown, info }: { shown: View | undefined; info: SourceInfo | null }) {
  const [isOpen, setOpen] = useState(false);
  useLayoutEffect(() => setOpen(false), [shown]);
  return (
    <nav aria-label="Views" class={isOpen ? "open" : ""}>
      <button type="button" class="tool burger" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        ☰ {shown?.title ?? "Views"}
      </button>
      <ul>
        {VIEWS.filter((view) => !view.isInner).map((view, index) => (
          <li key={view.id}>
            {isGiven(view, info) ? (
              <a href={href(view.id)} aria-current={view === shown ? "page" : undefined} title={`${view.title} (${index + 1})`} data-title={view.title}>
                {view.title}
              </a>
            ) : (
              <span class="not-given" title={info === NOTHING ? "Open something first" : `Not available for ${info?.name ?? "this source"}`}>{view.title}</span>
            )}
          </li>
        ))}
      </ul>
    </nav>
  );
}

function Sources({ sources, id }: { sources: readonly SourceInfo[]; id: string }) {
  return (
    <label class="field sources">
      <span class="unseen">Source</span>
      <select value={id} onChange={(event) => go(href("", [], { source: event.currentTarget.value === START ? null : event.currentTarget.value }))}>
        {sources.map((each) => (
          <option key={each.id} value={each.id} selected={each.id === id}>
            {each.name}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Whether the shown state is current, and its age. */
function Indicator({ live }: { live: Live<ClusterView> }) {
  const [, setNow] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setNow(performance.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const words = live.state === "lost" ? `connection lost, reconnecting${live.trouble ? `: ${live.trouble}` : ""}` : live.state === "connecting" ? "connecting" : live.trouble ? `stale: ${live.trouble}` : "live";
  const old = live.takenAt === null ? "" : age(since(live.takenAt));
  return (
    <span class={`indicator ${live.trouble ? "stale" : live.state}`}>
      <span role="status">{words}</span>
      {old ? <span class="age"> · {old}</span> : null}
    </span>
  );
}

function Menu({ items }: { items: readonly (readonly [string, () => void])[] }) {
  const menu = useRef<HTMLDetailsElement>(null);
  useLayoutEffect(() => {
    const away = (event: Event) => {
      const escape = event instanceof KeyboardEvent && event.key === "Escape";
      if (menu.current?.open && (escape || (event.type === "click" && !menu.current.contains(event.target as Node)))) {
        menu.current.open = false;
        if (escape) menu.current.querySelector("summary")?.focus();
      }
    };
    document.addEventListener("click", away);
    document.addEventListener("keydown", away);
    return () => {
      document.removeEventListener("click", away);
      document.removeEventListener("keydown", away);
    };
  }, []);
  return (
    <details class="menu" ref={menu}>
      <summary class="tool">Save</summary>
      <div class="menu-items">
        {items.map(([name, action]) => (
          <button
            key={name}
            type="button"
            onClick={() => {
              if (menu.current !== null) menu.current.open = false;
              action();
            }}
          >
            {name}
          </button>
        ))}
      </div>
    </details>
  );
}

function Missing({ view }: { view: string }) {
  return (
    <main>
      <Empty title={`No such page: ${JSON.stringify(view)}`}>
        <p>
          <a href={href("cluster")}>Go to Cluster</a>
        </p>
      </Empty>
    </main>
  );
}

/** What can be opened, and what the page shows for it. */
const OPENED: readonly (readonly [string, string])[] = [
  ["manifests", "eviction order and OOM kill order, what-if changes, findings; add a usage table (CSV, kubectl top pods) to rank by actual usage"],
  ["a snapshot", "the same for a whole cluster, saved by podqos snapshot"],
  ["a scenario", "a simulated run, second by second; add the manifests that it names"],
  ["a kernel log", "why each process was killed, and what would have saved it; kubelet logs work, too"],
];

function NoSource({ isGone, open }: { isGone: boolean; open: () => void }) {
  useLayoutEffect(() => {
    document.title = "podqos";
  }, []);
  return (
    <main>
      <Empty title={isGone ? "This source is gone" : "Nothing is open yet"}>
        <p>{isGone ? "Files opened in the page are deleted after a while, and only the visitor who opened them can see them." : "Drop files anywhere on this page, or open or paste them. They are sent to podqos ui and nowhere else."}</p>
        <p>
          <button type="button" class="tool primary" onClick={open}>
            Open files
          </button>{" "}
          <a class="tool" href={href("autopsy", [], { source: null })}>
            Paste an OOM log
          </a>
        </p>
        {isGone ? null : (
          <>
            <dl class="told opened">
              {OPENED.map(([what, seen]) => (
                <div key={what}>
                  <dt>{what}</dt>
                  <dd>{seen}</dd>
                </div>
              ))}
            </dl>
            <p class="quiet">
              For an example, run <code>podqos ui race</code>.
            </p>
          </>
        )}
      </Empty>
    </main>
  );
}

/** A message with its location, unless it already contains it. */
function placed(where: string, message: string): string {
  return where === "" || message.startsWith(where) ? message : `${where}: ${message}`;
}

/** Problems of the source itself. */
function Problems({ info }: { info: SourceInfo }) {
  return (
    <details class="problems">
      <summary>
        ⚠ {plural(info.problems.length, "problem")} in {info.name}
      </summary>
      <ul class="reasons">
        {info.problems.map((each, index) => (
          <li key={index}>{placed(placeOf(each), each.message)}</li>
        ))}
      </ul>
    </details>
  );
}

/** Return the dropped files, including those in directories. */
async function dropped(transfer: DataTransfer): Promise<File[]> {
  const found: File[] = [];
  const take = async (entry: FileSystemEntry): Promise<void> => {
    if (entry.isDirectory) {
      const reader = (entry as FileSystemDirectoryEntry).createReader();
      // A directory is listed in portions.
      for (let some: FileSystemEntry[]; (some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject))).length > 0; ) {
        for (const each of some) await take(each);
      }
      return;
    }
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    Object.defineProperty(file, "webkitRelativePath", { value: entry.fullPath.replace(/^\//, "") });
    found.push(file);
  };
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry());
  const files = [...transfer.files];
  for (const [index, entry] of entries.entries()) {
    if (entry !== null) await take(entry);
    else if (files[index]) found.push(files[index]);
  }
  return found;
}

function DropZone({ upload }: { upload: (files: readonly File[]) => void }) {
  const [isOver, setOver] = useState(false);
  useLayoutEffect(() => {
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
    const over = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = (event: DragEvent) => event.relatedTarget === null && setOver(false);
    const drop = (event: DragEvent) => {
      setOver(false);
      if (!hasFiles(event)) return;
      event.preventDefault();
      if (event.dataTransfer !== null) void dropped(event.dataTransfer).then(upload, (error: unknown) => toast(String(error), true));
    };
    document.addEventListener("dragover", over);
    document.addEventListener("dragleave", leave);
    document.addEventListener("drop", drop);
    return () => {
      document.removeEventListener("dragover", over);
      document.removeEventListener("dragleave", leave);
      document.removeEventListener("drop", drop);
    };
  }, [upload]);
  return isOver ? (
    <div class="drop">
      <p>Drop manifests, a snapshot, a scenario with its files, or a kernel log</p>
    </div>
  ) : null;
}

function Open({ upload, close, limit }: { upload: (files: readonly File[]) => void; close: () => void; limit: number | undefined }) {
  const [text, setText] = useState("");
  const paste = () => upload([new File([text], "pasted")]);
  return (
    <Dialog title="Open" close={close}>
      <p class="quiet">
        Manifests, a cluster snapshot, a scenario with the files it names, or a kernel log{limit ? `, up to ${Math.round(limit / 2 ** 20)}Mi` : ""}. They are sent to podqos ui and nowhere else.
      </p>
      <label class="field">
        <span>Files</span>
        <input type="file" multiple onChange={(event) => upload([...(event.currentTarget.files ?? [])])} />
      </label>
      <label class="field tall">
        <span>or paste</span>
        <textarea rows={10} spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <p>
        <button type="button" class="tool primary" disabled={text.trim() === ""} onClick={paste}>
          Open pasted text
        </button>
      </p>
    </Dialog>
  );
}

const KEYS: readonly (readonly [string, string])[] = [
  [`1 – ${VIEWS.filter((view) => !view.isInner).length}`, "switch page"],
  ["o", "open files"],
  ["t", "toggle dark mode"],
  ["?", "this help"],
  ["Esc", "close"],
];

function Help({ view, close }: { view: View | undefined; close: () => void }) {
  const list = (keys: readonly (readonly [string, string])[]) => (
    <dl class="told keys">
      {keys.map(([key, what]) => (
        <div key={key}>
          <dt>
            <kbd>{key}</kbd>
          </dt>
          <dd>{what}</dd>
        </div>
      ))}
    </dl>
  );
  return (
    <Dialog title="Keyboard shortcuts" close={close}>
      {list(KEYS)}
      {view?.keys ? (
        <>
          <h3>{view.title}</h3>
          {list(view.keys)}
        </>
      ) : null}
    </Dialog>
  );
}

/** Save this page with its answers: it then opens without a server. */
async function savePage(app: Saved, name: string): Promise<void> {
  const response = await fetch("/");
  const page = await response.text();
  const data = JSON.stringify({ app }).replaceAll("<", "\\u003c");
  const slot = /(<script id="run" type="application\/json">)null(<\/script>)/;
  if (!response.ok || !slot.test(page)) throw new Error("podqos ui did not return the page");
  download(name, page.replace(slot, (_all, begin: string, end: string) => begin + data + end), "text/html");
}
