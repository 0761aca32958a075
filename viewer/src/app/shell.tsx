// The app around the views: navigation, sources, live indicator, files that are dropped, saving, keys.

import { render } from "preact";
import { useCallback, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { plural } from "../format";
import { isTyping, toggleTheme } from "../frame";
import type { Saved } from "../run";
import { explainPasted } from "./autopsy/paste";
import { useLive } from "./live";
import { useLater } from "./frames";
import { DropZone, OpenDialog, refusal, type Given } from "./opening";
import { comeBack, leave } from "./places";
import { go, here, href, useRoute, type Route } from "./router";
import { SaveMenu } from "./saving";
import { Failure, placeOf, SavedSource, ServerSource, useAnswer, type Source } from "./source";
import { GonePage, StartPage, type Opening } from "./start";
import type { Session, SourceInfo } from "../schema";
import { BrokenFiles, Status } from "./status";
import { Awaited, Dialog, Empty, Page, toast, Toasts } from "./ui";
import type { App, View } from "./view";
import { VIEWS } from "./views";

const START = "start";
/** What is open where nothing is. */
const NOTHING: SourceInfo = {
  id: START,
  kind: "",
  name: "nothing",
  files: [],
  views: [],
  problems: [],
  generation: 0,
  isLive: false,
  follows: "",
  broken: [],
  changedFile: "",
  changedAt: "",
  changedFiles: 0,
  takenAt: "",
};
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
      {answer.data !== null ? (
        <Opened source={source} session={answer.data} route={route} reload={answer.again} />
      ) : (
        <Page title="podqos">
          <Awaited answer={answer} what="Reading…">
            {() => null}
          </Awaited>
        </Page>
      )}
      <Toasts />
    </div>
  );
}

function Opened({
  source,
  session,
  route,
  reload,
}: {
  source: Source;
  session: Session;
  route: Route;
  reload: () => void;
}) {
  // An opened source is shown at once, before the server lists it.
  const [opened, setOpened] = useState<SourceInfo | null>(null);
  useLayoutEffect(() => setOpened(null), [session]);
  const sources =
    opened === null || session.sources.some((each) => each.id === opened.id)
      ? session.sources
      : [...session.sources, opened];
  const id = route.query.get("source") ?? sources[0]?.id ?? START;
  const info = sources.find((each) => each.id === id) ?? null;
  const isLive = info !== null && info.isLive && source.saved === null;
  const path = useCallback((rest: string) => `/api/sources/${encodeURIComponent(id)}/${rest}`, [id]);
  const live = useLive(source instanceof ServerSource, {
    jobs: (jobs) => (source as ServerSource).tellJobs(jobs),
    state: (cluster) => {
      (source as ServerSource).tellState(START, cluster);
      // Files may have other problems now; a cluster changes too often to ask.
      if (session.sources.some((each) => each.id === START && each.follows === "files")) reload();
    },
    restarted: () => (source as ServerSource).tellRestarted(),
    back: () => (source as ServerSource).tellBack(),
  });
  const [window, setWindow] = useState<"help" | "open" | null>(null);
  const view = viewOf(route, info);
  // A view that needs no source is about what is given to it there.
  const about = info ?? (view?.isFree === true && sources.length === 0 && id === START ? NOTHING : null);
  const app = useMemo<App | null>(
    () => (about === null ? null : { source, session, info: about, live: isLive ? live : null, path }),
    [source, session, about, isLive, live, path],
  );
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
    const observer = new ResizeObserver(() =>
      document.documentElement.style.setProperty("--bar", `${bar.current?.offsetHeight ?? 0}px`),
    );
    if (bar.current !== null) observer.observe(bar.current);
    return () => observer.disconnect();
  }, []);

  const open = useCallback(
    (info: SourceInfo, view?: string) => {
      setOpened(info);
      reload();
      setWindow(null);
      const first = view ?? FIRST_VIEWS[info.kind] ?? "cluster";
      go(
        href(VIEWS.some((each) => each.id === first) ? first : "", [], {
          source: info.id === START ? null : info.id,
        }),
      );
    },
    [reload],
  );
  const opening = useMemo(
    () => openings(source, session, open, () => setWindow(null)),
    [source, session, open],
  );

  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (isTyping(event) || document.querySelector("dialog[open]") !== null) return;
      const listed = VIEWS.filter((each) => !each.isInner);
      const chosen = listed[Number(event.key) - 1];
      if (chosen !== undefined && isGiven(chosen, info, source)) go(addressOf(chosen, source));
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
  }, [info, source]);

  const main = VIEWS.find((each) => isGiven(each, info, source));
  const home = main === undefined ? href("cluster") : addressOf(main, source);
  // Not rendered again when only the view changes.
  const top = useMemo(
    () => (
      <section class="bar" ref={bar} aria-label="podqos">
        <a class="brand" href={home}>
          podqos
        </a>
        <Navigation
          shown={sources.length > 0 || about !== null ? view : undefined}
          info={sources.length > 0 ? info : NOTHING}
          source={source}
        />
        <div class="bar-tools">
          {sources.length > 1 ? <Sources sources={sources} id={id} /> : null}
          {source.saved?.savedAt ? (
            <span class="age">
              saved{" "}
              {new Date(source.saved.savedAt).toLocaleString("en-GB", {
                dateStyle: "medium",
                timeStyle: "short",
              })}
            </span>
          ) : null}
          {info !== null && source.saved === null ? <Status info={info} live={isLive ? live : null} /> : null}
          {source instanceof ServerSource ? (
            <button type="button" class="tool" title="Open files (o)" onClick={() => setWindow("open")}>
              Open
            </button>
          ) : null}
          {app === null || view === undefined ? null : (
            <SaveMenu app={app} view={view} views={VIEWS} session={session} />
          )}
          <button
            type="button"
            class="tool"
            title="Toggle dark mode (t)"
            aria-label="Toggle dark mode"
            onClick={toggleTheme}
          >
            ◐
          </button>
          <button
            type="button"
            class="tool"
            title="Keyboard shortcuts (?)"
            aria-label="Keyboard shortcuts"
            onClick={() => setWindow("help")}
          >
            ?
          </button>
        </div>
      </section>
    ),
    [source, session, opened, app, info, about, view, id, isLive, live, home],
  );
  return (
    <>
      <button type="button" class="skip" onClick={() => place.current?.focus()}>
        Skip to content
      </button>
      {top}
      <div class="view" ref={place} tabIndex={-1}>
        <Content
          {...last.current}
          source={source}
          open={() => setWindow("open")}
          opening={sources.length > 0 || id !== START ? null : opening}
        />
      </div>
      {source instanceof ServerSource ? <DropZone upload={opening.upload} /> : null}
      {window === "help" ? <Help view={view} close={() => setWindow(null)} /> : null}
      {window === "open" ? (
        <OpenDialog
          upload={opening.upload}
          close={() => setWindow(null)}
          limits={session.limits}
          paste={(text) => void opening.paste(text).then((trouble) => trouble && toast(trouble, true))}
        />
      ) : null}
    </>
  );
}

/** What opens something: files, a pasted text, the demo. */
function openings(
  source: Source,
  session: Session,
  open: (info: SourceInfo, view?: string) => void,
  close: () => void,
): Opening {
  const told = (error: unknown) =>
    error instanceof Failure ? placed(error.where, error.message) : String(error);
  const isServed = (from: Source): from is ServerSource => from instanceof ServerSource;
  const attempt = async (action: (server: ServerSource) => Promise<void>): Promise<string> => {
    if (!isServed(source)) return "This is a saved page: start podqos ui to open files.";
    try {
      await action(source);
    } catch (error) {
      return told(error);
    }
    return "";
  };
  const upload = async (given: Given) => {
    const refused = refusal(given, session.limits);
    const trouble = refused || (await attempt(async (server) => open(await server.upload(given.files))));
    if (trouble) toast(trouble, true);
    else if (given.skipped > 0) toast(`${plural(given.skipped, "other file")} in the directory left out.`);
  };
  const paste = (text: string) =>
    attempt(async (server) => {
      const file = new File([text], "pasted");
      const refused = refusal({ files: [file], skipped: 0 }, session.limits);
      if (refused) throw new Failure({ message: refused });
      const info = await server.upload([file]);
      if (info.kind !== "log") return open(info);
      // A log is explained, and not kept.
      await server.remove(`/api/sources/${encodeURIComponent(info.id)}`);
      const address = await explainPasted(server, file, START);
      close();
      go(address);
    });
  const demo = () => attempt(async (server) => open(await server.demo(), "cluster"));
  return { upload: (given) => void upload(given), paste, demo, limits: session.limits };
}

interface Shown {
  view: View | undefined;
  route: Route;
  app: App | null;
  id: string;
  source: Source;
  /** For a page on which nothing is open yet. */
  opening: Opening | null;
  open: () => void;
}

/** The view, or why it is not available. */
function Content({ view, route, app, id, source, opening, open }: Shown) {
  if (view === undefined) return <Missing view={route.view} />;
  if (app === null) return opening === null ? <GonePage open={open} /> : <StartPage {...opening} />;
  if (!isGiven(view, app.info, source)) {
    const given = VIEWS.filter((each) => !each.isInner && isGiven(each, app.info, source));
    const isSaved = source.saved !== null && isGiven(view, app.info);
    return (
      <Page title={view.title}>
        <Empty
          title={isSaved ? "Not in this saved page" : `${view.title} is not available for ${app.info.name}`}
        >
          <p>
            {isSaved ? "Available here: " : `Available for ${KINDS[app.info.kind] ?? "it"}: `}
            {given.map((each, index) => (
              <span key={each.id}>
                {index > 0 ? ", " : ""}
                <a href={addressOf(each, source)}>{each.title}</a>
              </span>
            ))}
          </p>
        </Empty>
      </Page>
    );
  }
  return (
    <>
      {source.saved === null ? null : (
        <section class="saved-note" aria-label="Saved page">
          {`This is a saved page. It cannot ${view.unsaved}; podqos ui can.`}
        </section>
      )}
      <BrokenFiles info={app.info} />
      {app.info.problems.length > 0 ? <Problems info={app.info} /> : null}
      <view.component key={`${view.id}/${id}`} route={route} app={app} />
    </>
  );
}

const KINDS: Readonly<Record<string, string>> = {
  manifests: "manifests",
  snapshot: "a snapshot",
  scenario: "a scenario",
  log: "a log",
  run: "a finished run",
};

/** The view of an address; by default, the first available one. */
function viewOf(route: Route, info: SourceInfo | null): View | undefined {
  return (
    VIEWS.find((each) => each.id === route.view) ??
    (route.view === "" ? VIEWS.find((each) => isGiven(each, info)) : undefined)
  );
}

/** Whether a view has something to show; in a saved page, whether it was saved. */
function isGiven(view: View, info: SourceInfo | null, source?: Source): boolean {
  if (source !== undefined && source.saved !== null && !view.isInner) return source.holds(view.id);
  return view.isFree === true || view.needs === undefined || info === null || info.views.includes(view.needs);
}

function addressOf(view: View, source: Source): string {
  return source.addressOf(view.id) ?? href(view.id);
}

function Navigation({
  shown,
  info,
  source,
}: {
  shown: View | undefined;
  info: SourceInfo | null;
  source: Source;
}) {
  const [isOpen, setOpen] = useState(false);
  useLayoutEffect(() => setOpen(false), [shown]);
  const why = info === NOTHING ? "Open something first" : `Not available for ${info?.name ?? "this source"}`;
  const listed = VIEWS.map((view, index) => ({ view, key: index + 1, isOn: isGiven(view, info, source) }));
  return (
    <nav aria-label="Views" class={isOpen ? "open" : ""}>
      <button type="button" class="tool burger" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        ☰ {shown?.title ?? "Views"}
      </button>
      <ul>
        {listed.map(({ view, key, isOn }) =>
          view.isInner || (!isOn && source.saved !== null) ? null : (
            <li key={view.id}>
              {isOn ? (
                <a
                  href={addressOf(view, source)}
                  aria-current={view === shown ? "page" : undefined}
                  title={`${view.title} (${key})`}
                  data-title={view.title}
                >
                  {view.title}
                </a>
              ) : (
                <span class="not-given" title={why}>
                  {view.title}
                </span>
              )}
            </li>
          ),
        )}
      </ul>
    </nav>
  );
}

function Sources({ sources, id }: { sources: readonly SourceInfo[]; id: string }) {
  return (
    <label class="field sources">
      <span class="unseen">Source</span>
      <select
        value={id}
        onChange={(event) =>
          go(href("", [], { source: event.currentTarget.value === START ? null : event.currentTarget.value }))
        }
      >
        {sources.map((each) => (
          <option key={each.id} value={each.id} selected={each.id === id}>
            {each.name}
          </option>
        ))}
      </select>
    </label>
  );
}

function Missing({ view }: { view: string }) {
  return (
    <Page title="podqos">
      <Empty title={`No such page: ${JSON.stringify(view)}`}>
        <p>
          <a href={href("")}>Go to the first page</a>
        </p>
      </Empty>
    </Page>
  );
}

/** A message with its location, unless it already contains it. */
function placed(where: string, message: string): string {
  return where === "" || message.startsWith(where) ? message : `${where}: ${message}`;
}

/** Problems of the source itself. */
function Problems({ info }: { info: SourceInfo }) {
  return (
    <section aria-label="Problems">
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
    </section>
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
