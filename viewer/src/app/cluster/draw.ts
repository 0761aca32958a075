// Draws the blocks of a node, each in the colour of its pod; classes differ by pattern as well as by hue.

import type { Layout } from "./layout";

/** The colours of the current theme. */
export interface Look {
  /** The colour of the lines between blocks, and of patterns: stripes, dots or none. */
  card: string;
  font: string;
}

export interface Picture {
  look: Look;
  /** Device pixels per CSS pixel. */
  ratio: number;
  layout: Layout;
  /** By block: name, class and place. */
  names: readonly string[];
  classes: readonly string[];
  fills: readonly string[];
  /** The colours of their texts. */
  inks: readonly string[];
  places: readonly (number | null)[];
  /** Which blocks pass the filters, one byte each; null: all. */
  mask: Uint8Array | null;
}

type Context = OffscreenCanvasRenderingContext2D;
type Patterns = Readonly<Record<string, CanvasPattern | null>>;

/** Return what draws. A worker is made of the text of this function (pictures.ts), so it knows nothing but
 * what is in it and in a picture. */
export function painter(): (picture: Picture) => ImageBitmap {
  let made: { of: string; patterns: Patterns } = { of: "", patterns: {} };

  function patternsOf(context: Context, { card: of }: Look): Patterns {
    if (made.of !== of) {
      made = {
        of,
        patterns: {
          Burstable: pattern(context, of, (tile) => {
            tile.moveTo(-2, 6);
            tile.lineTo(6, -2);
            tile.moveTo(2, 10);
            tile.lineTo(10, 2);
            tile.stroke();
          }),
          BestEffort: pattern(context, of, (tile) => {
            tile.arc(2, 2, 1, 0, 7);
            tile.moveTo(7, 6);
            tile.arc(6, 6, 1, 0, 7);
            tile.fill();
          }),
        },
      };
    }
    return made.patterns;
  }

  function pattern(context: Context, colour: string, draw: (tile: Context) => void): CanvasPattern | null {
    const canvas = new OffscreenCanvas(8, 8);
    const tile = canvas.getContext("2d");
    if (tile === null) return null;
    tile.strokeStyle = tile.fillStyle = colour;
    tile.globalAlpha = 0.45;
    tile.lineWidth = 1.4;
    tile.beginPath();
    draw(tile);
    return context.createPattern(canvas, "repeat");
  }

  /** The approximate width of a letter: measuring every text would take most of the time. */
  const LETTER = 6.6;
  const GAP = 1;

  let canvas: OffscreenCanvas | null = null;

  function draw({ look, ratio, layout, names, classes, fills, inks, places, mask }: Picture): ImageBitmap {
    canvas ??= new OffscreenCanvas(1, 1);
    canvas.width = Math.max(1, Math.round(layout.width * ratio));
    canvas.height = Math.max(1, Math.round(layout.height * ratio));
    const context = canvas.getContext("2d") as Context;
    const patterns = patternsOf(context, look);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.textBaseline = "top";
    context.font = `600 11px ${look.font}`;
    for (const strip of layout.strips) {
      for (let index = strip.from; index < strip.to; index++) {
        const qosClass = classes[index] as string;
        const x = layout.left[index] as number;
        const width = Math.max(1, (layout.wide[index] as number) - GAP);
        const height = Math.max(1, strip.height - GAP);
        const isIn = mask === null || mask[index] === 1;
        context.globalAlpha = isIn ? 1 : 0.14;
        const fill = fills[index] as string;
        context.fillStyle = fill;
        context.fillRect(x, strip.top, width, height);
        // Filtered-out blocks are only hinted at.
        if (!isIn) continue;
        const over = patterns[qosClass];
        if (over) {
          context.fillStyle = over;
          context.fillRect(x, strip.top, width, height);
        }
        label(
          context,
          inks[index] as string,
          over ? fill : null,
          names[index] as string,
          places[index] as number | null,
          x,
          strip.top,
          width,
          height,
        );
      }
    }
    return canvas.transferToImageBitmap();
  }

  /** Write the place and, if there is room, the name; over a pattern, on a background of its own. */
  function label(
    context: Context,
    ink: string,
    ground: string | null,
    called: string,
    place: number | null,
    x: number,
    y: number,
    width: number,
    height: number,
  ): void {
    const number = place === null ? "" : String(place);
    const room = Math.floor((width - 8) / LETTER);
    if (height < 16 || room < number.length || room < 1) return;
    const rest = room - number.length - 1;
    const name = height >= 34 ? shortened(called, room) : rest >= 6 ? shortened(called, rest) : "";
    const lines =
      height >= 34
        ? [number, name.length >= 6 || name === called ? name : ""]
        : [[number, name].filter(Boolean).join(" ")];
    lines.forEach((text, line) => {
      if (!text) return;
      if (ground !== null) {
        context.fillStyle = ground;
        context.fillRect(x + 2, y + 2 + line * 15, Math.min(width - 4, text.length * LETTER + 5), 14);
      }
      context.fillStyle = ink;
      context.fillText(text, x + 4, y + 4 + line * 15, width - 6);
    });
  }

  /** A name cut to this many letters: what distinguishes pods is at the end. */
  function shortened(name: string, letters: number): string {
    if (name.length <= letters) return name;
    if (letters < 4) return "";
    const end = Math.floor((letters - 1) / 3);
    return `${name.slice(0, letters - 1 - end)}…${name.slice(name.length - end)}`;
  }
  return draw;
}
