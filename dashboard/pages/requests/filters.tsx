import type { ReactNode } from "react";
import { SearchField } from "../../components/search-field.tsx";
import { Select } from "../../components/select.tsx";
import { ApiSelect, NamespaceSelect, OutcomeSelect } from "../../components/usage-selects.tsx";
import { DEFAULT_RANGE, RANGE_NAMES, RANGES, type RequestsSearch } from "./search.ts";

const capital = (words: string): string => words.replace(/^the l/, "L");

/** Filters of a tab; the address contains all of them. */
export function Filters({
  search,
  set,
}: {
  search: RequestsSearch;
  /** Sets parameters of the address; an empty text removes one. */
  set: (change: Partial<Record<keyof RequestsSearch, string>>) => void;
}): ReactNode {
  const isOfLimits = search.of === "ratelimits";
  return (
    <div className="requests-filters">
      <Select
        label="Time"
        value={search.range ?? DEFAULT_RANGE}
        options={RANGE_NAMES.map((value) => ({ value, label: capital(RANGES[value].words) }))}
        onChange={(range) => set({ range: range === DEFAULT_RANGE ? "" : range })}
      />
      {isOfLimits ? (
        <>
          <Select
            label="Result"
            value={search.result ?? ""}
            options={[
              { value: "", label: "All results" },
              { value: "within", label: "within the limit" },
              { value: "over", label: "over the limit" },
            ]}
            onChange={(result) => set({ result })}
          />
          <NamespaceSelect value={search.namespace} onChange={(namespace) => set({ namespace })} />
          <SearchField
            label="Identifier"
            value={search.identifier ?? ""}
            onChange={(identifier) => set({ identifier })}
          />
        </>
      ) : (
        <>
          <OutcomeSelect value={search.outcome} onChange={(outcome) => set({ outcome })} />
          <ApiSelect value={search.api} onChange={(api) => set({ api })} />
          <SearchField label="Key id" value={search.key ?? ""} onChange={(key) => set({ key: key.trim() })} />
          <SearchField label="Owner" value={search.owner ?? ""} onChange={(owner) => set({ owner })} />
        </>
      )}
    </div>
  );
}
