// The width of names without layout: summed up by letter, because measuring each name takes far longer.

const context = document.createElement("canvas").getContext("2d");
/** Widths of letters by code. */
const letters: number[] = [];

function letterWidth(code: number): number {
  if (context !== null && letters.length === 0)
    context.font = `600 13.5px ${getComputedStyle(document.body).fontFamily}`;
  return (letters[code] = context?.measureText(String.fromCodePoint(code)).width ?? 8);
}

/** The width of a name. */
export function textWidth(text: string): number {
  let wide = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    wide += letters[code] ?? letterWidth(code);
  }
  return wide;
}

/** The number of lines of a name that may break anywhere. */
export function lines(text: string, width: number): number {
  if (width <= 0) return 1;
  const wide = textWidth(text);
  // A letter that does not fit moves to the next line as a whole.
  return wide <= width - 1 ? 1 : Math.ceil(wide / Math.max(20, width - 12));
}
