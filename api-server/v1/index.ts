import type { AnyV1Procedure } from "../procedure-v1.ts";
import { createApi } from "./apis/createApi.ts";
import { getApi } from "./apis/getApi.ts";
import { liveness } from "./liveness.ts";

/** Every procedure that is served under `/v1/`. */
export const v1Procedures: readonly AnyV1Procedure[] = [
  liveness,

  // apis
  createApi,
  getApi,

  // keys

  // ratelimits

  // identities

  // permissions

  // analytics

  // migrations

  // leftovers
];
