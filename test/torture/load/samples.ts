import type { Journal } from "../journal.ts";
import type { Part } from "../world/part.ts";
import type { Http } from "./http.ts";

const TIMEOUT_MS = 2_000;

/** Reads the staleness of a process once and records it. undefined: no reply. */
export async function sample(
  http: Http,
  part: Part,
  journal?: Journal,
): Promise<{ stalenessMs: number | undefined; leads: boolean } | undefined> {
  const { incarnation } = part;
  const result = await http.send({ method: "GET", url: `${part.adminUrl}/metrics`, timeoutMs: TIMEOUT_MS });
  if (result.kind !== "answered" || result.status !== 200) return undefined;
  const { sentMs, answeredMs } = result;
  const stalenessMs = readStaleness(result.text, "staleness");
  // A sidecar follows only one workspace.
  const streamStalenessMs = part.name.startsWith("api-") ? readStaleness(result.text, "feed_staleness") : stalenessMs;
  const limitFailures = /^postern_sidecar_counter_failures_total\{kind="limits"\} (\d+)$/m.exec(result.text)?.[1];
  const counted = limitFailures === undefined ? {} : { limitFailures: Number(limitFailures) };
  const said = { sentMs, answeredMs, stalenessMs, streamStalenessMs, ...counted };
  journal?.add({ type: "sample", process: part.name, incarnation, ...said });
  return { stalenessMs, leads: /^postern_relay_leading 1$/m.test(result.text) };
}

/** Longer ago than the start of any run. */
const UNKNOWN_S = 1e9;

/** An api-server reports -1 for "no data yet", or 1970 for a single workspace; a sidecar reports +Inf. */
function readStaleness(text: string, name: "staleness" | "feed_staleness"): number | undefined {
  const found = new RegExp(`^postern_(?:sidecar|projection)_${name}_seconds (\\S+)$`, "m").exec(text);
  const seconds = Number(found?.[1]?.replace("+Inf", "Infinity"));
  return seconds >= 0 && seconds < UNKNOWN_S ? seconds * 1000 : undefined;
}
