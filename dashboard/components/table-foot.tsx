import type { ReactNode } from "react";
import type { Pages } from "../api/queries.ts";
import { Ago } from "./ago.tsx";
import { Button } from "./button.tsx";
import "./table-foot.css";

/** Below a list: how much of it was read, as `children` says, whether there is more, and how old it is. */
export function TableFoot({
  pages: { hasMore, readMore, isLoadingMore, readAtMs, again },
  children,
}: {
  pages: Omit<Pages<unknown>, "rows">;
  children: ReactNode;
}): ReactNode {
  return (
    <p className="table-foot muted">
      <span>
        {children}
        {hasMore ? " read, there are more" : ""}
      </span>
      {hasMore && (
        <Button kind="quiet" onClick={readMore} isBusy={isLoadingMore}>
          {isLoadingMore ? "Reading …" : "Read more"}
        </Button>
      )}
      {readAtMs > 0 && (
        <span className="table-age">
          as of <Ago atMs={readAtMs} />
          <Button kind="quiet" onClick={again}>
            Read again
          </Button>
        </span>
      )}
    </p>
  );
}
