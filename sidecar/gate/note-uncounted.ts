import type { Logger } from "pino";
import { Rarely } from "../../edge/rarely.ts";
import type { CountingParts } from "../../edge/verification/count.ts";

const MESSAGES = {
  limits: "the shared counters do not count limits; onCounterFailure says what is done",
  credits: "credits cannot be spent; onCreditFailure says what is done",
} as const;

/** Logs why requests are not counted: one line in five seconds, with how many there were. */
export function noteUncounted(log: Pick<Logger, "warn">): CountingParts["onUncounted"] {
  const rarely = new Rarely();
  return (what, done, cause) => {
    const requests = rarely.note(what);
    if (requests !== undefined) log.warn({ reason: reasonOf(cause), done, requests }, MESSAGES[what]);
  };
}

/** The messages of the error and of its causes. */
function reasonOf(cause: unknown): string {
  const said: string[] = [];
  for (let at = cause; at instanceof Error && said.length < CAUSES_MAX; at = at.cause) said.push(at.message);
  return said.length === 0 ? NOT_LOADED : said.join(": ");
}

const CAUSES_MAX = 5;
/** The store answers: no api-server has loaded what is left of the key's credits. */
const NOT_LOADED = "they are not loaded, which api-servers do";
