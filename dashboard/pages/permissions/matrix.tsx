// biome-ignore-all lint/a11y/useSemanticElements: the virtual matrix positions its cells itself, which table elements do not allow.
// biome-ignore-all lint/a11y/useKeyWithClickEvents: `cell` adds the key handler to every cell.
// biome-ignore-all lint/a11y/useFocusableInteractive: only one cell at a time is a Tab stop.
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from "react";
import type { Pages, Row } from "../../api/queries.ts";
import { Button } from "../../components/button.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { Skeleton } from "../../components/skeleton.tsx";
import { TableFoot } from "../../components/table-foot.tsx";
import { countText } from "../../components/uses.ts";
import type { Pending } from "./pending.ts";
import { StarNote } from "./star-note.tsx";
import "../../components/table.css";
import "./matrix.css";

/*
 * Matrix of permissions by roles. Only visible cells are in the document, because 1,000 permissions and 100 roles have 100,000 cells. The
 * matrix is one Tab stop; arrow keys move between cells, Space and Enter toggle a cell or open the object of a header.
 */

export type MatrixRole = Row<"admin.listRoles">;
export type MatrixPermission = Row<"admin.listPermissions">;

const ROW_PX = 30;
const COLUMN_PX = 44;
const HEAD_PX = 150;
const SLUG_PX = 240;
const SKELETON_PX = 380;
const AHEAD = 30;

/** Position in the grid including headers: row 0 has the roles, column 0 the permissions. */
interface Place {
  readonly row: number;
  readonly column: number;
}

export function Matrix({
  roles,
  permissions,
  pending,
  locked,
  onToggle,
  onOpenRole,
  onOpenPermission,
  empty,
}: {
  roles: readonly MatrixRole[];
  permissions: Pages<MatrixPermission>;
  pending: Pending;
  /** Reason why cells cannot be toggled. */
  locked: string | undefined;
  /** `isGranted` is the state of the cell when it was read. */
  onToggle: (role: MatrixRole, permission: MatrixPermission, isGranted: boolean) => void;
  onOpenRole: (role: MatrixRole) => void;
  onOpenPermission: (permission: MatrixPermission) => void;
  empty: ReactNode;
}): ReactNode {
  const { rows, hasMore, isLoading, error, readMore, again } = permissions;
  const scroller = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState<Place>({ row: 1, column: 1 });
  const lines = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 8,
    scrollPaddingStart: HEAD_PX,
    scrollMargin: HEAD_PX,
  });
  const columns = useVirtualizer({
    horizontal: true,
    count: roles.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => COLUMN_PX,
    overscan: 4,
    scrollPaddingStart: SLUG_PX,
    scrollMargin: SLUG_PX,
  });
  const shownLines = lines.getVirtualItems();
  const shownColumns = columns.getVirtualItems();
  const lastSeen = shownLines.at(-1)?.index ?? 0;
  useEffect(() => {
    if (hasMore && error === null && rows.length > 0 && lastSeen >= rows.length - AHEAD) readMore();
  }, [hasMore, error, rows.length, lastSeen, readMore]);

  const goTo = ({ row, column }: Place): void => {
    const place = {
      row: Math.max(0, Math.min(rows.length, row)),
      column: Math.max(0, Math.min(roles.length, column)),
    };
    // The corner cell is empty and cannot become active.
    if (place.row === 0 && place.column === 0) return;
    setActive(place);
    if (place.row > 0) lines.scrollToIndex(place.row - 1);
    if (place.column > 0) columns.scrollToIndex(place.column - 1);
    const find = () =>
      scroller.current?.querySelector<HTMLElement>(`[data-place="${place.row},${place.column}"]`) ?? undefined;
    // Focuses the cell. A cell that was out of view is not rendered before the next frame, so it is focused then.
    const cellThere = find();
    if (cellThere !== undefined) cellThere.focus();
    else requestAnimationFrame(() => find()?.focus());
  };
  const onKeyDown = (event: KeyboardEvent<HTMLElement>, { row, column }: Place): void => {
    const page = Math.max(1, Math.floor(((scroller.current?.clientHeight ?? 0) - HEAD_PX) / ROW_PX) - 1);
    const to = {
      ArrowDown: { row: row + 1, column },
      ArrowUp: { row: row - 1, column },
      ArrowRight: { row, column: column + 1 },
      ArrowLeft: { row, column: column - 1 },
      PageDown: { row: row + page, column },
      PageUp: { row: Math.max(1, row - page), column },
      Home: { row: event.ctrlKey ? 1 : row, column: 1 },
      End: { row: event.ctrlKey ? rows.length : row, column: roles.length },
    }[event.key];
    if (to !== undefined) goTo(to);
    else if (event.key === " " || event.key === "Enter") event.currentTarget.click();
    else return;
    event.preventDefault();
  };
  /** Attributes of each grid cell. */
  const cell = (row: number, column: number) => ({
    "data-place": `${row},${column}`,
    "aria-colindex": column + 1,
    tabIndex: isActive(row, column) ? 0 : -1,
    onFocus: () => setActive({ row, column }),
    onKeyDown: (event: KeyboardEvent<HTMLElement>) => onKeyDown(event, { row, column }),
  });
  // Position of the active cell, which is always in the document so that Tab reaches the grid.
  const tabStop = {
    row: Math.min(active.row, rows.length),
    column: Math.min(active.column, roles.length),
  };
  const isActive = (row: number, column: number): boolean => tabStop.row === row && tabStop.column === column;

  if (rows.length === 0) {
    return (
      <>
        {error !== null && <ErrorNote error={error} doing="Reading the permissions" again={again} />}
        {isLoading ? <Skeleton heightPx={SKELETON_PX} hasRows /> : error === null && empty}
        {roles.length > 0 && !isLoading && (
          <ul className="matrix-roles">
            {roles.map((role) => (
              <li key={role.id}>
                <Button kind="quiet" onClick={() => onOpenRole(role)}>
                  {role.name}
                </Button>
              </li>
            ))}
          </ul>
        )}
      </>
    );
  }
  const width = SLUG_PX + roles.length * COLUMN_PX;
  return (
    <div className="table">
      <div className="matrix" ref={scroller}>
        <div
          role="grid"
          aria-label="Permissions by role"
          aria-rowcount={hasMore ? -1 : rows.length + 1}
          aria-colcount={roles.length + 1}
          aria-readonly={locked !== undefined}
          style={{ width, height: HEAD_PX + rows.length * ROW_PX }}
        >
          <div role="row" aria-rowindex={1} className="matrix-head" style={{ width, height: HEAD_PX }}>
            <div role="columnheader" aria-colindex={1} className="matrix-corner" style={{ width: SLUG_PX }}>
              Permission
            </div>
            {shownColumns.map(({ index, start }) => {
              const role = roles[index];
              if (role === undefined) return null;
              return (
                <div
                  key={role.id}
                  role="columnheader"
                  className="matrix-role"
                  style={{ left: start, width: COLUMN_PX, height: HEAD_PX }}
                  title={role.manager === undefined ? role.name : `${role.name}, managed by ${role.manager}`}
                  onClick={() => onOpenRole(role)}
                  {...cell(0, index + 1)}
                >
                  <span className="cut">
                    {role.name}
                    {role.manager === undefined ? "" : " · manifest"}
                  </span>
                </div>
              );
            })}
          </div>
          {shownLines.map(({ index, start }) => {
            const permission = rows[index];
            if (permission === undefined) return null;
            const granted = new Set(permission.granted);
            return (
              <div
                key={permission.id}
                role="row"
                aria-rowindex={index + 2}
                className="matrix-row"
                style={{ width, height: ROW_PX, transform: `translateY(${start}px)` }}
              >
                <div
                  role="rowheader"
                  className="matrix-slug"
                  style={{ width: SLUG_PX }}
                  title={permission.slug}
                  onClick={() => onOpenPermission(permission)}
                  {...cell(index + 1, 0)}
                >
                  <code className="cut">{permission.slug}</code>
                  <StarNote slug={permission.slug} />
                </div>
                {shownColumns.map(({ index: at, start: left }) => {
                  const role = roles[at];
                  if (role === undefined) return null;
                  const isGranted = granted.has(at);
                  const wanted = pending.get(role.id)?.cells.get(permission.slug);
                  const why = role.manager === undefined ? locked : `Managed by ${role.manager}: change the manifest.`;
                  return (
                    <div
                      key={role.id}
                      role="gridcell"
                      className={classOf(isGranted, wanted, why !== undefined)}
                      aria-label={`${permission.slug}, ${role.name}: ${wordsOf(isGranted, wanted)}`}
                      aria-readonly={why !== undefined || undefined}
                      title={why}
                      aria-description={why}
                      style={{ left, width: COLUMN_PX, height: ROW_PX }}
                      onClick={() => {
                        if (why === undefined) onToggle(role, permission, isGranted);
                        else if (role.manager !== undefined) onOpenRole(role);
                      }}
                      {...cell(index + 1, at + 1)}
                    >
                      {signOf(isGranted, wanted)}
                    </div>
                  );
                })}
              </div>
            );
          })}
        </div>
      </div>
      {error !== null && <ErrorNote error={error} doing="Reading the permissions" again={again} />}
      <TableFoot pages={permissions}>
        {countText(rows.length, "permission")}, {countText(roles.length, "role")}
      </TableFoot>
    </div>
  );
}

function classOf(isGranted: boolean, wanted: boolean | undefined, isLocked: boolean): string {
  const change = wanted === undefined ? "" : wanted ? " matrix-add" : " matrix-remove";
  return `matrix-cell${isGranted ? " matrix-granted" : ""}${change}${isLocked ? " matrix-locked" : ""}`;
}

/** Returns a symbol for the state of a cell, so that states are distinguishable without colors. */
function signOf(isGranted: boolean, wanted: boolean | undefined): string {
  if (wanted === undefined) return isGranted ? "✓" : "";
  return wanted ? "+" : "−";
}

function wordsOf(isGranted: boolean, wanted: boolean | undefined): string {
  if (wanted === undefined) return isGranted ? "granted" : "not granted";
  return wanted ? "will be granted" : "will no longer be granted";
}
