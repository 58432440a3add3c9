import type { ReactNode } from "react";
import type { Pages } from "../api/queries.ts";
import { Ago } from "./ago.tsx";
import { Button } from "./button.tsx";
import "./table-foot.css";

/** Footer of a list. It shows how many rows were read (`children`), whether there are more rows, and how old the rows are. */
export function TableFoot({
  pages: { hasMore, readMore, isLoadingMore, readAtMs, again },
  children,
}: {
  pages: Omit<Pages<unknown>, "rows">;
  children: ReactNode;
}): ReactNode {
  return (
    <p className="table-foot muted">
      {readAtMs > 0 && (
        <span>
          {children}
          {hasMore ? " loaded; there are more" : ""}
        </span>
      )}
      {hasMore && (
        <Button kind="quiet" onClick={readMore} isBusy={isLoadingMore}>
          {isLoadingMore ? "Loading …" : "Load more"}
        </Button>
      )}
      {readAtMs > 0 && (
        <span className="table-age">
          as of <Ago atMs={readAtMs} />
          <Button kind="quiet" onClick={again}>
            Reload
          </Button>
        </span>
      )}
    </p>
  );
}
