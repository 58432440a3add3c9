// biome-ignore-all lint/a11y/useFocusableInteractive: the cells are not interactive.
// biome-ignore-all lint/a11y/useSemanticElements: the virtual list positions its rows itself, which table elements do not allow.
import { useVirtualizer } from "@tanstack/react-virtual";
import { type CSSProperties, memo, type ReactNode, useMemo, useRef } from "react";
import type { Rows } from "../../../usage/plot-choice.ts";

const ROW_PX = 28;
const OVERSCAN = 15;

const cellText = (value: unknown): string =>
  value === null ? "null" : typeof value === "object" ? JSON.stringify(value) : String(value);

/** Table of the rows of a result. Only visible rows are in the document. */
export function ResultTable({ columns, rows }: { columns: readonly string[]; rows: Rows }): ReactNode {
  const scroller = useRef<HTMLDivElement>(null);
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: OVERSCAN,
  });
  const tracks = useMemo(() => ({ gridTemplateColumns: columns.map(() => "minmax(9rem, 1fr)").join(" ") }), [columns]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by keyboard.
    <div className="sql-result" ref={scroller} tabIndex={0} role="region" aria-label="Result rows">
      <div role="table" aria-label="Result" aria-rowcount={rows.length + 1} aria-colcount={columns.length}>
        <div role="rowgroup" className="sql-result-head">
          <div role="row" className="sql-result-row" style={tracks}>
            {columns.map((name) => (
              <div key={name} role="columnheader" className="cut" title={name}>
                {name}
              </div>
            ))}
          </div>
        </div>
        <div role="rowgroup" className="sql-result-body" style={{ height: virtualizer.getTotalSize() }}>
          {virtualizer.getVirtualItems().map(({ index, start }) => (
            <ResultRow
              key={index}
              index={index}
              start={start}
              row={rows[index] ?? NOTHING}
              columns={columns}
              tracks={tracks}
            />
          ))}
        </div>
      </div>
    </div>
  );
}

const NOTHING: Rows[number] = {};

/** During scrolling, only rows that come into view are rendered. */
const ResultRow = memo(function ResultRow({
  index,
  start,
  row,
  columns,
  tracks,
}: {
  index: number;
  start: number;
  row: Rows[number];
  columns: readonly string[];
  tracks: CSSProperties;
}): ReactNode {
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      className="sql-result-row"
      style={{ ...tracks, transform: `translateY(${start}px)` }}
    >
      {columns.map((name) => {
        const value = row[name];
        const text = cellText(value);
        const kind = typeof value === "number" ? "cut number" : value === null ? "cut muted" : "cut";
        return (
          <div key={name} role="cell" className={kind} title={text}>
            {text}
          </div>
        );
      })}
    </div>
  );
});
