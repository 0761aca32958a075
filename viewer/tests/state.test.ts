import assert from "node:assert/strict";
import { test } from "node:test";
import type { Kill, NodeView, RunView } from "../src/schema";
import { State } from "../src/app/run/state";

const node = (name: string) => ({ name, drawnUntilUs: null }) as NodeView;
const kill = (on: string, timeUs: number) => ({ node: on, timeUs }) as Kill;
const nodes = [node("a"), node("b")] as const;
const run = { endUs: 100, kills: [kill("a", 40), kill("b", 70)], events: [], nodes } as unknown as RunView;

test("a node opens at its first kill, with all of the run in view", () => {
  const state = new State(run, nodes[1]);
  assert.deepEqual([state.now.timeUs, state.now.fromUs, state.now.toUs], [70, 0, 100]);
  assert.deepEqual(state.kills.map((each) => each.timeUs), [70]);
});

test("listeners hear what changed, and nothing if nothing did", () => {
  const state = new State(run, nodes[0]);
  const heard: string[][] = [];
  state.subscribe((changed) => heard.push([...changed]));
  state.moveTo(40);
  state.moveTo(50.4);
  state.showNode(nodes[1]);
  assert.deepEqual(heard, [["timeUs"], ["node", "timeUs", "kill"]]);
});

test("the moment stays within the run", () => {
  const state = new State(run, nodes[0]);
  state.moveTo(-5);
  assert.equal(state.now.timeUs, 0);
  state.moveTo(1000);
  assert.equal(state.now.timeUs, 100);
});

test("a kill outside of the part in view brings all of the run back", () => {
  const state = new State(run, nodes[0]);
  state.change({ fromUs: 60, toUs: 80 });
  state.showKill(run.kills[0] as Kill);
  assert.deepEqual([state.now.fromUs, state.now.toUs], [0, 100]);
});
