import type { ReactNode } from "react";
import { useNames } from "../../api/use-names.ts";
import { Button } from "../../components/button.tsx";
import { FilterMenu } from "../../components/filter-menu.tsx";
import { SearchField } from "../../components/search-field.tsx";
import { ApiSelect, chipOf, OutcomeSelect, RangeButtons } from "../../components/usage-selects.tsx";
import { PRESET_NAMES, type TimeWindow, wordsOfPreset } from "../../usage/buckets.ts";
import { rangeOf, type UsageSearch, withRange } from "../../usage/search.ts";
import { outcomeInWords } from "../../usage/series.ts";

const ANY = "";

/** Filters of the charts: time range, API, key, owner and outcome. The URL contains all of them. */
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
  const { api, key, owner, outcome } = search;
  const apis = useNames("api", api === undefined ? [] : [api]);
  const set = (name: "api" | "key" | "owner" | "outcome", value: string): void => {
    const { [name]: _, ...rest } = search;
    onChange(value === ANY ? rest : { ...rest, [name]: value });
  };
  return (
    <div className="usage-bar">
      <RangeButtons
        names={PRESET_NAMES}
        wordsOf={wordsOfPreset}
        range={range}
        onChange={(preset) => onChange(withRange(search, preset))}
      >
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
      </RangeButtons>
      <FilterMenu
        chips={[
          ...chipOf("API", api && (apis.get(api)?.name ?? api), () => set("api", ANY)),
          ...chipOf("Key id", key, () => set("key", ANY)),
          ...chipOf("Owner", owner, () => set("owner", ANY)),
          ...chipOf("Outcome", outcome && outcomeInWords(outcome), () => set("outcome", ANY)),
        ]}
      >
        <ApiSelect value={api} onChange={(value) => set("api", value)} />
        <OutcomeSelect value={outcome} onChange={(value) => set("outcome", value)} />
        <SearchField label="Key id" value={key ?? ANY} onChange={(value) => set("key", value.trim())} />
        <SearchField label="Owner" value={owner ?? ANY} onChange={(value) => set("owner", value)} />
      </FilterMenu>
    </div>
  );
}
