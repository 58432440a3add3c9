import { textsIn } from "../../components/address-text.ts";

const STATES = ["active", "disabled", "expired"] as const;

export interface RootKeySearch {
  /** Part of the name, id or start. */
  readonly search?: string;
  readonly environment?: string;
  readonly state?: (typeof STATES)[number];
  /** Whose details are open. */
  readonly rootKey?: string;
}

/** What the address says, without what it may not. */
export function readSearch(search: Record<string, unknown>): RootKeySearch {
  const state = STATES.find((one) => one === search.state);
  return {
    ...textsIn(search, "search", "environment", "rootKey"),
    ...(state === undefined ? {} : { state }),
  };
}
