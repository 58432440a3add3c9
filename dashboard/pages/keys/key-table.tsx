import type { ReactNode } from "react";

/** A short table about a key. Where it is wider than its place it is scrolled, by the keyboard too. */
export function KeyTable({
  label,
  heads,
  numbers = [],
  children,
}: {
  label: string;
  heads: readonly string[];
  /** Those of the heads that stand over numbers. */
  numbers?: readonly string[];
  /** Its rows. */
  children: ReactNode;
}): ReactNode {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls is reached by the keyboard.
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
