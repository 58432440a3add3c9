import type { ReactNode } from "react";
import { useWorkspace } from "../../api/session.ts";
import { useNames } from "../../api/use-names.ts";
import { fullText, windowText } from "../../components/time.ts";
import type { TimeWindow } from "../../usage/buckets.ts";
import type { UsageSearch } from "../../usage/search.ts";
import { outcomeInWords } from "../../usage/series.ts";

/** Head of a printed report: workspace, period, filters and time. In print it replaces the buttons. */
export function PrintHead({
  search: { api, key, owner, outcome },
  window,
  atMs,
}: {
  search: UsageSearch;
  window: TimeWindow;
  /** Time at which the page read the usage, Unix ms. */
  atMs: number;
}): ReactNode {
  const { workspace } = useWorkspace();
  const apis = useNames("api", api === undefined ? [] : [api]);
  const filters = [
    ...(api === undefined ? [] : [`API ${apis.get(api)?.name ?? api}`]),
    ...(key === undefined ? [] : [`key ${key}`]),
    ...(owner === undefined ? [] : [`owner ${owner}`]),
    ...(outcome === undefined ? [] : [`outcome ${outcomeInWords(outcome)}`]),
  ];
  return (
    <div className="print-head">
      <p>
        Workspace <strong>{workspace.name}</strong>
      </p>
      <p>{windowText(window)}</p>
      {filters.length > 0 && <p>Only {filters.join(", ")}</p>}
      <p>Report of {fullText(atMs)}</p>
    </div>
  );
}
