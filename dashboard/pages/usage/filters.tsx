import type { ReactNode } from "react";
import { useRead } from "../../api/queries.ts";
import { Button } from "../../components/button.tsx";
import { SearchField } from "../../components/search-field.tsx";
import { Select } from "../../components/select.tsx";
import { PRESET_NAMES, type TimeWindow, wordsOfPreset } from "../../usage/buckets.ts";
import { rangeOf, type UsageSearch, withRange } from "../../usage/search.ts";
import { OUTCOMES, outcomeInWords } from "../../usage/series.ts";

const APIS_MAX = 100;
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
  const apis = useRead("admin.listApis", { limit: APIS_MAX });
  const known = apis.data?.map(({ apiId, name }) => ({ value: apiId, label: name })) ?? [];
  const { api, outcome } = search;
  const apiOptions = [
    { value: ANY, label: "All APIs" },
    ...known,
    ...(api === undefined || known.some(({ value }) => value === api) ? [] : [{ value: api, label: api }]),
  ];
  const outcomes = Object.keys(OUTCOMES);
  const outcomeOptions = [
    { value: ANY, label: "All outcomes" },
    ...[...outcomes, ...(outcome === undefined || outcomes.includes(outcome) ? [] : [outcome])].map((value) => ({
      value,
      label: outcomeInWords(value),
    })),
  ];
  const set = (name: "api" | "key" | "owner" | "outcome", value: string): void => {
    const { [name]: _, ...rest } = search;
    onChange(value === ANY ? rest : { ...rest, [name]: value });
  };
  return (
    <div className="usage-bar">
      <fieldset className="usage-ranges">
        <legend className="unseen">Time</legend>
        {PRESET_NAMES.map((preset) => (
          <Button
            key={preset}
            aria-pressed={range === preset}
            title={wordsOfPreset(preset)}
            onClick={() => onChange(withRange(search, preset))}
          >
            {preset}
          </Button>
        ))}
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
      <Select label="API" value={api ?? ANY} options={apiOptions} onChange={(value) => set("api", value)} />
      <SearchField label="Key id" value={search.key ?? ANY} onChange={(value) => set("key", value.trim())} />
      <SearchField label="Owner" value={search.owner ?? ANY} onChange={(value) => set("owner", value)} />
      <Select
        label="Outcome"
        value={outcome ?? ANY}
        options={outcomeOptions}
        onChange={(value) => set("outcome", value)}
      />
    </div>
  );
}
