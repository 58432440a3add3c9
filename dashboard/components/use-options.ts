import { useQueries, useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useApi } from "../api/api-context.ts";
import { ApiError } from "../api/api-error.ts";
import type { ComboboxOption } from "./combobox.tsx";
import type { OptionSource, PickerSource } from "./picker-sources.ts";
import { useDelayed } from "./use-delayed.ts";

/** Delay after the last keystroke before the request is sent. */
const SETTLED_MS = 200;
/** Timeout of a search. When it expires, the field says that the search failed. */
const DEADLINE_MS = 10_000;
/** Maximum number of values whose existence is checked. */
const CHECKED_MAX = 50;

export interface Options {
  readonly options: readonly ComboboxOption[];
  /** Whether the options match the current text. */
  readonly isCurrent: boolean;
  /** Sentence that says why the server could not search. */
  readonly problem: string | undefined;
}

const NONE: readonly ComboboxOption[] = [];

const within = (signal: AbortSignal): AbortSignal => AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]);

/** Searches the objects of a source while a person types. Until the options for the text arrive, the earlier ones are returned. */
export function useOptions(source: OptionSource, typed: string, { enabled = true } = {}): Options {
  const api = useApi();
  const text = typed.trim();
  const sent = useDelayed(text, SETTLED_MS);
  const { data, error, isPlaceholderData, isSuccess } = useQuery({
    queryKey: [api.workspace, "options", source.id, sent],
    queryFn: ({ signal }) => source.find(api, sent, within(signal)),
    placeholderData: (previous, query) =>
      query?.queryKey[0] === api.workspace && query?.queryKey[2] === source.id ? previous : undefined,
    enabled,
    retry: false,
    refetchOnWindowFocus: false,
  });
  return {
    options: data ?? NONE,
    isCurrent: sent === text && isSuccess && !isPlaceholderData,
    problem: error === null ? undefined : problemOf(error),
  };
}

const problemOf = (error: unknown): string =>
  error instanceof ApiError ? error.detail : `The server did not respond within ${DEADLINE_MS / 1000} seconds.`;

/** Returns the values for which the source is known to have no object of this name. */
export function useMissing(source: PickerSource, values: readonly string[]): readonly string[] {
  const api = useApi();
  return useQueries({
    queries: values.slice(0, CHECKED_MAX).map((value) => ({
      queryKey: [api.workspace, "options", source.id, "has", value],
      queryFn: async ({ signal }: { signal: AbortSignal }) => (await source.has(api, value, within(signal))) ?? null,
      retry: false,
      // Not cached, because submitting the form may create the object.
      gcTime: 0,
      refetchOnWindowFocus: false,
    })),
    combine: (results) => values.filter((_, at) => results[at]?.data === false),
  });
}

/** Properties of a `Combobox` that selects one existing object. */
interface Choices {
  /** The objects that the server finds for the typed text, plus the chosen object. */
  readonly options: readonly ComboboxOption[];
  readonly onSearch: (text: string) => void;
  readonly problem: string | undefined;
  /** The object if exactly one exists; `undefined` until that is known, and while text is typed. */
  readonly only: ComboboxOption | undefined;
}

export function useChoices(source: OptionSource, chosen: ComboboxOption | undefined, { enabled = true } = {}): Choices {
  const [text, setText] = useState("");
  const { options: found, isCurrent, problem } = useOptions(source, text, { enabled });
  const { value, label, note } = chosen ?? {};
  const options = useMemo(() => {
    if (value === undefined || label === undefined || found.some((option) => option.value === value)) return found;
    return [{ value, label, ...(note === undefined ? {} : { note }) }, ...found];
  }, [found, value, label, note]);
  const only = text.trim() === "" && isCurrent && found.length === 1 ? found[0] : undefined;
  return { options, onSearch: setText, problem, only };
}
