import type { ReactNode } from "react";
import "./detail-list.css";

/** List of an object's details, as names and values. */
export function DetailList({
  facts: details,
}: {
  facts: readonly (readonly [name: string, value: ReactNode])[];
}): ReactNode {
  return (
    <dl className="facts">
      {details.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
