import type { ReactNode } from "react";
import { Button } from "../../components/button.tsx";
import { SearchField } from "../../components/search-field.tsx";
import { ApiSelect, OutcomeSelect, RangeButtons } from "../../components/usage-selects.tsx";
import type { TimeWindow } from "../../usage/buckets.ts";
import { rangeOf, type UsageSearch, withRange } from "../../usage/search.ts";

const ANY = "";

/** Filters of the charts: time range, API, key, owner and outcome. The address contains all of them. */
export function Filters({
  search,
  window,
  onChange,
}: {
  search: UsageSearch;
  window: TimeWindow;
  onChange: (search: UsageSearch) => void;
}): ReactNode {
  const range = rangeOf(search);
  const set = (name: "api" | "key" | "owner" | "outcome", value: string): void => {
    const { [name]: _, ...rest } = search;
    onChange(value === ANY ? rest : { ...rest, [name]: value });
  };
  return (
    <div className="usage-bar">
      <fieldset className="usage-ranges">
        <legend className="unseen">Time</legend>
        <RangeButtons range={range} onChange={(preset) => onChange(withRange(search, preset))} />
        {typeof range !== "string" && (
          <Button
            title="Double the period"
            onClick={() => {
              const half = (window.toMs - window.fromMs) / 2;
              onChange(withRange(search, { fromMs: Math.max(0, window.fromMs - half), toMs: window.toMs + half }));
            }}
          >
            Zoom out
          </Button>
        )}
      </fieldset>
      <ApiSelect value={search.api} onChange={(value) => set("api", value)} />
      <SearchField label="Key id" value={search.key ?? ANY} onChange={(value) => set("key", value.trim())} />
      <SearchField label="Owner" value={search.owner ?? ANY} onChange={(value) => set("owner", value)} />
      <OutcomeSelect value={search.outcome} onChange={(value) => set("outcome", value)} />
    </div>
  );
}
