import { useMemo, useState } from "react";
import { useRead } from "../../api/queries.ts";
import type { ComboboxOption } from "../../components/combobox.tsx";

/** Maximum number of options; a search finds the others. */
const OFFERED = 50;
/** Maximum length of a search text that the server accepts. */
const SEARCH_MAX = 256;

/** Returns the APIs that a combobox offers: the APIs that the server finds for the typed text, and always the selected API. */
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
