// The width of texts, and fitting them: SVG text does not wrap.

const context = document.createElement("canvas").getContext("2d");

export const SMALL = { size: 11.5, weight: 400 };
export const NAME = { size: 11.5, weight: 600 };

export interface Font {
  size: number;
  weight: number;
}

export function textWidth(text: string, font: Font = SMALL): number {
  if (context === null) return text.length * font.size * 0.62;
  context.font = `${font.weight} ${font.size}px ${getComputedStyle(document.body).fontFamily}`;
  return context.measureText(text).width;
}

/** The text, or as much of its beginning and end as fits: what tells pods apart is at the end of their names. */
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
