import { waitFor } from "../harness/wait.ts";
import type { Cluster } from "./cluster.ts";
import { pod } from "./sample-app.ts";

export interface Target {
  readonly name: string;
  readonly url: string;
  readonly method?: "GET" | "POST";
  readonly headers?: Readonly<Record<string, string>>;
  /** The status that each answer should have. */
  readonly expect: number;
}

export interface Count {
  readonly sent: number;
  readonly expect: number;
  /** How many answers of each status, or error. */
  readonly responses: Readonly<Record<string, number>>;
  /** The first ones that were not as expected. */
  readonly bad: ReadonlyArray<{ readonly at: string; readonly response: string }>;
}
export type Counts = Readonly<Record<string, Count>>;

export interface Load {
  /** The counts so far. */
  counts(): Promise<Counts>;
  /** Returns when so many more were answered. */
  untilAnswered(more: number): Promise<Counts>;
  stop(): Promise<Counts>;
}

const RATE_PER_SECOND = 40;
const SECONDS_MAX = 900;

const ASK = "fetch('http://127.0.0.1:9000').then(async (r) => console.log(await r.text()))";
const answered = (counts: Counts): number =>
  Object.values(counts).reduce((sum, { responses }) => sum + Object.values(responses).reduce((a, b) => a + b, 0), 0);

/** Starts a pod that sends requests to the targets, one after another, until it is stopped. */
export async function startLoad(
  cluster: Cluster,
  options: { namespace: string; name: string; image: string; targets: readonly Target[] },
): Promise<Load> {
  const { namespace, name, image, targets } = options;
  const command = ["node", "/programs/load.mjs", JSON.stringify(targets), String(RATE_PER_SECOND), String(SECONDS_MAX)];
  await cluster.apply(pod(namespace, name, image, command));
  const counts = async () =>
    JSON.parse(await cluster.kubectl(["-n", namespace, "exec", name, "--", "node", "-e", ASK])) as Counts;
  const untilAnswered = async (more: number) => {
    const before = await waitFor("the load to be sent", counts, { deadlineMs: 60_000, everyMs: 500 });
    return waitFor(
      `${more} more answers`,
      async () => {
        const now = await counts();
        return answered(now) >= answered(before) + more ? now : undefined;
      },
      { deadlineMs: 60_000, everyMs: 500 },
    );
  };
  await untilAnswered(RATE_PER_SECOND);
  return {
    counts,
    untilAnswered,
    stop: async () => {
      const last = await counts();
      await cluster.kubectl(["-n", namespace, "delete", "pod", name, "--wait=true"]);
      return last;
    },
  };
}

/** The answers since `before` that were not as expected, as text for an assertion; empty when there were none. */
export function badOf(counts: Counts, before: Counts): string {
  const lines = Object.entries(counts).flatMap(([name, { responses, bad, expect }]) => {
    const more = Object.entries(responses)
      .map(([response, count]) => ({ response, count: count - (before[name]?.responses[response] ?? 0) }))
      .filter(({ response, count }) => count > 0 && response !== String(expect));
    const last = bad.slice(-5).map(({ at, response }) => `${response} at ${at}`);
    return more.length === 0 ? [] : [`${name}: ${JSON.stringify(more)}, such as ${last.join(", ")}`];
  });
  return lines.join("\n");
}
