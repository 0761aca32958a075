// The sign of who ended a pod: a diamond for the kernel, a circle for the kubelet, a square for both.

interface At {
  x: number;
  y: number;
}

export function Shape({ by, x, y, size = 11 }: At & { by: string; size?: number }) {
  if (by === "kernel") {
    const wide = size + 1;
    return <path class="shape" d={`M${x} ${y - wide}L${x + wide} ${y}L${x} ${y + wide}L${x - wide} ${y}Z`} />;
  }
  if (by !== "both") return <circle class="shape" cx={x} cy={y} r={size} />;
  return <rect class="shape" x={x - size} y={y - size} width={2 * size} height={2 * size} rx={3} />;
}

/** A number on a sign: the longer, the smaller. */
export function Glyph({ words, x, y }: At & { words: string }) {
  const size = words.length < 3 ? 11 : words.length === 3 ? 8.5 : 7;
  return (
    <text class="glyph" x={x} y={y + size * 0.36} style={{ fontSize: `${size}px` }}>
      {words}
    </text>
  );
}

/** A sign in a line of text; with a number, as in the picture. */
export function Sign({ by, number = "" }: { by: string; number?: string }) {
  return (
    <svg class={`icon mark ${by}`} width={24} height={24} viewBox="0 0 24 24" aria-hidden="true">
      <Shape by={by} x={12} y={12} size={number ? 10 : 7} />
      {number ? <Glyph words={number} x={12} y={12} /> : null}
    </svg>
  );
}
