import type { ReactNode } from "react";
import "./plain-table.css";

/** The value of an item before and after a change. */
export interface Changed {
  readonly name: string;
  readonly before: ReactNode;
  readonly after: ReactNode;
}

/** Table of changed values: one row per item, with the value before and after the change. */
export function Difference({
  caption,
  of,
  changes,
}: {
  caption: string;
  /** Header of the first column, which contains the names of the items. */
  of: string;
  changes: readonly Changed[];
}): ReactNode {
  return (
    <table className="plain-table">
      <caption>{caption}</caption>
      <thead>
        <tr>
          <th scope="col">{of}</th>
          <th scope="col">Before</th>
          <th scope="col">After</th>
        </tr>
      </thead>
      <tbody>
        {changes.map(({ name, before, after }) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>
              <del>{before}</del>
            </td>
            <td>
              <ins>{after}</ins>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
