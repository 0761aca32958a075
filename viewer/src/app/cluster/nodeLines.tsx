// The lines of the queue that are about a node: above its pods what it is and how near it is to evicting,
// below them how many more there are.

import { plural } from "../../format";
import type { NodePanel } from "../../schema";
import { leftOn, leftText } from "../headroom";
import { change, href } from "../router";
import { kept, stated } from "../ui";
import { WAITING, type Panel } from "./model";
import { openNode } from "./panels";
import { PodCount } from "./podCount";

/** How many cells a row has. */
export const COLUMNS = 7;

export interface Stand {
  /** Of the line. */
  number: number;
  top: number;
  /** Whether Tab leads to it. */
  isHere: boolean;
}

export const at = (top: number) => ({ transform: `translateY(${top}px)` });

export const NodeLine = kept(function NodeLine({ panel, number, top, isHere }: Stand & { panel: Panel }) {
  const { node, title, pods } = panel;
  const isNode = title !== WAITING;
  const link = { "data-line": number, tabIndex: isHere ? 0 : -1 };
  return (
    <div role="row" class="queue-line queue-node" aria-rowindex={number + 2} style={at(top)}>
      <div role="rowheader" aria-colspan={COLUMNS} class="node-line">
        {isNode && node.name ? (
          <a
            class="node-name"
            title={title}
            href={href("cluster", [], { node: node.name })}
            onClick={(event) => openNode(event, node.name)}
            {...link}
          >
            {title}
          </a>
        ) : (
          <b class="node-name" {...link}>{title}</b>
        )}
        <span class="node-facts">
          <PodCount node={node} pods={pods.length} />
          {isNode ? <Headroom node={node} /> : <span>not on a node, so not ranked</span>}
          {node.conditions.length > 0 ? <span class="trouble">⚠ {node.conditions.join(", ")}</span> : null}
          {node.problem ? <Problem words={stated(node.problem)} /> : null}
        </span>
      </div>
    </div>
  );
});

function Problem({ words }: { words: string }) {
  return (
    <span class="trouble" title={words}>
      ⚠ {words}
    </span>
  );
}

function Headroom({ node }: { node: NodePanel }) {
  const left = leftOn(node);
  if (left === null) return null;
  const assumed = node.isMeasured ? "" : ", usage assumed";
  const text = `${leftText(left)}${assumed}`;
  return left.bytes < 0 ? <span class="trouble">{`⚠ ${text}`}</span> : <span>{text}</span>;
}

interface MoreLineProps extends Stand {
  panel: Panel;
  more: number;
}

export const MoreLine = kept(function MoreLine({ panel, more, number, top, isHere }: MoreLineProps) {
  const { name } = panel.node;
  const open = (event: MouseEvent) => {
    if (name) return openNode(event, name);
    event.preventDefault();
    change({ show: "table" });
  };
  return (
    <div role="row" class="queue-line queue-more" aria-rowindex={number + 2} style={at(top)}>
      <div role="cell" aria-colspan={COLUMNS}>
        <a
          href={name ? href("cluster", [], { node: name }) : href("cluster", [], { show: "table" })}
          onClick={open}
          data-line={number}
          tabIndex={isHere ? 0 : -1}
        >
          {`${plural(more, "more pod")}${name ? ` on ${name}` : " in the table"}`}
        </a>
      </div>
    </div>
  );
});
