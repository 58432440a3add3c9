import type { Input } from "../../../core/api/procedures.ts";
import { endOfDays } from "../../components/time.ts";
import { choiceIn, textsIn } from "../../search-params.ts";

/* Filters of the key list, in the URL and in the API request. They contain neither a secret nor its hash. */

export const MATCHES = ["name", "owner", "start", "keyId"] as const;
export type Match = (typeof MATCHES)[number];
export const STATES = ["enabled", "disabled", "expired"] as const;
export const EXPIRIES = ["7d", "30d", "90d"] as const;
const YES_NO = ["yes", "no"] as const;

export interface KeyFilters {
  /** Id of the API; all APIs if omitted. */
  readonly api?: string;
  readonly by?: Match;
  /** Text to search for. */
  readonly q?: string;
  readonly state?: (typeof STATES)[number];
  /** Period within which the key expires. */
  readonly expires?: (typeof EXPIRIES)[number];
  readonly credits?: (typeof YES_NO)[number];
  readonly managed?: (typeof YES_NO)[number];
  readonly role?: string;
  readonly permission?: string;
}

/** Reads the filters from the URL and omits invalid ones. */
export const readFilters = (search: Record<string, unknown>): KeyFilters => ({
  ...textsIn(search, "api", "q", "role", "permission"),
  ...choiceIn(search, "by", MATCHES),
  ...choiceIn(search, "state", STATES),
  ...choiceIn(search, "expires", EXPIRIES),
  ...choiceIn(search, "credits", YES_NO),
  ...choiceIn(search, "managed", YES_NO),
});

/** Returns the body for `admin.searchKeys`. */
export function searchBody(filters: KeyFilters, nowMs: number): Omit<Input<"admin.searchKeys">, "limit" | "cursor"> {
  const { api, by = "name", q, state, expires, credits, managed, role, permission } = filters;
  const field = { name: "name", owner: "externalId", start: "start", keyId: "keyId" } as const;
  return {
    ...(api === undefined ? {} : { apiId: api }),
    ...(q === undefined ? {} : { [field[by]]: q }),
    ...(state === "enabled" ? { enabled: true, expired: false } : {}),
    ...(state === "disabled" ? { enabled: false } : {}),
    ...(state === "expired" ? { expired: true } : {}),
    ...(expires === undefined ? {} : { expiresBefore: endOfDays(Number.parseInt(expires, 10), nowMs) }),
    ...(credits === undefined ? {} : { limited: credits === "yes" }),
    ...(managed === undefined ? {} : { managed: managed === "yes" }),
    ...(role === undefined ? {} : { role }),
    ...(permission === undefined ? {} : { permission }),
  };
}

/** Returns a text that tells the user how the entered text is matched. */
export function matchInWords(by: Match, isOneApi: boolean): string {
  switch (by) {
    case "name":
      return isOneApi ? "Part of the name." : "Start of the name. Choose an API to search for any part of the name.";
    case "owner":
      return "Complete external id of the owner; case-sensitive.";
    case "start":
      return "Start of the key, such as prod_3Ab9; case-sensitive.";
    case "keyId":
      return "Complete id of the key.";
  }
}
