import { ofApi, type SampleCalls } from "./sample-calls.ts";

/*
 * Calls of every procedure of v1 that succeed, as `sample-calls.ts` has them for v2. What the body holds is sent as a query where the
 * procedure is a GET.
 */

export const V1_SAMPLE_CALLS: SampleCalls = {
  "v1/liveness": { always: async () => ({ body: {} }) },

  // apis
  "v1/apis.createApi": { always: async (things) => ({ body: { name: things.name("api") } }) },
  "v1/apis.getApi": { always: ofApi() },

  // keys

  // ratelimits

  // identities

  // permissions

  // analytics

  // migrations

  // leftovers
};
