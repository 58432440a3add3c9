import { choiceIn, textsIn } from "../../search-params.ts";

const STATES = ["active", "disabled", "expired"] as const;

export interface RootKeySearch {
  /** Text to search for in the names, ids and visible starts of root keys. */
  readonly search?: string;
  readonly environment?: string;
  readonly state?: (typeof STATES)[number];
  /** Id of the root key whose details are open. */
  readonly rootKey?: string;
}

/** Reads the URL parameters and omits invalid ones. */
export const readSearch = (search: Record<string, unknown>): RootKeySearch => ({
  ...textsIn(search, "search", "environment", "rootKey"),
  ...choiceIn(search, "state", STATES),
});
