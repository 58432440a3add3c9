import type { Passed } from "../gate/decide.ts";

/**
 * The headers that a gateway sets for the app, names and values by turns: who called, and `X-Postern-Target`, the path and query that were
 * checked, without keys. A gateway that passes on that target serves nothing else than what was checked.
 */
export const headersForApp = ({ identity, requestId, onward }: Passed): string[] => [
  ...identity,
  "X-Postern-Request-Id",
  requestId,
  "X-Postern-Target",
  onward.target,
];
