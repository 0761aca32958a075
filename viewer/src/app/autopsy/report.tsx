// The autopsy of logs: the victims, the reasons, the ranking, what used the memory, what would have helped.

import type { ComponentChildren } from "preact";
import { count, plural } from "../../format";
import type { Autopsy, Death as Fatal } from "../../schema";
import { Sign } from "../run/sign";
import { Card, Copyable, NONE, Page, Table, type Column } from "../ui";
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
  page: Autopsy;
  /** Next to the title. */
  tools?: ComponentChildren;
  /** Cards at the end. */
  children?: ComponentChildren;
}

export function AutopsyReport({ page, tools, children }: ReportProps) {
  const { deaths } = page;
  const next = <NextSteps page={page} />;
  const groups = groupsOf(deaths);
  return (
    <Page title="Autopsy" facts={factsOf(page)} headline={page.headline} tools={tools}>
      <ReadLine page={page} />
      {deaths.length === 0 ? next : null}
      {groups.length < deaths.length ? <Groups groups={groups} /> : null}
      {deaths.length > 0 ? <Deaths page={page} /> : null}
      <Lines
        id="exits"
        title="Containers not known to have been killed"
        of={page.exits.map((line) => line.words)}
      />
      <Lines id="failures" title="Programs' own errors" of={page.programErrors} />
      <Lines id="signs" title="Node events" of={page.nodeEvents} />
      {deaths.length > 0 ? next : null}
      <Lines
        id="assumed"
        title="Assumed"
        of={page.assumptions.map(({ what, value, stateWith }) => `${what}: ${value} (${stateWith})`)}
      />
      {children}
      <footer class="quiet">{FOOTER}</footer>
    </Page>
  );
}

/** Whether there is nothing to show but the headline. */
export function isEmpty(page: Autopsy): boolean {
  const parts = [page.deaths, page.nodeEvents, page.programErrors, page.exits];
  return parts.every((part) => part.length === 0);
}

/** Where and when: the host, or how many there are, and the first and the last moment. */
function factsOf(page: Autopsy): string[] {
  const hosts = [...new Set(page.deaths.map((death) => death.where).filter(Boolean))];
  const times = page.deaths.map((death) => moment(death.when)).filter(Boolean);
  const ends = [...new Set([times[0], times.at(-1)])].filter((time) => time !== undefined);
  const span = ends.length > 0 ? [ends.join(" to ")] : [];
  return [...(hosts.length > 1 ? [plural(hosts.length, "host")] : hosts), ...span];
}

/** How much was read. */
export function ReadLine({ page }: { page: Autopsy }) {
  return page.read ? <p class="quiet wide">{page.read}</p> : null;
}

/** What to run next, where the answer is incomplete. */
export function NextSteps({ page }: { page: Autopsy }) {
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

interface DeathGroup {
  who: string;
  by: string;
  cause: string;
  times: number;
  last: string;
}

/** Who died how often, by whom and of what, the most frequent first. */
export function groupsOf(deaths: readonly Fatal[]): DeathGroup[] {
  const groups = new Map<string, DeathGroup>();
  for (const { who, by, cause, when } of deaths) {
    const key = JSON.stringify([who, by, cause]);
    const group = groups.get(key) ?? { who, by, cause, times: 0, last: "" };
    groups.set(key, { ...group, times: group.times + 1, last: when });
  }
  return [...groups.values()].toSorted((one, other) => other.times - one.times);
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
function Deaths({ page }: { page: Autopsy }) {
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
