// The page of `podqos autopsy`: the victims, the reasons, the ranking, what used the memory, and what would have helped.

import { h } from "./dom";
import { about, bytes, count, plural } from "./format";
import { card, copyable, header, table, tile, type Column } from "./frame";
import { icon } from "./kills";
import { memoryTree } from "./memoryTree";
import type { AutopsyDeath, AutopsyPage, DeathGroup, RankedRow, StepWords } from "./schema";

const MOST = 200;

/** What the app adds to the page: buttons next to the title, and cards at the end. */
interface Around {
  tools?: readonly HTMLElement[];
  cards?: readonly HTMLElement[];
}

export function showAutopsy(page: AutopsyPage, around: Around = {}): HTMLElement[] {
  // The last is what brought the reader here.
  const shown = page.deaths.map((death, index) => ({ death, index })).slice(-MOST).toReversed();
  const more = page.deaths.length - shown.length;
  const list = h("ol", { class: "kills" }, ...shown.map(({ death, index }) => entry(death, index, index === page.deaths.length - 1)));
  const rest = more > 0 ? [h("p", { class: "quiet" }, `${plural(more, "earlier death")}: use -o json to see all.`)] : [];
  const listed = (id: string, title: string, words: readonly string[]) => (words.length > 0 ? [card(id, title, "wide", lines(words))] : []);
  const [read, next] = [readLine(page), nextSteps(page)];
  const parts = [
    ...read,
    ...(page.deaths.length === 0 ? next : []),
    ...(page.groups.length < page.deaths.length ? [card("groups", "Victims by frequency", "wide", groups(page.groups))] : []),
    ...(shown.length > 0 ? [card("deaths", shown.length === 1 ? "What happened" : "In detail, latest first", "wide autopsy", list, ...rest)] : []),
    ...listed("containers", "Killed containers, from pod status", page.containers),
    ...listed("exits", "Containers not known to have been killed", page.exits),
    ...listed("failures", "Programs' own errors", page.failures),
    ...listed("signs", "Node events", page.signs),
    ...(page.deaths.length > 0 ? next : []),
    ...listed("assumed", "Assumed", page.assumptions),
    ...(around.cards ?? []),
    h("footer", { class: "quiet" }, "Every decision is replayed from the figures in the report. Keys: Tab and Enter open an entry, t toggles dark mode."),
  ];
  return [header({ title: "Autopsy", facts: facts(page), description: "", headline: leadOf(page), tiles: tiles(page), tools: around.tools ?? [] }), h("main", {}, ...parts)];
}

/** How much was read. */
export function readLine(page: AutopsyPage): HTMLElement[] {
  const { read } = page;
  return read ? [h("p", { class: "quiet wide" }, read)] : [];
}

/** What to run next, where the answer is incomplete. */
export function nextSteps(page: AutopsyPage): HTMLElement[] {
  const steps = page.nextSteps;
  const step = ({ command, why, warning }: StepWords) => h("li", {}, h("p", {}, capital(why)), copyable(command), warning ? h("p", { class: "warned" }, `⚠ ${warning}`) : null);
  return steps.length > 0 ? [card("next-steps", "Next steps", "wide", h("ol", { class: "steps" }, ...steps.map(step)))] : [];
}

function capital(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function lines(words: readonly string[]): HTMLElement {
  const more = words.length - MOST;
  return h("ul", { class: "reasons" }, ...words.slice(0, MOST).map((each) => h("li", {}, each)), more > 0 ? h("li", {}, `${plural(more, "more line")}: use -o json to see all.`) : null);
}

/** The outcome in one sentence. */
export function leadOf(page: AutopsyPage): string {
  return page.lead;
}

/** Whether there is nothing to show but the headline. */
export function isEmpty(page: AutopsyPage): boolean {
  const { failures, exits } = page;
  return page.deaths.length + page.containers.length + page.signs.length + failures.length + exits.length === 0;
}

/** A moment as logs write it, to the second: `2026-11-16T03:12:07.104233+00:00` is 2026-11-16 03:12:07 UTC. */
function moment(at: string): string {
  return at.replace(/^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?(?:Z|\+00:00)$/, "$1 $2 UTC");
}

function facts(page: AutopsyPage): string[] {
  const hosts = new Set(page.deaths.map((death) => death.host).filter(Boolean));
  const times = page.deaths.map((death) => moment(death.at)).filter(Boolean);
  const [first, last] = [times[0], times.at(-1)];
  const span = first === undefined || last === undefined ? [] : [first === last ? first : `${first} to ${last}`];
  return [...(hosts.size === 1 ? [...hosts] : hosts.size > 1 ? [plural(hosts.size, "host")] : []), ...span];
}

function tiles(page: AutopsyPage): HTMLElement[] {
  if (page.deaths.length === 0) return [];
  const killed = page.deaths.filter((death) => death.by === "kernel").length;
  const others = page.deaths.map((death) => death.by).filter(isOtherKiller);
  const evicted = page.deaths.length - killed - others.length;
  const against = page.deaths.filter((death) => death.followsRule === false).length;
  const follow = page.deaths.filter((death) => death.followsRule === true).length;
  const causes = new Map<string, number>();
  for (const { cause } of page.deaths) if (cause) causes.set(cause, (causes.get(cause) ?? 0) + 1);
  const [main] = [...causes].toSorted(([, one], [, other]) => other - one);
  const [worst] = page.groups;
  return [
    ...(killed > 0 ? [tile(count(killed), "killed by the kernel", "out of memory", "kernel")] : []),
    ...(others.length > 0 ? [tile(count(others.length), "killed by another program", [...new Set(others)].join(", "), "kernel")] : []),
    ...(evicted > 0 ? [tile(count(evicted), evicted === 1 ? "pod evicted" : "pods evicted", "", "kubelet")] : []),
    tile(`${count(follow)}/${count(page.deaths.length)}`, "explained by the rules", against > 0 ? `${count(against)} against the rules` : ""),
    ...(main === undefined ? [] : [tile(`${count(main[1])}×`, main[0], causes.size > 1 ? "the most frequent cause" : "the cause")]),
    ...(worst !== undefined && worst.times > 1 ? [tile(`${count(worst.times)}×`, "the same victim", worst.who)] : []),
  ];
}

function groups(found: readonly DeathGroup[]): HTMLElement {
  const most = Math.max(...found.map((group) => group.times));
  const columns: Column<DeathGroup>[] = [
    { name: "Victim", cell: (group) => h("span", { class: "key" }, group.who) },
    { name: "Times", cell: (group) => h("span", { class: "amount" }, h("i", { style: `width:${(group.times / most) * 56}px` }), `${count(group.times)}×`), number: true },
    { name: "By", cell: (group) => h("span", { class: "end" }, icon(sign(group.by)), group.by) },
    { name: "Cause", cell: (group) => group.cause || "–" },
    { name: "Last", cell: (group) => group.last || "–" },
  ];
  return h("div", { class: found.length > 12 ? "scroll tall" : "" }, table(columns, found.slice(0, MOST)));
}

/** Who removes pods; whoever else is named kills processes: the kernel, or a program such as systemd-oomd. */
const REMOVED: Readonly<Record<string, string>> = { kubelet: "evicted", "podqos guard": "evicted", user: "evicted", scheduler: "preempted", "control plane": "deleted" };

function isOtherKiller(by: string): boolean {
  return by !== "kernel" && !(by in REMOVED);
}

function sign(by: string): string {
  return by in REMOVED ? "kubelet" : "kernel";
}

/** A death that opens where it is clicked; what is inside is drawn when it is opened first. */
export function entry(death: AutopsyDeath, index: number, isOpen: boolean): HTMLElement {
  const id = `death-${index}`;
  const place = h("div", { class: "details", id, hidden: !isOpen });
  const open = (shown: boolean) => {
    if (shown && place.childElementCount === 0) place.append(...details(death));
    place.hidden = !shown;
    button.setAttribute("aria-expanded", String(shown));
  };
  const button = h(
    "button",
    { type: "button", "aria-expanded": String(isOpen), "aria-controls": id, click: () => open(place.hidden) },
    icon(sign(death.by), String(index + 1)),
    h("span", { class: "what" }, h("b", {}, death.who), ` ${REMOVED[death.by] ?? "killed"} (${death.by})`, h("span", { class: "quiet" }, death.what)),
    h("time", {}, moment(death.at)),
  );
  open(isOpen);
  return h("li", { class: `kill ${sign(death.by)}` }, button, place);
}

function details(death: AutopsyDeath): HTMLElement[] {
  const told = [
    ...death.causes.map((cause) => fact("cause", cause)),
    ...(death.next ? [fact("next", death.next)] : []),
    ...death.facts.map((each) => fact(each.label, each.words)),
  ];
  return [
    h("p", { class: `verdict ${String(death.followsRule)}` }, capital(death.verdict)),
    h("dl", { class: "told" }, ...told),
    ...(death.savedBy.length > 0 ? [h("h3", {}, "What would have saved it"), h("ul", { class: "savings" }, ...death.savedBy.map((each) => h("li", { class: "saves" }, each)))] : []),
    ...(death.tree.length > 0 ? memoryTree(death.tree) : memory(death)),
    ...(death.ranking.length > 0 ? [h("h3", {}, "Ranking, first victim on top"), ...(death.rule ? [h("p", { class: "quiet" }, death.rule)] : []), ranking(death)] : []),
  ];
}

function fact(label: string, words: string): HTMLElement {
  return h("div", {}, h("dt", {}, label), h("dd", {}, words));
}

/** What the memory that ran out held, as one bar. */
function memory(death: AutopsyDeath): HTMLElement[] {
  const held = death.memory.filter((part) => part.bytes > 0);
  const sum = held.reduce((total, part) => total + part.bytes, 0);
  const whole = Math.max(death.memoryBytes, sum);
  if (held.length === 0 || whole === 0) return [];
  const title = death.memoryBytes > 0 ? `What used the ${bytes(death.memoryBytes)}` : "Memory usage";
  const spoken = held.map((part) => `${part.name} ${bytes(part.bytes)}`).join(", ");
  return [
    h("h3", {}, title),
    h("div", { class: "parts", role: "img", "aria-label": spoken }, ...held.map((part, place) => h("i", { class: `part-${place}`, style: `width:${(part.bytes / whole) * 100}%`, title: `${part.name} ${bytes(part.bytes)}` }))),
    h("p", { class: "legend" }, ...held.map((part, place) => h("span", { class: `chip part-${place}` }, h("span", { class: "ink" }, `${part.name} ${about(part.bytes)}`)))),
  ];
}

/** The ranking with a bar for each: what is used, and what its adjustment adds or takes off. */
function ranking(death: AutopsyDeath): HTMLElement {
  const [name, ...others] = death.columns as [string, ...string[]];
  const reach = Math.max(1, ...death.ranking.map((row) => (row.used ?? 0) + Math.max(0, row.added)));
  const label = (text: string) => text.charAt(0) + text.slice(1).toLowerCase();
  const columns: Column<RankedRow>[] = [
    { name: label(name), cell: (row) => h("span", { class: "key" }, row.name, row.mark ? h("span", { class: "alarm" }, ` ${row.mark}`) : null) },
    ...others.map((each, place): Column<RankedRow> => ({ name: label(each), cell: (row) => row.cells[place] ?? "–", number: true })),
    { name: death.ranking.some((row) => row.added !== 0) ? "Used and adjustment" : "Used", cell: (row) => bar(row, reach) },
  ];
  const rest = death.candidates - death.ranking.length;
  return h("div", { class: "ranking" }, table(columns, death.ranking, (row) => (row.mark ? "hit" : "")), ...(rest > 0 ? [h("p", { class: "quiet" }, `${plural(rest, `more ${death.unit}`)} not shown.`)] : []));
}

function bar(row: RankedRow, reach: number): HTMLElement | string {
  if (row.used === null) return "–";
  const kept = row.added < 0 ? Math.max(0, row.used + row.added) : row.used;
  const [solid, light] = row.added < 0 ? [kept, row.used - kept] : [row.used, row.added];
  const adjusted = row.added === 0 ? "" : `, adjustment ${row.added < 0 ? "subtracts" : "adds"} ${bytes(Math.abs(row.added))}`;
  const words = `${bytes(row.used)} used${adjusted}`;
  const part = (size: number, kind: string) => h("i", { class: kind, style: `width:${(size / reach) * 100}%` });
  return h("span", { class: `badness ${row.mark ? "hit" : ""}`, role: "img", "aria-label": words, title: words }, part(solid, "used"), part(light, row.added < 0 ? "off" : "added"));
}
