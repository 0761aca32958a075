// The width of names without layout: summed up by letter, because measuring each name takes far longer.

const context = document.createElement("canvas").getContext("2d");
/** How wide letters are, by their code. */
const letters: number[] = [];

function letterWidth(code: number): number {
  if (context !== null && letters.length === 0) context.font = `600 13.5px ${getComputedStyle(document.body).fontFamily}`;
  return (letters[code] = context?.measureText(String.fromCodePoint(code)).width ?? 8);
}

/** How wide a name is. */
export function textWidth(text: string): number {
  let wide = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    wide += letters[code] ?? letterWidth(code);
  }
  return wide;
}

/** How many lines a name takes that may be broken anywhere. */
export function lines(text: string, width: number): number {
  if (width <= 0) return 1;
  const wide = textWidth(text);
  // A letter that does not fit goes to the next line as a whole.
  return wide <= width - 1 ? 1 : Math.ceil(wide / Math.max(20, width - 12));
}
