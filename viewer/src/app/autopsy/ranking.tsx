// The ranking of a death: the victim and who would have been next stand out, by a word, not by colour alone.

import { bytes, plural } from "../../format";
import type { Death, RankedRow } from "../../schema";
import { Swatch } from "../swatch";
import { NONE, Table, type Column } from "../ui";
import { capital, percent } from "./memory";
import { isVictim, rankingLayout, type ScoreBar } from "./rankingLayout";

export function Ranking({ death }: { death: Death }) {
  const { ranking } = death;
  // Of a journal only the evicted pod itself is known.
  if (ranking.length <= (death.unit === "pod" ? 1 : 0)) return null;
  const [name = "", ...others] = death.columns;
  const layout = rankingLayout(ranking);
  const places = new Map(ranking.map((row, place) => [row, place]));
  const bar = (row: RankedRow) => layout.bars[places.get(row) ?? -1] ?? null;
  const columns: Column<RankedRow>[] = [
    { name: label(name), cell: (row) => <Candidate row={row} isPod={death.unit === "pod"} /> },
    ...others.map(
      (column, place): Column<RankedRow> => ({
        name: label(column),
        cell: (row) => row.cells[place] ?? NONE,
        number: true,
      }),
    ),
    ...(ranking.some((row) => row.behind)
      ? [{ name: "Behind the victim", cell: (row: RankedRow) => row.behind || NONE, number: true }]
      : []),
    {
      name: layout.hasAdjustments ? "Used and adjustment" : "Used",
      cell: (row) => <Score row={row} bar={bar(row)} line={layout.line} />,
    },
  ];
  const rest = death.candidates - ranking.length;
  return (
    <>
      <h3>Ranking, first victim on top</h3>
      {death.rule ? <p class="quiet">{death.rule}</p> : null}
      <div class="ranking">
        <Table columns={columns} rows={ranking} kind={kindOf} />
        {rest > 0 ? <p class="quiet">{`${plural(rest, `more ${death.unit}`)} not shown.`}</p> : null}
      </div>
    </>
  );
}

function kindOf(row: RankedRow): string {
  return isVictim(row) ? "hit" : row.standing ? "next" : "";
}

function label(text: string): string {
  return capital(text.toLowerCase());
}

/** The class of a pod is in the first column after its name. */
function Candidate({ row, isPod }: { row: RankedRow; isPod: boolean }) {
  return (
    <span class="key">
      {isPod ? <Swatch pod={row.name} qosClass={row.cells[0] ?? null} /> : null}
      {row.name}
      {row.mark ? <span class={isVictim(row) ? "alarm" : "quiet"}>{` ${row.mark}`}</span> : null}
      {row.standing ? (
        <>
          {" "}
          <span class="runner-up">{row.standing}</span>
        </>
      ) : null}
    </span>
  );
}

function Score({ row, bar, line }: { row: RankedRow; bar: ScoreBar | null; line: number | null }) {
  if (bar === null) return <>{NONE}</>;
  const change = row.added < 0 ? "subtracts" : "adds";
  const adjusted = row.added === 0 ? "" : `, adjustment ${change} ${bytes(Math.abs(row.added))}`;
  const words = `${bytes(row.used ?? 0)} used${adjusted}`;
  return (
    <span class={`badness ${kindOf(row)}`} role="img" aria-label={words} title={words}>
      <i class="used" style={{ width: percent(bar.used) }} />
      <i class={bar.isTakenOff ? "off" : "added"} style={{ width: percent(bar.adjusted) }} />
      {line === null ? null : <b style={{ left: percent(line) }} />}
    </span>
  );
}
