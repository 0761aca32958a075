import assert from "node:assert/strict";
import { test } from "node:test";
import { even, rowsIn } from "../src/app/windowed";

test("rows of equal height", () => {
  assert.deepEqual([...even(3, 20)], [0, 20, 40, 60]);
});

test("the rows between two heights, with those that are cut", () => {
  const tops = even(100, 20);
  assert.deepEqual(rowsIn(tops, 0, 60), [0, 3]);
  assert.deepEqual(rowsIn(tops, 30, 50), [1, 3]);
  assert.deepEqual(rowsIn(tops, -500, 10), [0, 1]);
  assert.deepEqual(rowsIn(tops, 5000, 6000), [100, 100]);
});

test("an empty list has no rows", () => {
  assert.deepEqual(rowsIn(even(0, 20), 0, 500), [0, 0]);
});
