// biome-ignore-all lint/a11y/useFocusableInteractive: column headers are not interactive, because the server determines the order.
// biome-ignore-all lint/a11y/useSemanticElements: the virtual list positions its rows itself, which table elements do not allow.
import { defaultRangeExtractor, useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, memo, type ReactNode, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { Pages } from "../api/queries.ts";
import { ErrorNote } from "./error-note.tsx";
import { Skeleton } from "./skeleton.tsx";
import { TableFoot } from "./table-foot.tsx";
import type { Selection } from "./use-selection.ts";
import { countText } from "./uses.ts";
import "./table.css";

/*
 * List of any length. Only the visible rows are in the document, the next page is loaded before the end is reached, and the server
 * determines the order. A row is one Tab stop; arrow keys move between rows, Enter opens one. With `selection`, Space selects one, and Shift
 * with a click, Space or an arrow key selects a range.
 */

export interface Column<T> {
  readonly id: string;
  readonly header: string;
  readonly cell: (row: T) => ReactNode;
  /** Width as a CSS grid track: `minmax(8rem, 2fr)`, `6rem`. */
  readonly width: string;
  readonly isNumber?: boolean;
  /** Minimum table width in px at which the column is shown; cards and the details of a row always show the value. */
  readonly fromPx?: number;
  /**
   * Place of the cell in a card, which shows a row on a phone: `title` (the first column if no column sets it), `corner` for a state at the
   * upper right, `start` for a control before the title. Other cells follow below, each with its header.
   */
  readonly inCard?: "title" | "corner" | "start";
}

/** Column of the checkboxes. */
const CHECK_TRACK = "1.5rem";
const ROW_PX = 38;
const SKELETON_ROWS = 8;
/** Width of a table below which its rows are cards. */
const CARDS_BELOW_PX = 600;
/** Estimated height of a card, until it is measured: padding and title, and a line per further column. */
const cardPx = (columns: number): number => 46 + 22 * columns;
const OVERSCAN = 12;
/** Fewer cards than rows are rendered outside the visible range, because a card is several times as high. */
const OVERSCAN_CARDS = 4;
/** The next page is requested this many rows before the end of the loaded rows. */
const AHEAD = 30;

export function Table<T>({
  label,
  one,
  many,
  columns,
  pages,
  rowId,
  onOpen,
  openId,
  empty,
  doing,
  selection,
  selectionBar,
}: {
  /** Name of the list, for screen readers. */
  label: string;
  /** Noun for one row, such as "key". */
  one: string;
  /** Plural of the noun, if that is not the noun plus "s". */
  many?: string;
  columns: readonly Column<T>[];
  pages: Pages<T>;
  rowId: (row: T) => string;
  /** Called to open the details of a row. */
  onOpen?: (row: T) => void;
  /** Id of the row whose details are open. */
  openId?: string | undefined;
  /** Content to show if there are no rows. */
  empty: ReactNode;
  /** Action to name in an error, such as "Reading the keys". */
  doing: string;
  /** Selection of rows, from `useSelection`. */
  selection?: Selection<T>;
  /** `SelectionBar` with the actions for the selected rows. */
  selectionBar?: ReactNode;
}): ReactNode {
  const { rows, isLoading, hasMore, error, readMore, again } = pages;
  const scroller = useRef<HTMLDivElement>(null);
  const widthPx = useWidth(scroller);
  const isCards = widthPx > 0 && widthPx < CARDS_BELOW_PX;
  const shown = useMemo(
    () => (isCards ? inCards(columns) : columns.filter(({ fromPx = 0 }) => widthPx >= fromPx)),
    [columns, widthPx, isCards],
  );
  const checkTrack = selection === undefined ? [] : [CHECK_TRACK];
  const tracks = isCards ? "" : [...checkTrack, ...shown.map(({ width }) => width)].join(" ");
  const [active, setActive] = useState(0);
  const tabStop = Math.min(active, Math.max(0, rows.length - 1));
  const virtualizer = useVirtualizer({
    count: rows.length,
    // Keeps the row of the Tab stop in the document, even when it is scrolled out of view.
    rangeExtractor: (range) => {
      const seen = defaultRangeExtractor(range);
      return seen.includes(tabStop) || rows.length === 0 ? seen : [...seen, tabStop].sort((a, b) => a - b);
    },
    getScrollElement: () => scroller.current,
    estimateSize: () => (isCards ? cardPx(shown.filter(({ inCard }) => inCard === undefined).length) : ROW_PX),
    overscan: isCards ? OVERSCAN_CARDS : OVERSCAN,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: what was measured of rows is not true of cards, and the reverse.
  useLayoutEffect(() => virtualizer.measure(), [virtualizer, isCards]);
  const items = virtualizer.getVirtualItems();
  const lastSeen = virtualizer.range?.endIndex ?? 0;
  useEffect(() => {
    if (hasMore && error === null && rows.length > 0 && lastSeen >= rows.length - AHEAD) readMore();
  }, [hasMore, error, rows.length, lastSeen, readMore]);

  const goTo = (target: number): void => {
    setActive(target);
    virtualizer.scrollToIndex(target);
    const findRow = () => scroller.current?.querySelector<HTMLElement>(`[data-index="${target}"]`);
    const row = findRow();
    // Focuses immediately, because the next key may be pressed within this frame. A row that was out of view is not rendered before the
    // next frame, so it is focused then.
    if (row) row.focus();
    else requestAnimationFrame(() => findRow()?.focus());
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const index = rowIndexOf(event.target);
    // Ignores keys that are pressed inside a button of the row, because the button handles them.
    if (index === undefined || !(event.target as Element).matches("[role=row]")) return;
    const rowPx = virtualizer.getTotalSize() / Math.max(1, rows.length);
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 0) / rowPx) - (isCards ? 1 : 2));
    const to = {
      ArrowDown: index + 1,
      ArrowUp: index - 1,
      PageDown: index + page,
      PageUp: index - page,
      Home: 0,
      End: rows.length - 1,
    }[event.key];
    const row = rows[index];
    if (to !== undefined) {
      const target = Math.max(0, Math.min(rows.length - 1, to));
      if (event.shiftKey) selection?.extend(index, target);
      goTo(target);
    } else if (event.key === " " && selection !== undefined) selection.toggle(index, event.shiftKey);
    else if (event.key === "Enter" && row !== undefined && onOpen !== undefined) onOpen(row);
    else return;
    event.preventDefault();
  };

  // Tab must reach the links and buttons of only one row. The columns render them without knowing this row, so their Tab index is set here.
  useLayoutEffect(() => {
    for (const row of scroller.current?.querySelectorAll<HTMLElement>("[data-index]") ?? [])
      for (const control of row.querySelectorAll<HTMLElement>(CONTROLS)) control.tabIndex = row.tabIndex;
  });

  const selectedCount = selection?.rows.length ?? 0;
  const selectedBefore = useRef(0);
  useEffect(() => {
    // When the selection becomes empty, the bar disappears, and its focused button with it. So the row of the Tab stop gets the focus.
    if (selectedCount === 0 && selectedBefore.current > 0 && document.activeElement === document.body) {
      scroller.current?.querySelector<HTMLElement>("[role=row][tabindex='0']")?.focus();
    }
    selectedBefore.current = selectedCount;
  }, [selectedCount]);

  return (
    <div className={isCards ? "table table-cards" : "table"}>
      {selectionBar}
      <div className="table-scroller" ref={scroller}>
        <div role="table" aria-label={label} aria-rowcount={hasMore ? -1 : rows.length + 1} aria-busy={isLoading}>
          <div role="rowgroup" className="table-head">
            <div role="row" aria-rowindex={1} className="table-row" style={{ gridTemplateColumns: tracks }}>
              {selection !== undefined && (
                <div role="columnheader" className="table-check">
                  <CheckAll
                    label={`Select all loaded ${many ?? `${one}s`}`}
                    count={rows.length}
                    selectedCount={selectedCount}
                    onChange={(isAll) => (isAll ? selection.selectAll() : selection.clear())}
                  />
                </div>
              )}
              {shown.map(({ id, header, isNumber }) => (
                <div key={id} role="columnheader" className={isNumber ? "cut number" : "cut"}>
                  {header}
                </div>
              ))}
            </div>
          </div>
          <div
            role="rowgroup"
            className="table-body"
            style={{ height: virtualizer.getTotalSize() }}
            onFocus={({ target }) => setActive(rowIndexOf(target) ?? active)}
            onKeyDown={onKeyDown}
            onMouseDown={(event) => {
              // Without this, a click with Shift would also select the text between the rows.
              if (selection !== undefined && event.shiftKey) event.preventDefault();
            }}
            onClick={({ target, shiftKey }) => {
              const index = rowIndexOf(target) ?? -1;
              const row = rows[index];
              const isChecked = isIn(target, ".table-check");
              if (row === undefined || (isIn(target, `${CONTROLS}, label`) && !isChecked)) return;
              if (selection !== undefined && (isChecked || shiftKey)) selection.toggle(index, shiftKey);
              else onOpen?.(row);
            }}
          >
            {items.map(({ index, start }) => {
              const row = rows[index];
              if (row === undefined) return null;
              const id = rowId(row);
              return (
                <TableRow
                  key={id}
                  row={row}
                  index={index}
                  startPx={start}
                  columns={shown}
                  tracks={tracks}
                  measure={isCards ? virtualizer.measureElement : undefined}
                  isOpenable={onOpen !== undefined}
                  isOpen={openId === id}
                  isTabStop={index === tabStop}
                  checkLabel={selection?.labelOf(row)}
                  isSelected={selection?.has(id) ?? false}
                />
              );
            })}
          </div>
        </div>
        {rows.length === 0 && isLoading && <Skeleton heightPx={SKELETON_ROWS * ROW_PX} hasRows />}
        {rows.length === 0 && !isLoading && error === null && <div className="table-note">{empty}</div>}
      </div>
      {error !== null && <ErrorNote error={error} doing={doing} again={again} />}
      <TableFoot pages={pages}>{countText(rows.length, one, many)}</TableFoot>
    </div>
  );
}

interface TableRowProps<T> {
  readonly row: T;
  readonly index: number;
  readonly startPx: number;
  readonly columns: readonly Column<T>[];
  readonly tracks: string;
  /** Measures a card; the height of a row is fixed in the style sheet. */
  readonly measure: ((element: HTMLElement | null) => void) | undefined;
  readonly isOpenable: boolean;
  readonly isOpen: boolean;
  readonly isTabStop: boolean;
  /** Name of the checkbox; `undefined` for a list without selection. */
  readonly checkLabel: string | undefined;
  readonly isSelected: boolean;
}

/** Row of the table. With `memo`, scrolling renders only the rows that come into view. */
const TableRow = memo(PlainRow) as typeof PlainRow;

function PlainRow<T>(props: TableRowProps<T>): ReactNode {
  const { row, index, startPx, columns, tracks, measure } = props;
  const { isOpenable, isOpen, isTabStop, checkLabel, isSelected } = props;
  return (
    <div
      ref={measure}
      role="row"
      className={`table-row${isOpenable ? " table-row-open" : ""}${isSelected ? " table-row-selected" : ""}`}
      data-index={index}
      // `aria-rowindex` starts at 1, and row 1 is the header.
      aria-rowindex={index + 2}
      aria-current={isOpen || undefined}
      tabIndex={isTabStop ? 0 : -1}
      style={{ gridTemplateColumns: tracks, transform: `translateY(${startPx}px)` }}
    >
      {checkLabel !== undefined && (
        <div role="cell" className="table-check" data-in-card="start">
          <input
            type="checkbox"
            aria-label={checkLabel}
            checked={isSelected}
            // The whole cell handles clicks, including the click that Space causes.
            onChange={ignore}
          />
        </div>
      )}
      {columns.map(({ id, header, cell, isNumber, inCard }) => (
        <div
          key={id}
          role="cell"
          className={isNumber ? "cut number" : "cut"}
          // The style sheet shows the header beside the value of a card.
          data-label={header}
          data-in-card={inCard}
        >
          {cell(row)}
        </div>
      ))}
    </div>
  );
}

/** Returns all columns, with one of them as the title. */
function inCards<T>(columns: readonly Column<T>[]): readonly Column<T>[] {
  if (columns.some(({ inCard }) => inCard === "title")) return columns;
  const first = columns.findIndex(({ inCard }) => inCard === undefined);
  return columns.map((column, at) => (at === first ? { ...column, inCard: "title" } : column));
}

/**
 * Returns the list index of the row that contains an element. React also bubbles events from a menu or dialog that a row opened, and these
 * elements are outside of the rows.
 */
function rowIndexOf(target: EventTarget): number | undefined {
  const index = target instanceof Element ? target.closest("[data-index]")?.getAttribute("data-index") : undefined;
  return index === null || index === undefined ? undefined : Number(index);
}

const CONTROLS = "a, button, input, select";
const isIn = (target: EventTarget, selector: string): boolean =>
  target instanceof Element && target.closest(selector) !== null;

const ignore = (): void => undefined;

/** Checkbox for all loaded rows, mixed while some are selected. */
function CheckAll({
  label,
  count,
  selectedCount,
  onChange,
}: {
  label: string;
  count: number;
  selectedCount: number;
  onChange: (isAll: boolean) => void;
}): ReactNode {
  const isAll = count > 0 && selectedCount === count;
  return (
    <input
      ref={(box) => {
        if (box !== null) box.indeterminate = selectedCount > 0 && !isAll;
      }}
      type="checkbox"
      aria-label={label}
      checked={isAll}
      disabled={count === 0}
      onChange={() => onChange(!isAll)}
    />
  );
}

/** Returns the width of the element. The width determines the visible columns. */
function useWidth(element: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const { current } = element;
    if (current === null) return;
    const observer = new ResizeObserver(() => setWidth(current.clientWidth));
    observer.observe(current);
    setWidth(current.clientWidth);
    return () => observer.disconnect();
  }, [element]);
  return width;
}
