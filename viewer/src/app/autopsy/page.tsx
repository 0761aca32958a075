// The autopsy of a log, or of the OOM kills and evictions in a snapshot.

import { useCallback } from "preact/hooks";
import { showAutopsy } from "../../autopsy";
import type { AutopsyPage as Autopsy } from "../../schema";
import { useAnswer } from "../source";
import { Awaited, Dom, Empty, Page, stated } from "../ui";
import type { ViewProps } from "../view";

export function AutopsyPage({ app }: ViewProps) {
  const answer = useAnswer<Autopsy>(app.source, { path: app.path("autopsy") });
  const page = answer.failure === null ? answer.data : null;
  const make = useCallback(() => (page === null ? [] : showAutopsy({ ...page, assumptions: page.assumptions.map(stated) })), [page]);
  if (page === null) {
    return (
      <Page title="Autopsy">
        <div class="wide">
          <Awaited answer={answer} what="Reading the logs…">
            {() => null}
          </Awaited>
        </div>
      </Page>
    );
  }
  if (page.deaths.length + page.containers.length + page.signs.length === 0) {
    return (
      <Page title="Autopsy" headline={page.headline}>
        <div class="wide">
          <Empty title={`No OOM kills and no evictions in ${app.info.name}`}>
            <p>Open a kernel log (dmesg, journalctl -k), a kubelet log, Events or a podqos journal to see every OOM kill and eviction explained here.</p>
          </Empty>
        </div>
      </Page>
    );
  }
  return <Dom make={make} />;
}
