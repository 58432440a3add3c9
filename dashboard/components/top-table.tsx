import type { ReactNode } from "react";
import { EmptyState } from "./empty-state.tsx";
import "./usage-panel.css";

export interface TopTableRow {
  readonly id: string;
  /** Content of the first column: a link or plain text. */
  readonly name: ReactNode;
  /** Values in the order of the headers. */
  readonly numbers: readonly number[];
}

/** Short table of the items with the highest values, largest first. */
export function TopTable({
  label,
  of,
  heads,
  rows,
  empty,
}: {
  label: string;
  /** Header of the first column. */
  of: string;
  heads: readonly string[];
  rows: readonly TopTableRow[];
  empty: string;
}): ReactNode {
  if (rows.length === 0) return <EmptyState title={empty} />;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by keyboard.
    <section className="usage-top" tabIndex={0} aria-label={`${label}, the list`}>
      <table aria-label={label}>
        <thead>
          <tr>
            <th scope="col">{of}</th>
            {heads.map((head) => (
              <th key={head} scope="col" className="number">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ id, name, numbers }) => (
            <tr key={id} data-id={id}>
              <td className="cut usage-id">{name}</td>
              {numbers.map((number, place) => (
                <td key={heads[place]} className="number">
                  {number.toLocaleString("en")}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
