import type { Passed } from "../decision/decide.ts";

/**
 * Returns the headers that a gateway sets for the app, as alternating names and values: the identity, and `X-Postern-Target`, which is the
 * checked path and query without keys. A gateway that forwards this target sends the app only the checked request.
 */
export const headersForApp = ({ identity, requestId, admitted }: Passed): string[] => [
  ...identity,
  "X-Postern-Request-Id",
  requestId,
  "X-Postern-Target",
  admitted.target,
];
