// Draws the blocks of a node. Colours come from the style, so they follow the theme; classes differ by pattern as well.

import type { PodBlock } from "../../schema";
import type { Layout } from "./layout";
import { placeOf, type Order } from "./model";

interface Look {
  ink: string;
  line: string;
  card: string;
  fills: Readonly<Record<string, string>>;
  /** What is drawn over a class: stripes, dots or nothing. */
  patterns: Readonly<Record<string, CanvasPattern | null>>;
  font: string;
}

const DARK = matchMedia("(prefers-color-scheme: dark)");
let kept: { theme: string; look: Look } | null = null;

/** Return the colours of the theme that is shown. */
function look(context: CanvasRenderingContext2D): Look {
  const theme = `${document.documentElement.dataset["theme"] ?? ""} ${DARK.matches}`;
  if (kept?.theme !== theme) kept = { theme, look: read(context) };
  return kept.look;
}

function read(context: CanvasRenderingContext2D): Look {
  const probe = document.createElement("i");
  document.body.append(probe);
  const colour = (name: string) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const found = {
    ink: colour("ink"),
    line: colour("line"),
    card: colour("card"),
    fills: { Guaranteed: colour("guaranteed-soft"), Burstable: colour("burstable-soft"), BestEffort: colour("besteffort-soft") },
    patterns: {
      Guaranteed: null,
      Burstable: pattern(context, colour("burstable"), (tile) => {
        tile.moveTo(-2, 6);
        tile.lineTo(6, -2);
        tile.moveTo(2, 10);
        tile.lineTo(10, 2);
        tile.stroke();
      }),
      BestEffort: pattern(context, colour("besteffort"), (tile) => {
        tile.arc(2, 2, 1, 0, 7);
        tile.moveTo(7, 6);
        tile.arc(6, 6, 1, 0, 7);
        tile.fill();
      }),
    },
    font: getComputedStyle(document.body).fontFamily,
  };
  probe.remove();
  return found;
}

function pattern(context: CanvasRenderingContext2D, colour: string, draw: (tile: CanvasRenderingContext2D) => void): CanvasPattern | null {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 8;
  const tile = canvas.getContext("2d");
  if (tile === null) return null;
  tile.strokeStyle = tile.fillStyle = colour;
  tile.globalAlpha = 0.5;
  tile.lineWidth = 1.4;
  tile.beginPath();
  draw(tile);
  return context.createPattern(canvas, "repeat");
}

/** How wide a letter is, more or less: measuring every text would take most of the time. */
const LETTER = 6.6;
const GAP = 1;

/** What is to be drawn yet, in the order of the page. */
const waiting = new Map<HTMLCanvasElement, () => void>();
/** What is drawn is painted yet, which takes as long again. */
const BUDGET_MS = 3;
let frame = 0;

/** Draw with the next frame, or where there is much to be drawn with the ones after it: the page stays quick meanwhile. */
export function drawSoon(canvas: HTMLCanvasElement, make: () => void): () => void {
  frame ||= requestAnimationFrame(drawWaiting);
  waiting.set(canvas, make);
  return () => waiting.delete(canvas);
}

function drawWaiting(): void {
  const until = performance.now() + BUDGET_MS;
  for (const [canvas, make] of waiting) {
    waiting.delete(canvas);
    make();
    if (performance.now() > until) break;
  }
  frame = waiting.size > 0 ? requestAnimationFrame(drawWaiting) : 0;
}

export function draw(canvas: HTMLCanvasElement, layout: Layout, pods: readonly PodBlock[], order: Order, mask: Uint8Array | null): void {
  const context = canvas.getContext("2d");
  if (context === null) return;
  const ratio = devicePixelRatio || 1;
  const [across, down] = [Math.round(layout.width * ratio), Math.round(layout.height * ratio)];
  if (canvas.width !== across || canvas.height !== down) {
    canvas.width = across;
    canvas.height = down;
  }
  const style = look(context);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, layout.width, layout.height);
  context.textBaseline = "top";
  context.font = `600 11px ${style.font}`;
  for (const strip of layout.strips) {
    for (let index = strip.from; index < strip.to; index++) {
      const pod = pods[index] as PodBlock;
      const x = layout.left[index] ?? 0;
      const width = Math.max(1, (layout.wide[index] ?? 0) - GAP);
      const height = Math.max(1, strip.height - GAP);
      const isIn = mask === null || mask[index] === 1;
      context.globalAlpha = isIn ? 1 : 0.14;
      context.fillStyle = style.fills[pod.qosClass] ?? style.line;
      context.fillRect(x, strip.top, width, height);
      // What the filters do not let through is only hinted at.
      if (!isIn) continue;
      const over = style.patterns[pod.qosClass];
      if (over) {
        context.fillStyle = over;
        context.fillRect(x, strip.top, width, height);
      }
      label(context, style, pod, placeOf(pod, order), x, strip.top, width, height);
    }
  }
  context.globalAlpha = 1;
}

/** Write the place, and the name where there is room; over a pattern on a ground of its own. */
function label(context: CanvasRenderingContext2D, style: Look, pod: PodBlock, place: number | null, x: number, y: number, width: number, height: number): void {
  const number = place === null ? "" : String(place);
  const room = Math.floor((width - 8) / LETTER);
  if (height < 16 || room < number.length || room < 1) return;
  const rest = room - number.length - 1;
  const name = height >= 34 ? shortened(pod.name, room) : rest >= 6 ? shortened(pod.name, rest) : "";
  const lines = height >= 34 ? [number, name.length >= 6 || name === pod.name ? name : ""] : [[number, name].filter(Boolean).join(" ")];
  lines.forEach((text, line) => {
    if (!text) return;
    if (style.patterns[pod.qosClass]) {
      context.fillStyle = style.fills[pod.qosClass] ?? style.card;
      context.fillRect(x + 2, y + 2 + line * 15, Math.min(width - 4, text.length * LETTER + 5), 14);
    }
    context.fillStyle = style.ink;
    context.fillText(text, x + 4, y + 4 + line * 15, width - 6);
  });
}

/** A name in so many letters: what tells pods apart is at the end. */
function shortened(name: string, letters: number): string {
  if (name.length <= letters) return name;
  if (letters < 4) return "";
  const end = Math.floor((letters - 1) / 3);
  return `${name.slice(0, letters - 1 - end)}…${name.slice(name.length - end)}`;
}
