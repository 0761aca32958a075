// The pictures of nodes: drawn by a worker, one after the other, and put on their canvases.

import type { PodBlock } from "../../schema";
import { colourOf, inkOn } from "../colours";
import { drawing } from "../frames";
import { painter, type Look, type Picture } from "./draw";
import type { Layout } from "./layout";
import { keyOf, placeOf, type Order } from "./model";

const DARK = matchMedia("(prefers-color-scheme: dark)");
let kept: { theme: string; look: Look } | null = null;

/** Return the colours of the current theme, from the style sheet. */
function lookNow(): Look {
  const theme = `${document.documentElement.dataset["theme"] ?? ""} ${DARK.matches}`;
  if (kept?.theme !== theme) kept = { theme, look: read() };
  return kept.look;
}

function read(): Look {
  const probe = document.createElement("i");
  document.body.append(probe);
  const colour = (name: string) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const found = { card: colour("card"), font: getComputedStyle(document.body).fontFamily };
  probe.remove();
  return found;
}

export function pictureOf(
  layout: Layout,
  pods: readonly PodBlock[],
  order: Order,
  mask: Uint8Array | null,
): Picture {
  const fills = pods.map((pod) => colourOf(keyOf(pod), pod.qosClass));
  return {
    look: lookNow(),
    ratio: devicePixelRatio || 1,
    layout,
    names: pods.map((pod) => pod.name),
    classes: pods.map((pod) => pod.qosClass),
    fills,
    inks: fills.map(inkOn),
    places: pods.map((pod) => placeOf(pod, order)),
    mask,
  };
}

/** The drawing queue, in page order. */
const waiting = new Map<HTMLCanvasElement, () => Picture>();

/** Queue a drawing; it replaces an earlier one for the same canvas. */
export function drawSoon(canvas: HTMLCanvasElement, picture: () => Picture): () => void {
  waiting.set(canvas, picture);
  if (!drawing.has(waiting)) void drawWaiting();
  return () => waiting.delete(canvas);
}

async function drawWaiting(): Promise<void> {
  drawing.add(waiting);
  for (const [canvas, picture] of waiting) {
    waiting.delete(canvas);
    try {
      const bitmap = await drawn(picture());
      if (canvas.width !== bitmap.width) canvas.width = bitmap.width;
      if (canvas.height !== bitmap.height) canvas.height = bitmap.height;
      canvas.getContext("bitmaprenderer")?.transferFromImageBitmap(bitmap);
    } catch (error) {
      reportError(error); // affects one picture; the others are drawn
    }
  }
  drawing.delete(waiting);
}

/** The worker: it draws, and returns the picture. */
const WORK = `const draw = (${painter})();
onmessage = ({ data }) => {
  const bitmap = draw(data);
  postMessage(bitmap, [bitmap]);
};`;
const draw = painter();

function newWorker(): Worker {
  return new Worker(URL.createObjectURL(new Blob([WORK], { type: "text/javascript" })));
}

let worker: Worker | null | undefined;
/** A worker that is silent for this long is gone: browsers silently end workers when memory is short. */
const SILENCE_MS = 5000;

/** Draw in a worker; if the policy of a site with a saved page forbids workers, on the page, one picture per
 * frame. */
async function drawn(picture: Picture): Promise<ImageBitmap> {
  try {
    worker ??= worker === undefined ? newWorker() : null;
    if (worker !== null) return await answerOf(worker, picture);
  } catch {
    worker?.terminate();
    worker = null;
  }
  await new Promise(requestAnimationFrame);
  return draw(picture);
}

function answerOf(worker: Worker, picture: Picture): Promise<ImageBitmap> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(reject, SILENCE_MS);
    worker.onmessage = ({ data }: MessageEvent<ImageBitmap>) => {
      clearTimeout(timer);
      resolve(data);
    };
    worker.onerror = reject;
    worker.postMessage(picture);
  });
}
