// The verdict of a view as a picture to share: drawn as SVG, light, with nothing loaded; also as PNG.

export interface Ranked {
  /** `namespace/name`. */
  pod: string;
  note: string;
  /** The QoS class, for its colour and its shape. */
  qosClass: string;
}

export interface Verdict {
  title: string;
  facts: readonly string[];
  headline: string;
  /** Who is first, by eviction and by OOM kill. */
  orders: readonly { title: string; colour: string; rows: readonly Ranked[] }[];
  /** Reasons, the fix: a heading and a sentence each. */
  notes: readonly (readonly [string, string])[];
}

export const KUBELET = "#00695c";
export const KERNEL = "#c62828";
const WIDTH = 1200;
const EDGE = 56;
const INNER = WIDTH - 2 * EDGE;
const INK = "#1b2430";
const QUIET = "#5c6877";
const FAMILY = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif";
/** As on the page: blue, orange and magenta, with a shape each. */
const CLASSES: Readonly<Record<string, readonly [colour: string, shape: string]>> = {
  Guaranteed: ["#1f77b4", "■"],
  Burstable: ["#a85b00", "▲"],
  BestEffort: ["#a83a80", "●"],
};
/** Pixels per pixel in a PNG. */
const SHARPNESS = 2;
const MOST_LINES = 6;

const context = document.createElement("canvas").getContext("2d");

interface Font {
  size: number;
  weight: number;
}

function widthOf(text: string, { size, weight }: Font): number {
  if (context === null) return text.length * size * 0.6;
  context.font = `${weight} ${size}px ${FAMILY}`;
  return context.measureText(text).width;
}

/** Break a text into lines; a word that is too long is broken anywhere. */
export function wrapped(text: string, width: number, font: Font): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const longer = line ? `${line} ${word}` : word;
    if (widthOf(longer, font) <= width) {
      line = longer;
      continue;
    }
    if (line) lines.push(line);
    line = word;
    while (widthOf(line, font) > width) {
      let end = line.length - 1;
      while (end > 1 && widthOf(line.slice(0, end), font) > width) end--;
      lines.push(line.slice(0, end));
      line = line.slice(end);
    }
  }
  if (line) lines.push(line);
  if (lines.length <= MOST_LINES) return lines;
  return [...lines.slice(0, MOST_LINES - 1), `${lines[MOST_LINES - 1] ?? ""} …`];
}

/** Shorten a name in its middle: its end tells pods of one workload apart. */
export function shortened(name: string, width: number, font: Font): string {
  if (widthOf(name, font) <= width) return name;
  let kept = name.length - 1;
  const cut = () => {
    const end = name.length - Math.floor(kept / 2);
    return `${name.slice(0, Math.ceil(kept / 2))}…${name.slice(end)}`;
  };
  while (kept > 2 && widthOf(cut(), font) > width) kept--;
  return cut();
}

function escaped(text: string): string {
  // XML has no control characters, not even escaped.
  const plain = [...text].map((letter) => (letter < " " ? " " : letter)).join("");
  const marks = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" } as const;
  return plain.replace(/[&<>"]/g, (mark) => marks[mark as keyof typeof marks]);
}

class Drawing {
  private readonly parts: string[] = [];
  y = EDGE;

  text(words: string, x: number, font: Font, colour: string): void {
    const style = `font-size="${font.size}" font-weight="${font.weight}" fill="${colour}"`;
    this.parts.push(`<text x="${x}" y="${this.y}" ${style}>${escaped(words)}</text>`);
  }

  line(): void {
    const ends = `x1="${EDGE}" x2="${WIDTH - EDGE}" y1="${this.y}" y2="${this.y}"`;
    this.parts.push(`<line ${ends} stroke="#dde3ea" />`);
  }

  block(words: string, x: number, width: number, font: Font, colour: string): void {
    for (const line of wrapped(words, width, font)) {
      this.y += Math.round(font.size * 1.35);
      this.text(line, x, font, colour);
    }
  }

  done(title: string): string {
    const height = this.y + EDGE - 8;
    const size = `width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}"`;
    const font = `font-family="${escaped(FAMILY)}"`;
    const head = `<svg xmlns="http://www.w3.org/2000/svg" ${size} ${font} role="img">`;
    const ground = `<rect width="${WIDTH}" height="${height}" fill="#ffffff" />`;
    return `${head}<title>${escaped(title)}</title>${ground}${this.parts.join("")}</svg>\n`;
  }
}

/** Draw a verdict. */
export function drawn(verdict: Verdict): string {
  const drawing = new Drawing();
  const small = { size: 18, weight: 400 };
  const facts = ["podqos", ...verdict.facts].join("  ·  ");
  drawing.text(shortened(facts, INNER, small), EDGE, small, QUIET);
  drawing.y += 14;
  drawing.block(verdict.title, EDGE, INNER, { size: 36, weight: 700 }, INK);
  if (verdict.headline) {
    drawing.y += 8;
    drawing.block(verdict.headline, EDGE, INNER, { size: 24, weight: 550 }, INK);
  }
  if (verdict.orders.some(({ rows }) => rows.length > 0)) orders(drawing, verdict.orders);
  for (const [heading, words] of verdict.notes) {
    drawing.y += 16;
    drawing.block(heading, EDGE, INNER, { size: 18, weight: 700 }, QUIET);
    drawing.y += 2;
    drawing.block(words, EDGE, INNER, { size: 21, weight: 400 }, INK);
  }
  return drawing.done(`${verdict.title}. ${verdict.headline}`);
}

/** The orders next to each other, first on top. */
function orders(drawing: Drawing, lists: Verdict["orders"]): void {
  drawing.y += 30;
  drawing.line();
  drawing.y += 12;
  const top = drawing.y;
  const column = INNER / lists.length;
  let bottom = top;
  for (const [index, { title, colour, rows }] of lists.entries()) {
    const x = EDGE + index * column;
    drawing.y = top + 24;
    drawing.text(title, x, { size: 20, weight: 700 }, colour);
    for (const [place, { pod, note, qosClass }] of rows.entries()) {
      const [of, shape] = CLASSES[qosClass] ?? [QUIET, "●"];
      const name = { size: 21, weight: place === 0 ? 700 : 500 };
      drawing.y += 34;
      drawing.text(`${place + 1}`, x, name, colour);
      drawing.text(shape, x + 30, { size: 18, weight: 400 }, of);
      const room = column - 100 - widthOf(note, { size: 17, weight: 400 });
      const shown = shortened(pod, room, name);
      drawing.text(shown, x + 58, name, INK);
      drawing.text(note, x + 70 + widthOf(shown, name), { size: 17, weight: 400 }, QUIET);
    }
    bottom = Math.max(bottom, drawing.y);
  }
  drawing.y = bottom + 14;
}

/** Turn the picture into a PNG. */
export async function asPng(svg: string): Promise<Blob> {
  const picture = new Image();
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await picture.decode();
  const canvas = document.createElement("canvas");
  canvas.width = picture.naturalWidth * SHARPNESS;
  canvas.height = picture.naturalHeight * SHARPNESS;
  canvas.getContext("2d")?.drawImage(picture, 0, 0, canvas.width, canvas.height);
  return await new Promise((resolve, reject) => {
    const done = (made: Blob | null) => {
      if (made === null) reject(new Error("this browser makes no PNG"));
      else resolve(made);
    };
    canvas.toBlob(done, "image/png");
  });
}

/** What a view says at its top: its title, the outcome in one sentence, its tiles. */
export function verdictOfPage(facts: readonly string[]): Verdict {
  const read = (from: ParentNode, what: string) => from.querySelector(what)?.textContent?.trim() ?? "";
  const view = document.querySelector(".view") ?? document;
  const tiles = [...view.querySelectorAll(".tile")].map((tile) => {
    return [`${read(tile, "b")} ${read(tile, "span")}`, read(tile, "small")].filter(Boolean).join(", ");
  });
  const notes: Verdict["notes"] = tiles.length > 0 ? [["In figures", tiles.join("  ·  ")]] : [];
  return { title: read(view, "h1"), facts, headline: read(view, ".headline"), orders: [], notes };
}
