// The controls of the picture: which part is drawn, the cursor as a slider, and letting it walk.

import { useLayoutEffect, useState } from "preact/hooks";
import { time } from "../../format";
import { linear } from "./scale";
import { useLooking, type State } from "./state";

/** The width of the bar of the whole run. */
const BAR = 110;
/** What is drawn passes by in this time. */
const PLAYED_MS = 20_000;
const FRAME_MS = 100;

/** Which part of the run is drawn: in words, and as a bar of the whole run. */
export function Range({ state }: { state: State }) {
  const { fromUs, toUs } = useLooking(state, "fromUs", "toUs", "node");
  const { isAll, kills } = state;
  const x = linear([0, state.run.endUs], [0, BAR]);
  const marks = kills.map((kill) => ({ by: kill.by, at: x(kill.timeUs) }));
  return (
    <div class="span">
      <span class={isAll ? "range" : "range part"}>{rangeWords(fromUs, toUs, state.run.endUs)}</span>
      <svg class="overview" width={BAR} height={12} aria-hidden="true" hidden={isAll}>
        <rect class="all" x={0} y={3} width={BAR} height={6} rx={3} />
        <rect class="part" x={x(fromUs)} y={1} width={Math.max(4, x(toUs - fromUs))} height={10} rx={3} />
        {marks.map(({ by, at }, index) => (
          <line key={index} class={`mark ${by}`} x1={at} x2={at} y1={1} y2={11} />
        ))}
      </svg>
      <button
        type="button"
        class="tool"
        hidden={isAll && kills.length === 0}
        onClick={() => state.toggleZoom()}
      >
        {isAll ? "Zoom to the victims" : "Show all"}
      </button>
    </div>
  );
}

export function rangeWords(fromUs: number, toUs: number, endUs: number): string {
  const whole = time(endUs, 1e6);
  if (fromUs === 0 && toUs === endUs) return `the whole run: ${whole}`;
  const step = Math.max(1000, (toUs - fromUs) / 40);
  if (fromUs === 0) return `first ${time(toUs, step)} of ${whole} shown`;
  return `${time(fromUs, step)} – ${time(toUs, step)} of ${whole} shown`;
}

export interface Player {
  isPlaying: boolean;
  toggle(): void;
}

/** Let the cursor walk from where it is to the end of what is drawn. */
export function usePlayer(state: State): Player {
  const [isPlaying, setPlaying] = useState(false);
  useLayoutEffect(() => {
    if (!isPlaying) return;
    if (state.now.timeUs >= state.now.toUs) state.moveTo(state.now.fromUs);
    let before = performance.now();
    const timer = setInterval(() => {
      const { fromUs, toUs, timeUs } = state.now;
      const now = performance.now();
      state.moveTo(Math.min(toUs, timeUs + ((now - before) / PLAYED_MS) * (toUs - fromUs)));
      before = now;
      if (state.now.timeUs >= toUs) setPlaying(false);
    }, FRAME_MS);
    return () => clearInterval(timer);
  }, [isPlaying, state]);
  return { isPlaying, toggle: () => setPlaying((was) => !was) };
}

/** The cursor as a slider, for keyboards and for those who cannot hit a line. */
export function Scrubber({ state, player }: { state: State; player: Player }) {
  const { fromUs, toUs, timeUs } = useLooking(state, "fromUs", "toUs", "timeUs", "node");
  return (
    <div class="scrubber">
      <button type="button" class="tool play" title="Play or pause (p)" onClick={player.toggle}>
        {player.isPlaying ? "⏸ Pause" : "▶ Play"}
      </button>
      <input
        type="range"
        id="cursor"
        min={Math.round(fromUs)}
        max={Math.round(toUs)}
        step={Math.max(1, Math.round((toUs - fromUs) / 1000))}
        value={timeUs}
        aria-label="Time"
        aria-valuetext={time(timeUs)}
        onInput={(event) => state.moveTo(Number(event.currentTarget.value))}
      />
    </div>
  );
}
