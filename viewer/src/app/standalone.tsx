// Pages that are files, without the app around them.

import type { ComponentChildren } from "preact";
import type { Autopsy, BlastRadius } from "../schema";
import { AutopsyReport } from "./autopsy/report";
import { BlastReport } from "./blast/report";
import { Theme } from "./theme";
import { Card, Toasts } from "./ui";

export function BlastFile({ radius }: { radius: BlastRadius }) {
  return (
    <>
      <BlastReport radius={radius} tools={<Theme />} />
      <Toasts />
    </>
  );
}

export function AutopsyFile({ page }: { page: Autopsy }) {
  return (
    <>
      <AutopsyReport page={page} tools={<Theme />}>
        <AnotherLog />
      </AutopsyReport>
      <Toasts />
    </>
  );
}

/** In a saved page there is no one to read another log. */
function AnotherLog(): ComponentChildren {
  return (
    <Card id="another" title="Another log">
      <p>
        This is a saved page. To explain another log, run <code>dmesg | podqos autopsy -</code>, or run{" "}
        <code>podqos ui</code> and paste it there.
      </p>
    </Card>
  );
}
