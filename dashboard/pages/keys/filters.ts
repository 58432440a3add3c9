import type { Input } from "../../../core/api/procedures.ts";

/* Filters of the key list, as they are in the address and in the API request. Neither contains a secret or its hash. */

export const MATCHES = ["name", "owner", "start", "keyId"] as const;
export type Match = (typeof MATCHES)[number];
export const STATES = ["enabled", "disabled", "expired"] as const;
const YES_NO = ["yes", "no"] as const;

export interface KeyFilters {
  /** Id of the API; all APIs if omitted. */
  readonly api?: string;
  readonly by?: Match;
  /** Text to search for. */
  readonly q?: string;
  readonly state?: (typeof STATES)[number];
  readonly credits?: (typeof YES_NO)[number];
  readonly managed?: (typeof YES_NO)[number];
  readonly role?: string;
  readonly permission?: string;
}

/** Reads the filters from the address. Anyone may have written the address, so invalid filters are omitted. */
export function readFilters(search: Record<string, unknown>): KeyFilters {
  const [api, q, role, permission] = ["api", "q", "role", "permission"].map((name) => textOf(search[name]));
  const by = oneOf(MATCHES, search.by);
  const state = oneOf(STATES, search.state);
  const credits = oneOf(YES_NO, search.credits);
  const managed = oneOf(YES_NO, search.managed);
  return {
    ...(api === undefined ? {} : { api }),
    ...(by === undefined ? {} : { by }),
    ...(q === undefined ? {} : { q }),
    ...(state === undefined ? {} : { state }),
    ...(credits === undefined ? {} : { credits }),
    ...(managed === undefined ? {} : { managed }),
    ...(role === undefined ? {} : { role }),
    ...(permission === undefined ? {} : { permission }),
  };
}

const TEXT_LENGTH_MAX = 255;

/** Returns a text parameter; the router parses `?q=123` as a number. */
const textOf = (value: unknown): string | undefined =>
  (typeof value === "string" && value !== "") || typeof value === "number"
    ? String(value).slice(0, TEXT_LENGTH_MAX)
    : undefined;

const oneOf = <T extends string>(choices: readonly T[], value: unknown): T | undefined =>
  choices.find((choice) => choice === value);

/** Returns the body for `admin.searchKeys`. */
export function searchBody(filters: KeyFilters): Omit<Input<"admin.searchKeys">, "limit" | "cursor"> {
  const { api, by = "name", q, state, credits, managed, role, permission } = filters;
  const field = { name: "name", owner: "externalId", start: "start", keyId: "keyId" } as const;
  return {
    ...(api === undefined ? {} : { apiId: api }),
    ...(q === undefined ? {} : { [field[by]]: q }),
    ...(state === "enabled" ? { enabled: true, expired: false } : {}),
    ...(state === "disabled" ? { enabled: false } : {}),
    ...(state === "expired" ? { expired: true } : {}),
    ...(credits === undefined ? {} : { limited: credits === "yes" }),
    ...(managed === undefined ? {} : { managed: managed === "yes" }),
    ...(role === undefined ? {} : { role }),
    ...(permission === undefined ? {} : { permission }),
  };
}

/** Describes to the user how the entered text is matched. */
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
