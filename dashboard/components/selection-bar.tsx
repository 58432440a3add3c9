import { X } from "lucide-react";
import type { ReactNode } from "react";
import { Button } from "./button.tsx";
import type { Selection } from "./use-selection.ts";
import { countText } from "./uses.ts";
import "./selection-bar.css";

/**
 * Bar over the header of a `Table` with the number of selected rows and the actions for them (`children`); on a phone, the bar is at the
 * lower edge of the window. It takes up no space in the layout, so that no row moves under the pointer when it appears.
 */
export function SelectionBar<T>({
  selection,
  one,
  many,
  max,
  children,
}: {
  selection: Selection<T>;
  /** Noun for one row, and its plural if that is not the noun plus "s". */
  one: string;
  many?: string;
  /** Maximum number of rows for one action. */
  max: number;
  children: ReactNode;
}): ReactNode {
  const count = selection.rows.length;
  const text = count === 0 ? "" : `${countText(count, one, many)} selected`;
  const limit = max.toLocaleString("en");
  return (
    <>
      <p className="unseen" role="status">
        {text}
      </p>
      {count > 0 && (
        <section className="selection-bar" aria-label="Selection">
          <strong>{text}</strong>
          {count > max ? (
            <>
              <span className="muted">Actions take at most {limit}.</span>
              <Button onClick={() => selection.keepFirst(max)}>Keep the first {limit}</Button>
            </>
          ) : (
            children
          )}
          <Button kind="quiet" className="selection-clear" title="Clear the selection" onClick={selection.clear}>
            <X size={16} aria-hidden />
            <span className="unseen">Clear the selection</span>
          </Button>
        </section>
      )}
    </>
  );
}
