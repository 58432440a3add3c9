import type { ReactNode } from "react";
import { Button } from "./button.tsx";
import { csvOf, downloadCsv } from "./download.ts";
import { Notice } from "./notice.tsx";
import "./dialog.css";

/* Parts of a dialog that acts on many rows: the progress, and the rows that failed. */

/** Bar and text of the progress. Screen readers read the text when the work ends or waits, not after each row. */
export function BatchProgress({
  label,
  max,
  value,
  isRunning,
  children,
}: {
  label: string;
  max: number;
  value: number;
  isRunning: boolean;
  children: ReactNode;
}): ReactNode {
  return (
    <div>
      <progress className="dialog-progress" max={max} value={value} aria-label={label} />
      <p role="status" aria-live={isRunning ? "off" : "polite"}>
        {children}
      </p>
    </div>
  );
}

const SHOWN_MAX = 100;

/** Lists rows that failed, each with its reason. A file with all of them can be downloaded. */
export function FailedRows<T extends Readonly<Record<string, unknown>>>({
  title,
  rows,
  columns,
  file,
  textOf,
}: {
  title: string;
  rows: readonly T[];
  /** Columns of the file. Each is the name of a member of the rows. */
  columns: readonly (keyof T & string)[];
  /** Name of the file. */
  file: string;
  textOf: (row: T) => string;
}): ReactNode {
  if (rows.length === 0) return null;
  return (
    <Notice
      kind="warn"
      actions={<Button onClick={() => downloadCsv(file, csvOf(columns, rows))}>Download all as CSV</Button>}
    >
      <p>
        <strong>{title}</strong>
      </p>
      <ul>
        {rows.slice(0, SHOWN_MAX).map((row) => (
          <li key={textOf(row)}>{textOf(row)}</li>
        ))}
      </ul>
      {rows.length > SHOWN_MAX && <p>and {(rows.length - SHOWN_MAX).toLocaleString("en")} more, in the file.</p>}
    </Notice>
  );
}
