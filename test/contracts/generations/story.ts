import type { TestApp } from "../../../api-server/test/app.ts";

/*
 * A story is a list of steps, each of which both generations of the API can do. It is told through v1, through v2, and in every mixture
 * of the two, each time with things of its own; what the steps saw must be the same.
 */

export type Generation = "v1" | "v2";

export interface Teller {
  readonly t: TestApp;
  /** Unique to this telling, for names. */
  readonly unique: string;
  /** What earlier steps of the telling keep, such as ids. */
  readonly kept: Record<string, string>;
}

/** Does the step through one generation, and returns what was seen of it, in words that are the same for both. */
export type Step = Readonly<Record<Generation, (teller: Teller) => Promise<unknown>>>;

export type Story = Readonly<Record<string, Step>>;

/** Every way to tell a story of so many steps: all v1, all v2, and all between. */
export function mixtures(steps: number): Generation[][] {
  return Array.from({ length: 2 ** steps }, (_, mixture) =>
    Array.from({ length: steps }, (_, step) => ((mixture >> step) & 1 ? "v2" : "v1")),
  );
}

/** What each step saw, by its name. Ids and names of this telling are told apart from all others, and so are replaced. */
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

/** The status of a call that may fail. */
export const statusOf = async (t: TestApp, path: string, body: unknown): Promise<number> =>
  (await t.call(path, body)).status;
