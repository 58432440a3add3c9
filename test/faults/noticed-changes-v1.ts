import type { Noticed } from "./noticed-changes.ts";

/*
 * What is noticed of each change that is made through v1, as `noticed-changes.ts` has it for v2. The answers are asked of v2: both
 * generations read the same records.
 */

export const V1_NOTICED: Noticed = {
  // apis
  // keys
  // ratelimits
  // identities
  // permissions
  // migrations
  // leftovers
};

export const V1_UNNOTICED: Readonly<Record<string, string>> = {
  // apis
  "v1/apis.createApi": "no key is in it yet",

  // ratelimits

  // identities

  // permissions
};
