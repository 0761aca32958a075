import assert from "node:assert/strict";
import { test } from "node:test";
import { NOTHING, POD, advance, layoutOf, matrixOf, near, scrolledTo, step } from "../src/app/blast/layout";
import { leaksOf, ratesOf, sorted, taken, together } from "../src/app/blast/model";
import { timelineOf, victimsOf } from "../src/app/blast/timeline";
import type { Blast, BlastRadius, BlastDeath } from "../src/schema";

const MEASURES = { width: (text: string) => text.length * 8, lines: () => 1 };

function death(pod: string, afterSeconds: number, by = "kubelet"): BlastDeath {
  return { pod, afterSeconds, by, cause: "memory.available", qosClass: "BestEffort" } as BlastDeath;
}

function leak(pod: string, others: readonly BlastDeath[], rate = 1, end: BlastDeath | null = null): Blast {
  const known = { node: "n", container: "c", qosClass: "Burstable", rateBytesPerSecond: rate };
  return { ...known, pod, others, end } as Blast;
}

const RADIUS = {
  leaks: [
    leak("d/a", [death("d/x", 5), death("d/y", 6), death("d/x", 7)], 1, death("d/a", 20)),
    leak("d/b", [death("d/y", 2, "kernel")]),
    leak("d/c", []),
    leak("d/a", [death("d/z", 1)], 9),
  ],
  victims: ["d/y", "d/x", "d/z"],
} as unknown as BlastRadius;

const { leaks, victims } = leaksOf(RADIUS, 1);
const matrix = matrixOf(sorted(leaks, "-taken"), victims);
const layout = layoutOf(matrix, 1280, MEASURES);

test("a matrix has the leaks and the victims of one rate, in the order of all", () => {
  assert.deepEqual(ratesOf(RADIUS), [1, 9]);
  assert.deepEqual(leaks.map((row) => row.pod), ["d/a", "d/b", "d/c"]);
  assert.deepEqual(victims, ["d/y", "d/x"]);
  assert.equal(leaks[0]?.deaths.get("d/y")?.place, 2);
});

test("rows are sorted by figures or by a victim, those without it last either way", () => {
  const order = (sort: string) => sorted(leaks, sort).map((row) => row.pod.slice(2)).join("");
  assert.equal(order("-taken"), "abc");
  assert.equal(order("taken"), "cba");
  assert.equal(order("soonest"), "bac");
  assert.equal(order("d/x"), "abc");
  assert.equal(order("-d/y"), "abc");
  assert.equal(order("-pod"), "cba");
});

test("a pod that dies again counts once, and the same death again is one line", () => {
  const [first] = RADIUS.leaks as [Blast];
  assert.equal(taken(first), 2);
  const groups = together([death("d/x", 1), death("d/x", 2), death("d/y", 3)]);
  assert.deepEqual(groups.map((group) => group.times), [2, 1]);
});

test("rows are below each other, as high as their names need", () => {
  assert.deepEqual([...layout.tops], [0, 36, 72, 108]);
  const narrow = layoutOf(matrix, 400, { ...MEASURES, lines: () => 3 });
  assert.ok(narrow.isNarrow);
  assert.deepEqual([...narrow.tops].slice(0, 2), [0, 4 * 18 + 16]);
  assert.ok(narrow.corner < layout.corner);
});

const MANY = Array.from({ length: 100 }, (_, number) => `d/v${number}`);
const LARGE = matrixOf(
  MANY.map((pod) => ({
    pod,
    qosClass: "",
    deaths: new Map(MANY.map((victim, index) => [victim, { death: death(victim, index), place: index + 1 }])),
  })),
  MANY,
);
const LARGE_LAYOUT = layoutOf(LARGE, 1280, MEASURES);
const BOX = { left: 0, top: 720, width: 1000, height: 360 };

test("what is seen is near, and little beyond it", () => {
  const { rows, columns } = near(LARGE_LAYOUT, BOX);
  assert.ok(rows[0] <= 20 && rows[0] >= 16 && rows[1] >= 30 && rows[1] <= 34, String(rows));
  assert.ok(columns[0] === 0 && columns[1] >= 15 && columns[1] <= 20, String(columns));
});

test("a frame draws some rows, and the last frame the last of them", () => {
  const wanted = near(LARGE_LAYOUT, BOX);
  let drawn = advance(NOTHING, LARGE, wanted);
  assert.ok(!drawn.isDone);
  assert.ok(drawn.slots.size > 0 && drawn.slots.size < wanted.rows[1] - wanted.rows[0]);
  for (let frames = 1; !drawn.isDone; frames++) {
    assert.ok(frames < 20);
    drawn = advance(drawn, LARGE, wanted);
  }
  const [from, to] = wanted.rows;
  assert.deepEqual([...drawn.slots.keys()], Array.from({ length: to - from }, (_, at) => from + at));
  assert.equal(advance(drawn, LARGE, wanted).slots.get(wanted.rows[0]), drawn.slots.get(wanted.rows[0]));
});

test("a row that waits for its turn shows what it showed before", () => {
  const wanted = near(LARGE_LAYOUT, BOX);
  let drawn = advance(NOTHING, LARGE, wanted);
  while (!drawn.isDone) drawn = advance(drawn, LARGE, wanted);
  const turned = { ...LARGE, rows: LARGE.rows.toReversed() };
  const next = advance(drawn, turned, wanted);
  const last = wanted.rows[1] - 1;
  assert.equal(next.slots.get(wanted.rows[0])?.of, turned.rows[wanted.rows[0]]);
  assert.equal(next.slots.get(last), drawn.slots.get(last));
});

test("keys lead from cell to cell, and past what is empty", () => {
  assert.deepEqual(step("ArrowRight", [0, POD], matrix), [0, 0]);
  assert.deepEqual(step("ArrowRight", [1, 0], matrix), [1, 0]); // no second victim
  assert.deepEqual(step("ArrowDown", [0, 1], matrix), [0, 1]);
  assert.deepEqual(step("ArrowUp", [0, 1], matrix), [-1, 1]);
  assert.deepEqual(step("Home", [0, 1], matrix), [0, POD]);
  assert.deepEqual(step("End", [0, POD], matrix), [0, 1]);
  assert.equal(step("a", [0, 0], matrix), null);
});

test("what gets the focus is scrolled to, as little as possible", () => {
  const at = { left: 0, top: 0, width: 1000, height: 400 };
  assert.deepEqual(scrolledTo(LARGE_LAYOUT, at, [0, 0]), { left: 0, top: 0 });
  const far = scrolledTo(LARGE_LAYOUT, at, [99, 99]);
  assert.equal(far.top, 100 * 36 - (400 - LARGE_LAYOUT.headHeight));
  assert.deepEqual(scrolledTo(LARGE_LAYOUT, { ...at, ...far }, [99, 99]), far);
});

test("a leak's victims are on a line from its beginning to its end, those close together as one mark", () => {
  const [first] = RADIUS.leaks as [Blast];
  assert.deepEqual(victimsOf(first).map((victim) => victim.pod), ["d/x", "d/y"]);
  const line = timelineOf(first);
  assert.deepEqual(line, {
    marks: [{ at: 0.25, places: [1], by: "kubelet" }, { at: 0.3, places: [2], by: "kubelet" }],
    lasts: 20,
    end: 1,
  });
  const crowd = leak("d/a", [death("d/x", 10), death("d/y", 10.1, "kernel")]);
  assert.deepEqual(timelineOf(crowd).marks.map((mark) => [mark.places, mark.by]), [[[1, 2], "both"]]);
  assert.equal(timelineOf(crowd).end, null);
});
