import type { ReactNode } from "react";
import "./plain-table.css";

/** Of one thing that was changed, or will be. */
export interface Changed {
  readonly name: string;
  readonly before: ReactNode;
  readonly after: ReactNode;
}

/** What was changed, or will be: each thing on a line, before and after. */
export function Difference({
  caption,
  of,
  changes,
}: {
  caption: string;
  /** The head of the first column: what the things are. */
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
