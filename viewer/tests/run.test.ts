import assert from "node:assert/strict";
import { test } from "node:test";
import { stackOf } from "../src/app/run/bands";
import { curvePath } from "../src/app/run/curves";
import { plotOf, shownRange, type Plot } from "../src/app/run/plot";
import { crossings, firstOfPods, ordersAt } from "../src/app/run/ranks";
import { checksOf, onScreen, placeFor } from "../src/app/run/rows";
import { rangeWords } from "../src/app/run/scrubber";
import { fitted, wrapped } from "../src/app/run/text";
import { railOf } from "../src/app/run/victims";
import type { Curve, Kill, LookSpan, NodeView, OrdersView, Panel, RunView } from "../src/schema";

const MEASURES = {
  title: 24, noteLine: 15, gap: 14, narrow: 400, row: 19, checkGap: 4, signGap: 24, signs: 34, lane: 31,
  lanes: 4, line: 14, nameHeight: 14, nameStep: 24, signMargin: 8,
};
const SECOND = 1e6;

const kill = (seconds: number, by = "kubelet") =>
  ({ node: "n", pod: "ns/web", timeUs: seconds * SECOND, by, cause: "memory.available 5Mi < 9Mi" }) as Kill;

/** A plot of ten seconds, a hundred pixels each. */
function plot({ kills = [] as Kill[], fromUs = 0, toUs = 10 * SECOND } = {}): Plot {
  const node = {
    name: "n",
    timesUs: [0, 5 * SECOND, 5 * SECOND, 10 * SECOND],
    pods: [{ pod: 0, anonBytes: [10, 20, null, null], activeFileBytes: [0, 10, null, null] }],
  } as unknown as NodeView;
  const victims = kills.map(() => ({ name: "web", alike: 0 }));
  const run = {
    endUs: 10 * SECOND,
    kills,
    pods: [{ key: "ns/web", colour: "#0b4f8a", qosClass: "Guaranteed" }],
    pictures: [{ node: "n", panels: [], victims, measures: MEASURES }],
  } as unknown as RunView;
  return plotOf(run, { node, fromUs, toUs }, 1060) as Plot;
}

test("a plot leaves room for the ticks, and maps both ends of the time", () => {
  const { x, left, right } = plot();
  assert.deepEqual([left, right, x(0), x(10 * SECOND)], [50, 1050, 50, 1050]);
});

test("a run without a picture of the node has no plot", () => {
  const { run, node } = plot();
  assert.equal(plotOf({ ...run, pictures: [] }, { node, fromUs: 0, toUs: 1 }, 500), null);
});

test("points in view are drawn with one more on either side", () => {
  assert.deepEqual(shownRange(plot()), [0, 3]);
  assert.deepEqual(shownRange(plot({ fromUs: 6 * SECOND, toUs: 7 * SECOND })), [2, 3]);
});

test("a band is the sum of its columns, and page cache is its veiled part", () => {
  const layers = [
    { kind: "system", label: "system", series: null, columns: [], values: [5, 5, 5, 5] },
    { kind: "pod", label: "web", series: 0, columns: ["anonBytes", "activeFileBytes"], values: [] },
  ];
  const panel = { layers } as unknown as Panel;
  const { bands, names } = stackOf(plot(), panel, (value) => 100 - value, []);
  assert.equal(bands[0]?.path.slice(0, 43), "M50.0 95.0L550.0 95.0L550.0 95.0L1050.0 95.");
  assert.equal(bands[1]?.path.split("L")[1], "550.0 65.0", "on top of the system: 5 + 20 + 10");
  assert.equal(bands[1]?.veil?.split("L").at(-2), "550.0 75.0", "cache lies on top of 5 + 20");
  assert.deepEqual([bands[0]?.pod, bands[1]?.pod, bands[1]?.fill], [null, 0, "#0b4f8a"]);
  // The system is too low for a name.
  assert.deepEqual(names.map(({ text, kind }) => [text, kind]), [["web", "on-dark"]]);
});

test("a band's name stays clear of labels", () => {
  const layers = [{ kind: "system", label: "system", series: null, columns: [], values: [40, 40, 40, 40] }];
  const panel = { layers } as unknown as Panel;
  const label = { kind: "hard" as const, y: 84, words: "w".repeat(400), colour: null };
  assert.equal(stackOf(plot(), panel, (value) => 100 - value, [label]).names.length, 0);
});

test("a curve has gaps where there is no value, and steps if it has times of its own", () => {
  const curve = { kind: "share", colour: null, timesUs: [], values: [50, 50, null, 20] } as Curve;
  assert.equal(curvePath(plot(), curve, (value) => value), "M50.0 50.0L550.0 50.0M1050.0 20.0");
  const stepped = { ...curve, timesUs: [0, 5 * SECOND], values: [1, 2] };
  assert.equal(curvePath(plot(), stepped, (value) => value), "M50.0 1.0H550.0L550.0 2.0H1050.0");
});

test("victims too close to tell apart share a sign, and the same again is named once", () => {
  const rail = railOf(plot({ kills: [kill(1), kill(1.1, "kernel"), kill(9)] }));
  assert.deepEqual(rail.groups.map(({ kills }) => kills.length), [2, 1]);
  assert.deepEqual(rail.names.map(({ name, by }) => [name, by]), [["web ×3", "both"]]);
  assert.equal(rail.height, MEASURES.signs + MEASURES.lane);
});

test("without victims in view there is hardly any room above the panels", () => {
  assert.equal(railOf(plot({ kills: [kill(9)], toUs: 5 * SECOND })).height, 8);
});

test("a name is written on a span where it fits, else between spans, clear of signs", () => {
  const on = (from: number, to: number) => onScreen(plot(), [{ fromUs: from * SECOND, toUs: to * SECOND }]);
  assert.deepEqual(placeFor(plot(), "web-0", on(0, 10), []), { x: 56, text: "web-0", isInside: true });
  assert.equal(placeFor(plot(), "web-0", on(0, 0.2), [70])?.isInside, false);
  assert.match(placeFor(plot(), "w".repeat(300), on(0, 10), [])?.text ?? "", /^w+…w+$/);
});

test("checks of the kubelet are ticks, or a band where they are too close", () => {
  const span = { firstUs: 0, lastUs: 10 * SECOND };
  const every = (seconds: number): LookSpan => ({ ...span, everyUs: seconds * SECOND });
  assert.equal(checksOf(plot(), every(5), 12), "M50.0 0v12M550.0 0v12M1050.0 0v12");
  assert.deepEqual(checksOf(plot(), every(0.01), 12), { from: 50, to: 1050 });
  assert.equal(checksOf(plot({ fromUs: 6 * SECOND, toUs: 8 * SECOND }), every(5), 12), null);
});

test("at a kill the orders are those that led to it", () => {
  const orders = [1, 2, 2, 3].map((timeUs) => ({ timeUs }) as OrdersView);
  const at = (timeUs: number, isKill: boolean) => {
    const last = ordersAt(orders, timeUs, isKill);
    return last === null ? -1 : orders.indexOf(last);
  };
  assert.deepEqual([at(0, false), at(2, false), at(2, true), at(9, false)], [0, 2, 1, 3]);
  assert.equal(ordersAt([], 5, false), null);
});

test("of several containers of a pod the first counts; crossings are pairs in opposite places", () => {
  const kernel = firstOfPods([{ pod: 1 }, { pod: 0 }, { pod: 1 }, { pod: 2 }] as never[]);
  assert.deepEqual(kernel.map(({ pod }) => pod), [1, 0, 2]);
  assert.equal(crossings([{ pod: 0 }, { pod: 1 }, { pod: 2 }] as never[], kernel), 1);
});

test("the part of the run that is shown, in words", () => {
  assert.equal(rangeWords(0, 30e6, 30e6), "the whole run: 30 s");
  assert.equal(rangeWords(0, 11.5e6, 30e6), "first 11.5 s of 30 s shown");
  assert.equal(rangeWords(10e6, 20e6, 30e6), "10.0 s – 20.0 s of 30 s shown");
});

test("texts keep their beginning and end, and wrap between words", () => {
  assert.equal(fitted("short", 500), "short");
  assert.equal(fitted("a".repeat(50), 10), "");
  assert.deepEqual(wrapped("one two three", 60), ["one two", "three"]);
});
