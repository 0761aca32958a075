// Saving what is shown: the page as one file, its verdict as a picture, its data, or on paper.

import { useLayoutEffect, useRef } from "preact/hooks";
import type { Saved } from "../run";
import type { Session } from "../schema";
import { printPage } from "./print";
import { here, href } from "./router";
import { keyOf, ServerSource } from "./source";
import { download, toast } from "./ui";
import { asPng, drawn, verdictOfPage } from "./verdict";
import type { App, View } from "./view";

type Item = readonly [name: string, action: () => void];

interface Shown {
  app: App;
  view: View;
  views: readonly View[];
  session: Session;
}

/** Everything that a view can be saved as. */
export function SaveMenu({ app, view, views, session }: Shown) {
  const { source } = app;
  const attempt = (what: string, action: () => Promise<void> | void) => async () => {
    try {
      await action();
    } catch (error) {
      toast(`${what} could not be saved: ${error instanceof Error ? error.message : String(error)}`, true);
    }
  };
  const picture = async () => {
    const props = { route: here(), app };
    return drawn((await view.verdict?.(props)) ?? verdictOfPage([app.info.name]));
  };
  const svg = async () => download(`podqos-${view.id}.svg`, await picture(), "image/svg+xml");
  const png = async () => download(`podqos-${view.id}.png`, await asPng(await picture()), "image/png");
  const page = async () => {
    if (source instanceof ServerSource) await savePage(source, { app, view, views, session });
  };
  const data = () => {
    const text = JSON.stringify(source.answers(app.info.id), null, 1);
    download(`podqos-${view.id}.json`, text, "application/json");
  };
  const items: Item[] = [
    ["Save the verdict as PNG", attempt("The picture", png)],
    ["Save the verdict as SVG", attempt("The picture", svg)],
    ["Print, or save as PDF", () => void printPage()],
    ["Save the data as JSON", attempt("The data", data)],
  ];
  const whole: Item = ["Save as one HTML file", attempt("The page", page)];
  return <Menu items={source instanceof ServerSource ? [whole, ...items] : items} />;
}

function Menu({ items }: { items: readonly Item[] }) {
  const menu = useRef<HTMLDetailsElement>(null);
  useLayoutEffect(() => {
    const away = (event: Event) => {
      const escape = event instanceof KeyboardEvent && event.key === "Escape";
      const isOutside = event.type === "click" && !menu.current?.contains(event.target as Node);
      if (!menu.current?.open || !(escape || isOutside)) return;
      menu.current.open = false;
      if (escape) menu.current.querySelector("summary")?.focus();
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

/** Save this page with its answers: it then opens without a server. */
async function savePage(source: ServerSource, { app, view, views, session }: Shown): Promise<void> {
  const address = location.hash || href(view.id);
  const more = (await view.toSave?.({ route: here(), app })) ?? [];
  const answers: Record<string, unknown> = { ...source.answers(app.info.id) };
  for (const request of more) answers[keyOf(request)] ??= await source.ask(request);
  // Navigation leads to the views that have everything: as they were last, or as they are at first.
  const first = views.filter((other) => !other.isInner && app.path(other.id) in answers);
  const usual = Object.fromEntries(first.map((other) => [other.id, href(other.id)]));
  const routes = { ...usual, ...source.routes(answers), [view.id]: address };
  const saved: Saved = {
    session: { ...session, sources: [app.info], live: false },
    answers,
    route: address,
    routes,
    savedAt: new Date().toISOString(),
  };
  const response = await fetch("/");
  const page = await response.text();
  const data = JSON.stringify({ app: saved }).replaceAll("<", "\\u003c");
  const slot = /(<script id="run" type="application\/json">)null(<\/script>)/;
  if (!response.ok || !slot.test(page)) throw new Error("podqos ui did not return the page");
  const written = page.replace(slot, (_all, begin: string, end: string) => begin + data + end);
  download(`podqos-${view.id}.html`, written, "text/html");
}
