import type { Expected } from "./permissions-expected.ts";

/*
 * What each procedure of v1 asks of a root key, as `permissions-expected.ts` has it for v2.
 */

const api = (action: string) => `api.<apiId>.${action}`;

export const V1_EXPECTED: Readonly<Record<string, Expected>> = {
  "v1/liveness": { needs: [] },

  // apis
  "v1/apis.createApi": { needs: ["api.*.create_api"] },
  "v1/apis.getApi": { needs: [api("read_api")] },

  // keys

  // ratelimits

  // identities

  // permissions

  // analytics

  // migrations

  // leftovers
};
