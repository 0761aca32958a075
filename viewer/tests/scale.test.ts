import assert from "node:assert/strict";
import { test } from "node:test";
import { indexAt, linear, timeTicks, upright } from "../src/app/run/scale";

test("a linear scale maps both ends, and back", () => {
  const scale = linear([0, 10], [100, 300]);
  assert.deepEqual([0, 5, 10].map(scale), [100, 200, 300]);
  assert.equal(scale.invert(250), 7.5);
});

test("a scale of a single value does not divide by zero", () => {
  assert.equal(linear([3, 3], [0, 100])(3), 0);
});

test("values beyond a logarithmic axis are at its ends", () => {
  const y = upright({ low: 1, high: 16, isLogarithmic: true, ticks: [] }, 400);
  assert.deepEqual([0, 1, 4, 16, 99].map(y), [400, 400, 200, 0, 0]);
});

test("a linear axis has its lowest value at the bottom", () => {
  const y = upright({ low: 0, high: 10, isLogarithmic: false, ticks: [] }, 200);
  assert.deepEqual([0, 5, 10].map(y), [200, 100, 0]);
});

test("steps of time are those of a clock", () => {
  assert.deepEqual(timeTicks(0, 60e6, 5), { step: 15e6, at: [0, 15e6, 30e6, 45e6, 60e6] });
  assert.equal(timeTicks(0, 40 * 86_400e6, 4).step, 10 * 86_400e6);
});

test("of equal times the last is found, and -1 before the first", () => {
  const times = [10, 20, 20, 30];
  assert.deepEqual([5, 10, 20, 25, 99].map((time) => indexAt(times, time)), [-1, 0, 2, 2, 3]);
  assert.equal(indexAt([], 5), -1);
});
