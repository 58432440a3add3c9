import type { ReactNode } from "react";
import "./key-table.css";

/** Small table about a key. A table that is too wide can be scrolled, with the keyboard as well. */
export function KeyTable({
  label,
  heads,
  numbers = [],
  children,
}: {
  label: string;
  heads: readonly string[];
  /** Headers of the numeric columns. */
  numbers?: readonly string[];
  /** Rows of the table. */
  children: ReactNode;
}): ReactNode {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by keyboard.
    <section className="key-table" tabIndex={0} aria-label={label}>
      <table>
        <thead>
          <tr>
            {heads.map((head) => (
              <th key={head} scope="col" className={numbers.includes(head) ? "number" : undefined}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  );
}
