import type { ReactNode } from "react";
import type { QuerySchema } from "../../../usage/completion.ts";

/** Lists the tables, columns and functions that a query may use, with their descriptions. */
export function SchemaPanel({ schema }: { schema: QuerySchema }): ReactNode {
  return (
    <div className="sql-schema">
      {schema.tables.map(({ name, meaning, columns }) => (
        <details key={name}>
          <summary>
            <code>{name}</code>
          </summary>
          <p className="muted">{meaning}</p>
          <dl>
            {columns.map((column) => (
              <div key={column.name}>
                <dt>
                  <code>{column.name}</code> <span className="muted">{column.type}</span>
                </dt>
                <dd>{column.meaning}</dd>
              </div>
            ))}
          </dl>
        </details>
      ))}
      <details>
        <summary>Functions</summary>
        <dl>
          {schema.functions.map(({ name, call, meaning }) => (
            <div key={name}>
              <dt>
                <code>{call}</code>
              </dt>
              <dd>{meaning}</dd>
            </div>
          ))}
        </dl>
      </details>
    </div>
  );
}
