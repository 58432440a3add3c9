import type { RuleRatelimit } from "../../core/policies/policy.ts";

/* What the measurements of a sidecar have in common. */

/** A limit that no benchmark reaches, so every request is counted and none is refused. */
export const NEVER_REACHED = 1_000_000_000_000;
export const STRICT: RuleRatelimit = {
  scope: { kind: "name", name: "bench" },
  identifier: "key",
  limit: NEVER_REACHED,
  durationMs: 3_600_000,
  cost: 1,
  accuracy: "strict",
};

/** Waits until the sidecar passes such a request to the app. */
export const untilPasses = (url: string, headers: Record<string, string>) => untilStatus(url, headers, 200);

/** Keys between two that `untilKeysPass` tries. The api-server publishes keys in batches of this order. */
const TRIED_EVERY = 250;

/** Waits until the gate knows these keys. */
export async function untilKeysPass(url: string, keys: readonly { readonly key: string }[]): Promise<void> {
  const tried = keys.filter((_, n) => n % TRIED_EVERY === 0 || n === keys.length - 1);
  for (const { key } of tried) await untilPasses(url, { authorization: `Bearer ${key}` });
}

/** Waits until such a request gets this status. Throws after 30 s. */
export async function untilStatus(url: string, headers: Record<string, string>, wanted: number): Promise<void> {
  const deadline = Date.now() + 30_000;
  for (;;) {
    const response = await fetch(`${url}/orders/1`, { headers });
    await response.arrayBuffer();
    if (response.status === wanted) return;
    if (Date.now() > deadline) throw new Error(`${url} answered ${response.status}, not ${wanted}, for 30 s`);
  }
}
