import type { Journal } from "../journal.ts";
import type { Part } from "../world/part.ts";
import type { Http } from "./http.ts";

const TIMEOUT_MS = 2_000;

/** Asks a process once for the age of its knowledge, and writes down what it says. undefined: no answer. */
export async function sample(
  http: Http,
  part: Part,
  journal?: Journal,
): Promise<{ stalenessMs: number | undefined; leads: boolean } | undefined> {
  const { incarnation } = part;
  const result = await http.send({ method: "GET", url: `${part.adminUrl}/metrics`, timeoutMs: TIMEOUT_MS });
  if (result.kind !== "answered" || result.status !== 200) return undefined;
  const { sentMs, answeredMs } = result;
  const stalenessMs = readStaleness(result.text);
  journal?.add({ type: "sample", process: part.name, incarnation, sentMs, answeredMs, stalenessMs });
  return { stalenessMs, leads: /^postern_relay_leading 1$/m.test(result.text) };
}

/** An api-server says -1 for "nothing known yet", a sidecar +Inf. */
function readStaleness(text: string): number | undefined {
  const found = /^postern_(?:sidecar|projection)_staleness_seconds (\S+)$/m.exec(text);
  const seconds = Number(found?.[1]?.replace("+Inf", "Infinity"));
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : undefined;
}
