import type { ReactNode } from "react";
import { EmptyState } from "../../components/empty-state.tsx";

export interface TopTableRow {
  readonly id: string;
  /** What the row is about: a link, or a text. */
  readonly name: ReactNode;
  /** In the order of the heads. */
  readonly numbers: readonly number[];
}

/** A short list of those with the most, largest first. */
export function TopTable({
  label,
  of,
  heads,
  rows,
  empty,
}: {
  label: string;
  /** The head of the first column. */
  of: string;
  heads: readonly string[];
  rows: readonly TopTableRow[];
  empty: string;
}): ReactNode {
  if (rows.length === 0) return <EmptyState title={empty} />;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: where it is narrow it is scrolled, also by the keyboard.
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
