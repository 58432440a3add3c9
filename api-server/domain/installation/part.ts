import { within } from "../../../edge/redis/script.ts";

/*
 * One component of an installation, as the dashboard shows it: its details, its state and, if it has a problem, where the solution is
 * documented. Each component has its own deadline, so a slow database delays only the components that depend on it.
 */

/** State of a component. `off`: this installation does not use the component. `away`: the component does not respond. */
export type PartState = "ok" | "warn" | "away" | "off";

/** Details by name. The suffix of a name is its unit: `Bytes`, `Ms`, `At` (Unix ms), `Days`. */
export type Details = Readonly<Record<string, string | number | boolean>>;

export interface Part {
  readonly part: string;
  readonly state: PartState;
  /** Description of the problem in one sentence, and the path of the document that describes the solution. */
  readonly problem?: string;
  readonly help?: string;
  /** Time at which this process first saw the component unavailable, Unix ms. */
  readonly unavailableSince?: number;
  readonly facts: Details;
}

export interface Seen {
  readonly state?: Exclude<PartState, "away">;
  readonly problem?: string;
  readonly help?: string;
  readonly facts: Details;
}

const PART_MS_MAX = 2_000;

/** Time at which each component became unavailable, kept for the lifetime of the process. */
export type UnavailableSince = Map<string, number>;

/** Checks a component. Never rejects. Error messages are hidden, because database errors contain host and user names. */
export async function check(
  part: string,
  ask: () => Promise<Seen>,
  { away, nowMs, help }: { readonly away: UnavailableSince; readonly nowMs: () => number; readonly help: string },
): Promise<Part> {
  try {
    const seen = await within(PART_MS_MAX, ask());
    away.delete(part);
    return { part, state: seen.problem === undefined ? "ok" : "warn", ...seen };
  } catch {
    const unavailableSince = away.get(part) ?? nowMs();
    away.set(part, unavailableSince);
    const problem = `It did not answer within ${PART_MS_MAX / 1000} s.`;
    return { part, state: "away", problem, help, unavailableSince, facts: {} };
  }
}
