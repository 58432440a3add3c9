import { within } from "../../../edge/redis/script.ts";

/*
 * One part of an installation as people see it: what is known of it, how it stands, and what to read when it does not stand well. Each
 * part is asked with a deadline of its own, so a store that is away or hangs changes its own part alone.
 */

/** `off`: not used here. `away`: it did not answer. */
export type PartState = "ok" | "warn" | "away" | "off";

/** By name; the end of a name says the unit: `Bytes`, `Ms`, `At` (Unix ms), `Days`. */
export type Facts = Readonly<Record<string, string | number | boolean>>;

export interface Part {
  readonly part: string;
  readonly state: PartState;
  /** What is wrong, in a sentence, and the document that helps. */
  readonly problem?: string;
  readonly help?: string;
  /** Since when it has not answered, as far as this process has looked. */
  readonly awaySince?: number;
  readonly facts: Facts;
}

export interface Seen {
  readonly state?: Exclude<PartState, "away">;
  readonly problem?: string;
  readonly help?: string;
  readonly facts: Facts;
}

const PART_MS_MAX = 2_000;

/** Since when each part has been away, for as long as the process lives. */
export type AwaySince = Map<string, number>;

/** Asks for a part. Never rejects: what goes wrong is not told, because errors of stores name hosts and users. */
export async function lookAt(
  part: string,
  ask: () => Promise<Seen>,
  { away, nowMs, help }: { readonly away: AwaySince; readonly nowMs: () => number; readonly help: string },
): Promise<Part> {
  try {
    const seen = await within(PART_MS_MAX, ask());
    away.delete(part);
    return { part, state: seen.problem === undefined ? "ok" : "warn", ...seen };
  } catch {
    const awaySince = away.get(part) ?? nowMs();
    away.set(part, awaySince);
    const problem = `It did not answer within ${PART_MS_MAX / 1000} s.`;
    return { part, state: "away", problem, help, awaySince, facts: {} };
  }
}
