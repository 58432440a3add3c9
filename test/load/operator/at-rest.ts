import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Kind } from "../../../core/manifests/index.ts";
import { applyCrds, openStore, operatorOf, type TestManifest, toJson } from "../../e2e/operator-world.ts";
import { createTestNamespace, startKubernetes } from "../../harness/kubernetes.ts";
import { waitFor } from "../../harness/wait.ts";

/*
 * What an operator costs while nothing changes: calls of the api-server, and requests to the Kubernetes API, over a time in which each
 * object's resync comes at least once. Both are real.
 */

export interface AtRest {
  /** How many objects of each kind. */
  readonly objects: Readonly<Partial<Record<Kind, number>>>;
  readonly resyncMs: number;
  /** Longer than a resync period. */
  readonly windowMs: number;
  readonly deadlineMs: number;
}

export interface RestFigures {
  readonly objects: AtRest["objects"];
  readonly seconds: number;
  readonly callsPerSecond: number;
  /** By procedure. */
  readonly calls: Readonly<Record<string, number>>;
  /** Requests to the Kubernetes API that change something, but renewals of Leases. */
  readonly writes: number;
  /** Reconciles within the time, by kind. */
  readonly reconciles: Readonly<Record<string, number>>;
}

const SPECS: Readonly<Record<Exclude<Kind, "ApiKey">, (name: string, i: number) => Record<string, unknown>>> = {
  Role: (name) => ({ name, permissions: [`${name}.read`, `${name}.write`] }),
  RatelimitNamespace: (name) => ({ name }),
  RatelimitOverride: (name, i) => ({
    namespaceRef: { name: `o${i % 10}` },
    identifier: name,
    limit: 5,
    duration: "1m",
  }),
  ApiKeyPolicy: (name) => ({ selector: { matchLabels: { app: name } }, api: { name }, target: { port: 80 } }),
};

export async function measureAtRest({ objects, resyncMs, windowMs, deadlineMs }: AtRest): Promise<RestFigures> {
  const closers: Array<() => Promise<unknown>> = [];
  try {
    const kubernetes = await startKubernetes();
    await applyCrds(kubernetes);
    const { name: namespace, drop } = await createTestNamespace(kubernetes);
    closers.push(drop);
    const store = await openStore();
    closers.push(() => store.close());
    const operator = await operatorOf(
      store,
      { kind: "kubernetes", kubeconfig: kubernetes.kubeconfigPath, namespaces: [namespace] },
      { cluster: "rest", resyncMs, admin: { host: "127.0.0.1", port: 0 } },
    );
    closers.push(() => operator.close());
    const unique = randomBytes(3).toString("hex");
    const wanted = Object.entries(objects) as Array<[keyof typeof SPECS, number]>;
    const manifests = wanted.flatMap(([kind, count]) =>
      Array.from(
        { length: count },
        (_, i): TestManifest => ({
          kind,
          metadata: { name: `o${i}`, namespace },
          spec: SPECS[kind](`${unique}-${i}`, i),
        }),
      ),
    );
    for (let from = 0; from < manifests.length; from += 500) {
      const text = manifests.slice(from, from + 500).map(toJson);
      const { exitCode, stderr } = await kubernetes.kubectl(["create", "-f", "-"], text.join("\n---\n"));
      if (exitCode !== 0) throw new Error(stderr.slice(0, 2_000));
    }
    const synced = () =>
      operator.statuses().filter(({ status }) => {
        const conditions = (status?.conditions ?? []) as ReadonlyArray<{ type: string; status: string }>;
        return conditions.some(({ type, status: is }) => ["Ready", "Accepted"].includes(type) && is === "True");
      }).length;
    await waitFor("every object to be in the store", async () => synced() === manifests.length, {
      deadlineMs,
      everyMs: 250,
    });
    const count = () => readCounts(store.server.url, operator.adminUrl ?? "");
    // What was still under way when the last one was seen.
    let before = await count();
    await waitFor(
      "the last write",
      async () => {
        await sleep(1_000);
        const { writes } = before;
        before = await count();
        return before.writes === writes;
      },
      { deadlineMs },
    );
    const startedAt = performance.now();
    await sleep(windowMs);
    const after = await count();
    const seconds = (performance.now() - startedAt) / 1_000;
    const calls = difference(before.calls, after.calls);
    return {
      objects,
      seconds: Math.round(seconds),
      callsPerSecond: Math.round((100 * sum(calls)) / seconds) / 100,
      calls,
      writes: after.writes - before.writes,
      reconciles: difference(before.reconciles, after.reconciles),
    };
  } finally {
    for (const close of closers.reverse()) await close();
  }
}

type Counts = Readonly<Record<string, number>>;

/** The api-server's own count of its calls; the operator's of its requests to Kubernetes, and of its reconciles. */
async function readCounts(apiUrl: string, adminUrl: string) {
  const [api, own] = await Promise.all(
    [apiUrl, adminUrl].map(async (url) => await (await fetch(`${url}/metrics`)).text()),
  );
  const requests = linesOf(own ?? "", "postern_operator_kubernetes_requests_total");
  const changing = requests.filter(({ labels }) => !/method="(GET|WATCH)"|resource="leases"/.test(labels));
  return {
    calls: byLabel(linesOf(api ?? "", "postern_api_requests_total"), "procedure"),
    writes: changing.reduce((total, { value }) => total + value, 0),
    reconciles: byLabel(linesOf(own ?? "", "postern_operator_reconciles_total"), "kind"),
  };
}

const linesOf = (text: string, metric: string) =>
  [...text.matchAll(new RegExp(`^${metric}\\{(.*)\\} (\\d+)$`, "gm"))].map(([, labels = "", value]) => ({
    labels,
    value: Number(value),
  }));

function byLabel(lines: ReturnType<typeof linesOf>, label: string): Counts {
  const counts: Record<string, number> = {};
  for (const { labels, value } of lines) {
    const name = new RegExp(`${label}="([^"]*)"`).exec(labels)?.[1] ?? "";
    counts[name] = (counts[name] ?? 0) + value;
  }
  return counts;
}

const difference = (before: Counts, after: Counts): Counts =>
  Object.fromEntries(
    Object.entries(after)
      .map(([name, value]) => [name, value - (before[name] ?? 0)] as const)
      .filter(([, value]) => value > 0),
  );

const sum = (counts: Counts): number => Object.values(counts).reduce((total, value) => total + value, 0);
