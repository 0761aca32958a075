import assert from "node:assert/strict";
import { test } from "node:test";
import { at, beyond, boxOf, layout } from "../src/app/cluster/layout";

const sizes = [8, 1, 4, 0, 2, 16, 3];
const blocks = layout(sizes, 600, 200);

test("blocks fill the picture without overlapping", () => {
  const boxes = sizes.map((_, index) => boxOf(blocks, index));
  const area = boxes.reduce((sum, box) => sum + box.width * box.height, 0);
  assert.ok(Math.abs(area - 600 * 200) < 1e-6);
});

test("the order of the blocks is that of reading: line by line, from the left", () => {
  const corners = sizes.map((_, index) => boxOf(blocks, index)).map((box) => box.top * 10_000 + box.left);
  assert.deepEqual(corners, [...corners].sort((one, other) => one - other));
});

test("a block of size zero can still be clicked", () => {
  const box = boxOf(blocks, 3);
  assert.ok(box.width * box.height > 50);
  assert.equal(at(blocks, box.left + box.width / 2, box.top + box.height / 2), 3);
});

test("outside of the picture there is no block", () => {
  assert.deepEqual([at(blocks, -1, 10), at(blocks, 10, 201), at(blocks, 601, 10)], [-1, -1, -1]);
});

test("at the first and the last line the keys go no further", () => {
  assert.equal(beyond(blocks, 0, -1), 0);
  assert.equal(beyond(blocks, sizes.length - 1, 1), sizes.length - 1);
});
