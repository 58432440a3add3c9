import type { ReactNode } from "react";
import { useNames } from "../../api/use-names.ts";
import { FilterMenu } from "../../components/filter-menu.tsx";
import { SearchField } from "../../components/search-field.tsx";
import { Select } from "../../components/select.tsx";
import { ApiSelect, chipOf, NamespaceSelect, OutcomeSelect, RangeButtons } from "../../components/usage-selects.tsx";
import { outcomeInWords } from "../../usage/series.ts";
import { DEFAULT_RANGE, RANGE_NAMES, RANGES, type RequestsSearch } from "./search.ts";

type Set = (change: Partial<Record<keyof RequestsSearch, string>>) => void;

const RESULTS = { within: "within the limit", over: "over the limit" } as const;

/** Filters of a tab; the URL contains all of them. */
export function Filters({
  search,
  set,
}: {
  search: RequestsSearch;
  /** Sets URL parameters; an empty text removes a parameter. */
  set: Set;
}): ReactNode {
  const isOfLimits = search.of === "ratelimits";
  const chips = useChips(search, set, isOfLimits);
  return (
    <div className="requests-filters">
      <RangeButtons
        names={RANGE_NAMES}
        wordsOf={(name) => RANGES[name].words}
        range={search.range ?? DEFAULT_RANGE}
        onChange={(range) => set({ range: range === DEFAULT_RANGE ? "" : range })}
      />
      <FilterMenu chips={chips}>
        {isOfLimits ? (
          <>
            <Select
              label="Result"
              value={search.result ?? ""}
              options={[
                { value: "", label: "All results" },
                ...Object.entries(RESULTS).map(([value, label]) => ({ value, label })),
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
      </FilterMenu>
    </div>
  );
}

/** Returns the chips of the filters that apply to the tab. */
function useChips(search: RequestsSearch, set: Set, isOfLimits: boolean) {
  const { outcome, api, key, owner, result, namespace, identifier } = search;
  const apis = useNames("api", api === undefined ? [] : [api]);
  const namespaces = useNames("namespace", namespace === undefined ? [] : [namespace]);
  return isOfLimits
    ? [
        ...chipOf("Result", result && RESULTS[result], () => set({ result: "" })),
        ...chipOf("Namespace", namespace && (namespaces.get(namespace)?.name ?? namespace), () =>
          set({ namespace: "" }),
        ),
        ...chipOf("Identifier", identifier, () => set({ identifier: "" })),
      ]
    : [
        ...chipOf("Outcome", outcome && outcomeInWords(outcome), () => set({ outcome: "" })),
        ...chipOf("API", api && (apis.get(api)?.name ?? api), () => set({ api: "" })),
        ...chipOf("Key id", key, () => set({ key: "" })),
        ...chipOf("Owner", owner, () => set({ owner: "" })),
      ];
}
