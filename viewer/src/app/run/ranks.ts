// The recorded kill orders.

import type { EvictionRank, KernelRank, OrdersView } from "../../schema";
import { indexAt } from "./scale";

/** The orders at a moment: the last recorded before it. At a kill, those that led to it. */
export function ordersAt(orders: readonly OrdersView[], timeUs: number, isKill: boolean): OrdersView | null {
  const times = orders.map((each) => each.timeUs);
  let index = indexAt(times, timeUs);
  // Of the moments at this time the first is the one before anybody died.
  if (isKill) while (index > 0 && times[index - 1] === timeUs) index--;
  return orders[Math.max(0, index)] ?? null;
}

/** Of each pod the container that would be killed first. */
export function firstOfPods(kernel: readonly KernelRank[]): KernelRank[] {
  const seen = new Set<number>();
  return kernel.filter((rank) => !seen.has(rank.pod) && seen.add(rank.pod));
}

/** How many pairs of pods have opposite places. */
export function crossings(kubelet: readonly EvictionRank[], kernel: readonly KernelRank[]): number {
  const places = new Map(kernel.map((rank, place) => [rank.pod, place]));
  const order = kubelet.map((rank) => places.get(rank.pod) ?? -1);
  const crossed = order.map((place, at) => order.slice(at + 1).filter((other) => other < place).length);
  return crossed.reduce((sum, number) => sum + number, 0);
}
