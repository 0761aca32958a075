// The width of texts, and fitting them: SVG text does not wrap.

export interface Font {
  size: number;
  weight: number;
}

export const SMALL: Font = { size: 11.5, weight: 400 };
export const NAME: Font = { size: 11.5, weight: 600 };
export const HEADING: Font = { size: 13.5, weight: 650 };
export const NOTE: Font = { size: 12, weight: 400 };

/** Where nothing can be measured, about the width of a letter. */
const LETTER = 0.62;

let context: CanvasRenderingContext2D | null | undefined;
let family = "";
const widths = new Map<string, number>();

export function textWidth(text: string, font: Font = SMALL): number {
  if (context === undefined && typeof document !== "undefined") {
    context = document.createElement("canvas").getContext("2d");
    family = getComputedStyle(document.body).fontFamily;
  }
  if (!context) return text.length * font.size * LETTER;
  const style = `${font.weight} ${font.size}px ${family}`;
  const key = `${style} ${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    context.font = style;
    width = context.measureText(text).width;
    widths.set(key, width);
  }
  return width;
}

/** The text, or as much of its beginning and end as fits: pods differ at the end of their names. */
export function fitted(text: string, width: number, font: Font = SMALL): string {
  if (textWidth(text, font) <= width) return text;
  for (let kept = text.length - 1; kept > 3; kept--) {
    const end = Math.floor(kept / 3);
    const shorter = `${text.slice(0, kept - end)}…${text.slice(text.length - end)}`;
    if (textWidth(shorter, font) <= width) return shorter;
  }
  return "";
}

/** The text in lines that fit. */
export function wrapped(text: string, width: number, font: Font = SMALL): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const longer = lines.length > 0 ? `${lines.at(-1)} ${word}` : word;
    if (lines.length > 0 && textWidth(longer, font) <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}
