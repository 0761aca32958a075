// The page: shows what was written into it, a run, a blast radius, an autopsy or the app as it was saved;
// served by `podqos ui`, it is the app.

import "./style.css";
import "./app/app.css";
import { startApp } from "./app/shell";
import { createElement, render } from "preact";
import { AutopsyFile, BlastFile } from "./app/standalone";
import { isTyping, toggleTheme } from "./frame";
import { isApp, isAutopsy, isBlast, readData } from "./run";
import { RunReport } from "./app/run/report";

function start(place: HTMLElement): void {
  const data = readData();
  if (data === null && location.protocol.startsWith("http")) startApp(place, null);
  else if (data === null) {
    const what = "This page has no data. Create one with: podqos simulate SCENARIO --html FILE";
    render(createElement("main", { class: "bare" }, createElement("h1", null, "podqos"), what), place);
  } else if (isApp(data)) startApp(place, data.app);
  else if (isAutopsy(data)) render(createElement(AutopsyFile, { page: data }), place);
  else if (isBlast(data)) render(createElement(BlastFile, { radius: data }), place);
  else render(createElement(RunReport, { run: data }), place);
  document.addEventListener("keydown", (event) => {
    if (event.key === "t" && !isTyping(event)) toggleTheme();
  });
}

const place = document.getElementById("app");
if (place !== null) start(place);
