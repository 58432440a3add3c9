import type { TestApp } from "../../../api-server/test/app.ts";

/*
 * A story is a list of steps that both v1 and v2 can perform. It runs in v1, in v2 and in every mixture, each time with new objects; the
 * observations of the steps must be equal.
 */

export type Generation = "v1" | "v2";

export interface Teller {
  readonly t: TestApp;
  /** Unique suffix for names of this run. */
  readonly unique: string;
  /** Values that earlier steps keep, such as ids. */
  readonly kept: Record<string, string>;
}

/** Performs the step in one version and returns its observations in common terms. */
export type Step = Readonly<Record<Generation, (teller: Teller) => Promise<unknown>>>;

export type Story = Readonly<Record<string, Step>>;

/** Returns every assignment of versions to the steps: all v1, all v2, and every mixture. */
export function mixtures(steps: number): Generation[][] {
  return Array.from({ length: 2 ** steps }, (_, mixture) =>
    Array.from({ length: steps }, (_, step) => ((mixture >> step) & 1 ? "v2" : "v1")),
  );
}

/** Returns the observations by step name. Ids and names of this run are replaced, because they are unique. */
export async function tell(t: TestApp, story: Story, by: readonly Generation[]): Promise<Record<string, unknown>> {
  const unique = `s${Math.random().toString(36).slice(2)}`;
  const teller: Teller = { t, unique, kept: {} };
  const seen: Record<string, unknown> = {};
  for (const [at, [name, step]] of Object.entries(story).entries()) {
    seen[name] = await step[by[at] ?? "v1"](teller);
  }
  let text = JSON.stringify(seen).replaceAll(unique, "<unique>");
  for (const [name, value] of Object.entries(teller.kept)) text = text.replaceAll(value, `<${name}>`);
  return JSON.parse(text);
}

/** Returns the status of a call that may fail. */
export const statusOf = async (t: TestApp, path: string, body: unknown): Promise<number> =>
  (await t.call(path, body)).status;
