import type { Passed } from "../decision/decide.ts";

/**
 * Returns the headers that a gateway sets for the app, as alternating names and values: the identity, and `X-Postern-Target`, which
 * contains the checked path and query without keys. If the gateway forwards the request to this target, the app receives exactly the
 * request that was checked.
 */
export const headersForApp = ({ identity, requestId, admitted }: Passed): string[] => [
  ...identity,
  "X-Postern-Request-Id",
  requestId,
  "X-Postern-Target",
  admitted.target,
];
