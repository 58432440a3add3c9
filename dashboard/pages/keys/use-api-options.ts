import { useMemo, useState } from "react";
import { useRead } from "../../api/queries.ts";
import type { ComboboxOption } from "../../components/combobox.tsx";

/** How many are offered at a time; typing finds the others. */
const OFFERED = 50;
/** As long as the server takes it. */
const SEARCH_MAX = 256;

/** The APIs that a combobox offers: those that the server finds for what is typed, and always the chosen one. */
export function useApiOptions(
  chosen: string | undefined,
  chosenName: string | undefined,
): { readonly options: readonly ComboboxOption[]; readonly onSearch: (text: string) => void } {
  const [text, setText] = useState("");
  const search = text === "" ? {} : { search: text.slice(0, SEARCH_MAX) };
  const { data } = useRead("admin.listApis", { limit: OFFERED, ...search });
  const options = useMemo(() => {
    const found = (data ?? []).map(({ apiId, name }) => ({ value: apiId, label: name, note: apiId }));
    const isFound = chosen === undefined || found.some(({ value }) => value === chosen);
    return isFound ? found : [{ value: chosen, label: chosenName ?? chosen, note: chosen }, ...found];
  }, [data, chosen, chosenName]);
  return { options, onSearch: setText };
}
