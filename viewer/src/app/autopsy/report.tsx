// The autopsy of logs: the victims, the reasons, the ranking, what used the memory, what would have helped.

import type { ComponentChildren } from "preact";
import { count, plural } from "../../format";
import type { AutopsyPage, DeathGroup } from "../../schema";
import { Sign } from "../run/sign";
import { Card, Copyable, NONE, Page, Table, Tile, type Column } from "../ui";
import { Death, moment, signOf } from "./death";
import { capital } from "./memory";
import "./autopsy.css";

const MOST = 200;
/** More groups than these scroll. */
const MANY_GROUPS = 12;
const FOOTER =
  "Every decision is replayed from the figures in the report. Keys: Tab and Enter open an entry, t toggles " +
  "dark mode.";

interface ReportProps {
  page: AutopsyPage;
  /** Next to the title. */
  tools?: ComponentChildren;
  /** Cards at the end. */
  children?: ComponentChildren;
}

export function AutopsyReport({ page, tools, children }: ReportProps) {
  const { deaths } = page;
  const next = <NextSteps page={page} />;
  const tiles = <Tiles page={page} />;
  return (
    <Page title="Autopsy" facts={factsOf(page)} headline={page.lead} tiles={tiles} tools={tools}>
      <ReadLine page={page} />
      {deaths.length === 0 ? next : null}
      {page.groups.length < deaths.length ? <Groups groups={page.groups} /> : null}
      {deaths.length > 0 ? <Deaths page={page} /> : null}
      <Lines id="containers" title="Killed containers, from pod status" of={page.containers} />
      <Lines id="exits" title="Containers not known to have been killed" of={page.exits} />
      <Lines id="failures" title="Programs' own errors" of={page.failures} />
      <Lines id="signs" title="Node events" of={page.signs} />
      {deaths.length > 0 ? next : null}
      <Lines id="assumed" title="Assumed" of={page.assumptions} />
      {children}
      <footer class="quiet">{FOOTER}</footer>
    </Page>
  );
}

/** Whether there is nothing to show but the headline. */
export function isEmpty(page: AutopsyPage): boolean {
  const parts = [page.deaths, page.containers, page.signs, page.failures, page.exits];
  return parts.every((part) => part.length === 0);
}

/** Where and when: the host, or how many there are, and the first and the last moment. */
function factsOf(page: AutopsyPage): string[] {
  const hosts = [...new Set(page.deaths.map((death) => death.host).filter(Boolean))];
  const times = page.deaths.map((death) => moment(death.at)).filter(Boolean);
  const ends = [...new Set([times[0], times.at(-1)])].filter((time) => time !== undefined);
  const span = ends.length > 0 ? [ends.join(" to ")] : [];
  return [...(hosts.length > 1 ? [plural(hosts.length, "host")] : hosts), ...span];
}

/** How much was read. */
export function ReadLine({ page }: { page: AutopsyPage }) {
  return page.read ? <p class="quiet wide">{page.read}</p> : null;
}

/** What to run next, where the answer is incomplete. */
export function NextSteps({ page }: { page: AutopsyPage }) {
  if (page.nextSteps.length === 0) return null;
  return (
    <Card id="next-steps" title="Next steps">
      <ol class="steps">
        {page.nextSteps.map(({ command, why, warning }) => (
          <li key={command}>
            <p>{capital(why)}</p>
            <Copyable text={command} what={command} />
            {warning ? <p class="warned">{`⚠ ${warning}`}</p> : null}
          </li>
        ))}
      </ol>
    </Card>
  );
}

function Tiles({ page }: { page: AutopsyPage }) {
  return (
    <>
      {page.tiles.map((tile) => (
        <Tile key={tile.name} value={tile.value} name={tile.name} note={tile.note} kind={tile.kind} />
      ))}
    </>
  );
}

function Groups({ groups }: { groups: readonly DeathGroup[] }) {
  const most = Math.max(...groups.map((group) => group.times));
  const columns: Column<DeathGroup>[] = [
    { name: "Victim", cell: (group) => <span class="key">{group.who}</span> },
    {
      name: "Times",
      number: true,
      cell: (group) => (
        <span class="amount">
          <i style={{ width: `${(group.times / most) * 56}px` }} />
          {`${count(group.times)}×`}
        </span>
      ),
    },
    {
      name: "By",
      cell: (group) => (
        <span class="end">
          <Sign by={signOf(group.by)} />
          {group.by}
        </span>
      ),
    },
    { name: "Cause", cell: (group) => group.cause || NONE },
    { name: "Last", cell: (group) => group.last || NONE },
  ];
  return (
    <Card id="groups" title="Victims by frequency">
      <div class={groups.length > MANY_GROUPS ? "scroll tall" : ""}>
        <Table columns={columns} rows={groups.slice(0, MOST)} />
      </div>
    </Card>
  );
}

/** Every death, the latest first and open: it is what brought the reader here. */
function Deaths({ page }: { page: AutopsyPage }) {
  const numbered = page.deaths.map((death, index) => [death, index + 1] as const);
  const shown = numbered.slice(-MOST).toReversed();
  const more = numbered.length - shown.length;
  const title = shown.length === 1 ? "What happened" : "In detail, latest first";
  return (
    <Card id="deaths" title={title} kind="wide autopsy">
      <ol class="kills">
        {shown.map(([death, number]) => (
          <Death key={number} death={death} number={number} isFirst={number === numbered.length} />
        ))}
      </ol>
      {more > 0 ? <p class="quiet">{`${plural(more, "earlier death")}: use -o json to see all.`}</p> : null}
    </Card>
  );
}

function Lines({ id, title, of }: { id: string; title: string; of: readonly string[] }) {
  if (of.length === 0) return null;
  const more = of.length - MOST;
  return (
    <Card id={id} title={title}>
      <ul class="reasons">
        {of.slice(0, MOST).map((words, place) => (
          <li key={place}>{words}</li>
        ))}
        {more > 0 ? <li>{`${plural(more, "more line")}: use -o json to see all.`}</li> : null}
      </ul>
    </Card>
  );
}
