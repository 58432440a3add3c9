import { choiceIn, textsIn } from "../../search-params.ts";
import type { LogFilter, LogOf } from "../../usage/requests.ts";

/* URL parameters of the Requests page: the tab and its filters. Anyone may have written the URL, so invalid values are omitted. */

export const RANGES = {
  "15m": { ms: 900_000, words: "the last 15 minutes" },
  "1h": { ms: 3_600_000, words: "the last hour" },
  "24h": { ms: 86_400_000, words: "the last 24 hours" },
  "7d": { ms: 604_800_000, words: "the last 7 days" },
} as const;
export type RangeName = keyof typeof RANGES;
export const RANGE_NAMES = Object.keys(RANGES) as readonly RangeName[];
export const DEFAULT_RANGE: RangeName = "1h";

const RESULTS = ["within", "over"] as const;

export interface RequestsSearch {
  /** Tab; verifications if omitted. */
  readonly of?: LogOf;
  readonly range?: RangeName;
  readonly outcome?: string;
  readonly api?: string;
  readonly key?: string;
  readonly owner?: string;
  /** Whether the request was within the rate limit or over it. */
  readonly result?: (typeof RESULTS)[number];
  readonly namespace?: string;
  readonly identifier?: string;
}

export const readRequestsSearch = (search: Readonly<Record<string, unknown>>): RequestsSearch => ({
  ...choiceIn(search, "of", ["ratelimits"] as const),
  ...choiceIn(
    search,
    "range",
    RANGE_NAMES.filter((name) => name !== DEFAULT_RANGE),
  ),
  ...textsIn(search, "outcome", "api", "key", "owner", "namespace", "identifier"),
  ...choiceIn(search, "result", RESULTS),
});

/** Returns the filters of the tab. `keySpaceId` is the key space of the API in the URL. */
export const filterOf = (search: RequestsSearch, keySpaceId: string | undefined): LogFilter =>
  search.of === "ratelimits"
    ? {
        passed: search.result === undefined ? undefined : search.result === "within",
        namespaceId: search.namespace,
        identifier: search.identifier,
      }
    : { outcome: search.outcome, keySpaceId, keyId: search.key, externalId: search.owner };
