// The page: shows what was written into it, a run, a blast radius, an autopsy or the app as it was saved; served by
// `podqos ui`, it is the app.

import "./style.css";
import "./app/app.css";
import { startApp } from "./app/shell";
import { showAutopsy } from "./autopsy";
import { showBlast } from "./blast";
import { h } from "./dom";
import { card, isTyping, toggleTheme } from "./frame";
import { isApp, isAutopsy, isBlast, readData } from "./run";
import { showRun } from "./runPage";

/** In a saved page there is no one to read another log. */
function anotherLog(): HTMLElement {
  const command = h("code", {}, "dmesg | podqos autopsy -");
  return card("another", "Another log", "wide", h("p", {}, "This is a saved page. To explain another log, run ", command, ", or run ", h("code", {}, "podqos ui"), " and paste it there."));
}

function start(place: HTMLElement): void {
  const data = readData();
  if (data === null && location.protocol.startsWith("http")) startApp(place, null);
  else if (data === null) {
    const what = "This page has no data. Create one with: podqos simulate SCENARIO --html FILE";
    place.replaceChildren(h("main", { class: "bare" }, h("h1", {}, "podqos"), h("p", {}, what)));
  } else if (isApp(data)) startApp(place, data.app);
  else place.replaceChildren(...(isAutopsy(data) ? showAutopsy(data, { cards: [anotherLog()] }) : isBlast(data) ? showBlast(data) : showRun(data)));
  document.addEventListener("keydown", (event) => {
    if (event.key === "t" && !isTyping(event)) toggleTheme();
  });
}

const place = document.getElementById("app");
if (place !== null) start(place);
