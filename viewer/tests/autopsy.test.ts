import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryLayout } from "../src/app/autopsy/memoryLayout";
import { rankingLayout } from "../src/app/autopsy/rankingLayout";
import type { RankedRow, TreeRow } from "../src/schema";

function row(used: number | null, added = 0, mark = ""): RankedRow {
  const unknown = { pid: null, oomScoreAdj: null, badness: null, swapBytes: null };
  const ofPod = { priority: null, request: null, overRequest: null, usageFrom: null, qosClass: null };
  const place = { beforeNextBy: null, logPlace: null, isAtLeast: false, standing: "", behind: "" };
  return { ...unknown, ...ofPod, ...place, name: "p", cells: [], mark, used, added };
}

function bar(given: Partial<TreeRow>): TreeRow {
  const nothing = { usedBytes: null, limitBytes: null, mark: "" };
  return { depth: 0, kind: "process", name: "p", parts: [], ...nothing, ...given };
}

test("bars of a ranking are to one scale, and the line is the victim's score", () => {
  const { bars, line } = rankingLayout([row(60, 40, "killed"), row(50), row(null)]);
  assert.deepEqual(bars[0], { used: 0.6, adjusted: 0.4, isTakenOff: false });
  assert.deepEqual(bars[1], { used: 0.5, adjusted: 0, isTakenOff: false });
  assert.equal(bars[2], null);
  assert.equal(line, 1);
});

test("what an adjustment takes off does not count for the score", () => {
  const { bars, line, hasAdjustments } = rankingLayout([row(100, 0), row(80, -60, "killed"), row(50, -90)]);
  assert.deepEqual(bars[1], { used: 0.2, adjusted: 0.6, isTakenOff: true });
  assert.equal(line, 0.2);
  assert.equal(bars[2]?.used, 0);
  assert.ok(hasAdjustments);
});

test("a pod that is spared is not the victim", () => {
  assert.equal(rankingLayout([row(10, 0, "critical"), row(5, 0, "evicted")]).line, 0.5);
});

test("bars of the memory end at the limit", () => {
  const part = { kind: "anon", name: "anonymous memory", bytes: 50 };
  const cgroup = bar({ kind: "cgroup", parts: [part], limitBytes: 80 });
  const layout = memoryLayout([cgroup, bar({})]);
  assert.deepEqual(layout?.bars[0], { parts: [{ kind: "anon", share: 0.625 }], limit: 1 });
  assert.equal(layout?.limitName, "limit");
  assert.deepEqual(layout?.kinds, [["anon", "anonymous"]]);
});

test("without figures there is no picture", () => {
  assert.equal(memoryLayout([bar({})]), null);
});
