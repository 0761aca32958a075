// The page: shows what was written into it, a run, a blast radius or an autopsy.

import "./style.css";
import { showAutopsy } from "./autopsy";
import { showBlast } from "./blast";
import { h } from "./dom";
import { toggleTheme } from "./frame";
import { showRun } from "./runPage";
import { isAutopsy, isBlast, readData } from "./run";

function start(): void {
  const app = document.getElementById("app");
  if (app === null) return;
  const data = readData();
  if (data === null) {
    const what = "This page shows a run, what leaks would do, or an autopsy. Make one with: podqos simulate SCENARIO --html FILE";
    app.replaceChildren(h("main", { class: "bare" }, h("h1", {}, "podqos"), h("p", {}, what)));
    return;
  }
  app.replaceChildren(...(isAutopsy(data) ? showAutopsy(data) : isBlast(data) ? showBlast(data) : showRun(data)));
  document.addEventListener("keydown", (event) => {
    if (event.key === "t" && !event.ctrlKey && !event.metaKey && !event.altKey && !(event.target instanceof HTMLSelectElement)) toggleTheme();
  });
}

start();
