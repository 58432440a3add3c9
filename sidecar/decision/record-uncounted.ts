import type { Logger } from "pino";
import { LogThrottle } from "../../edge/log-throttle.ts";
import type { CountingDeps } from "../../edge/verification/count.ts";

const MESSAGES = {
  limits: "limits cannot be counted; onCounterFailure applies",
  credits: "credits cannot be spent; onCreditFailure applies",
} as const;

/** Logs why requests are not counted: at most one line every 5 s, with the number of affected requests. */
export function noteUncounted(log: Pick<Logger, "warn">): CountingDeps["onUncounted"] {
  const throttle = new LogThrottle();
  return (what, done, cause) => {
    const requests = throttle.note(what);
    if (requests !== undefined) log.warn({ reason: reasonOf(cause), done, requests }, MESSAGES[what]);
  };
}

/** Returns the messages of the error and of its causes. */
function reasonOf(cause: unknown): string {
  const said: string[] = [];
  for (let at = cause; at instanceof Error && said.length < CAUSES_MAX; at = at.cause) said.push(at.message);
  return said.length === 0 ? NOT_LOADED : said.join(": ");
}

const CAUSES_MAX = 5;
/** Reason why credits are not counted although the shared store is reachable: no api-server has loaded the key's remaining credits. */
const NOT_LOADED = "they are not loaded, which api-servers do";
