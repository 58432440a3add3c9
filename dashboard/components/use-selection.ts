import { useMemo, useState } from "react";

/*
 * Selection of rows in a `Table`. Only loaded rows can be selected, so a row that leaves the list also leaves the selection. Ids are
 * stored, and the rows are looked up in the list, so that actions see the most recently read state of the rows.
 */

export interface Selection<T> {
  /** Selected rows, in the order of the list. */
  readonly rows: readonly T[];
  /** Returns the name of a row's checkbox, such as "Select Billing". */
  readonly labelOf: (row: T) => string;
  readonly has: (id: string) => boolean;
  /** Selects or deselects the row; with `isRange`, all rows from the previously changed row to this one. */
  readonly toggle: (index: number, isRange: boolean) => void;
  /** Moves the end of the selected range from one row to another, as Shift with an arrow key does. */
  readonly extend: (from: number, to: number) => void;
  /** Selects all loaded rows. */
  readonly selectAll: () => void;
  /** Keeps the first selected rows and deselects the others. */
  readonly keepFirst: (count: number) => void;
  readonly clear: () => void;
}

export interface SelectionState {
  readonly ids: ReadonlySet<string>;
  /** Rows at which the range that Shift changes starts (`anchor`) and ends (`end`). */
  readonly anchor?: string | undefined;
  readonly end?: string | undefined;
}

const NOTHING: SelectionState = { ids: new Set() };

/**
 * Returns the selection of a list. `filter` identifies what the list shows; a change of `filter` clears the selection.
 * @param rowId must be a stable function, such as one at module level.
 */
export function useSelection<T>(
  rows: readonly T[],
  { rowId, labelOf, filter }: { rowId: (row: T) => string; labelOf: (row: T) => string; filter: string },
): Selection<T> {
  const [{ of, state }, setAll] = useState({ of: filter, state: NOTHING });
  if (of !== filter) setAll({ of: filter, state: NOTHING });
  const order = useMemo(() => rows.map(rowId), [rows, rowId]);
  const { ids } = state;
  const selected = useMemo(() => rows.filter((row) => ids.has(rowId(row))), [rows, rowId, ids]);
  const change = (next: (before: SelectionState) => SelectionState): void =>
    setAll((before) => ({ ...before, state: next(before.state) }));
  return {
    rows: selected,
    labelOf,
    has: (id) => ids.has(id),
    toggle: (index, isRange) => change((before) => toggled(before, order, { index, isRange })),
    extend: (from, to) => change((before) => extended(before, order, { from, to })),
    selectAll: () => change(() => ({ ids: new Set(order) })),
    keepFirst: (count) => change(() => ({ ids: new Set(selected.slice(0, count).map(rowId)) })),
    clear: () => change(() => NOTHING),
  };
}

/** Returns the ids between two indexes, both included, in either direction. */
const between = (order: readonly string[], one: number, other: number): readonly string[] =>
  order.slice(Math.min(one, other), Math.max(one, other) + 1);

/** Toggles a row; with `isRange`, all rows from the anchor to this row get its new state. */
export function toggled(
  { ids, anchor }: SelectionState,
  order: readonly string[],
  { index, isRange }: { readonly index: number; readonly isRange: boolean },
): SelectionState {
  const id = order[index];
  if (id === undefined) return { ids, anchor };
  const anchorAt = isRange && anchor !== undefined ? order.indexOf(anchor) : -1;
  const range = between(order, anchorAt === -1 ? index : anchorAt, index);
  const rest = new Set(ids);
  for (const one of range) rest.delete(one);
  return { ids: ids.has(id) ? rest : new Set([...rest, ...range]), anchor: anchorAt === -1 ? id : anchor, end: id };
}

/**
 * Selects the rows from the anchor to `to`. Deselects the rows of the previous range, from the anchor to `from`, that are not in the new
 * one.
 */
export function extended(
  { ids, anchor, end }: SelectionState,
  order: readonly string[],
  { from, to }: { readonly from: number; readonly to: number },
): SelectionState {
  // If the previous range did not end at `from`, keeps that range and starts a new one at `from`.
  const anchorAt = anchor !== undefined && end === order[from] ? order.indexOf(anchor) : -1;
  const start = anchorAt === -1 ? from : anchorAt;
  const rest = new Set(ids);
  for (const one of between(order, start, from)) rest.delete(one);
  return { ids: new Set([...rest, ...between(order, start, to)]), anchor: order[start], end: order[to] };
}
