import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { checkManifest } from "../../core/manifests/check.ts";
import { KINDS } from "../../core/manifests/index.ts";
import { PathAllowance } from "../../core/policies/policy.ts";
import { isKubeError, type KubeClient } from "../../operator/runtime/kube-client.ts";
import { openCluster } from "../../operator/source/cluster.ts";
import { anyText } from "../builders/text.ts";
import { applyCrds } from "../e2e/operator-world.ts";
import { createTestNamespace, KUBERNETES_START_MS, startKubernetes } from "../harness/kubernetes.ts";
import { aPolicy, BAD_MANIFESTS, GOOD_MANIFESTS, type TriedManifest } from "./cases.ts";

/* `kubectl apply` and `postern validate` accept the same manifests, and each says what is wrong, and where. */

let client: KubeClient;
let namespace: string;
beforeAll(async () => {
  const kubernetes = await startKubernetes();
  await applyCrds(kubernetes);
  namespace = (await createTestNamespace(kubernetes)).name;
  client = (await openCluster(kubernetes.kubeconfigPath, {})).client;
}, KUBERNETES_START_MS);

/** As kubectl sends it: unknown fields are refused. Returns the API server's message, or undefined when it accepts the manifest. */
async function refusalBy(manifest: TriedManifest): Promise<string | undefined> {
  const plural = KINDS.find(({ kind }) => kind === manifest.kind)?.plural;
  try {
    await client.send({
      method: "POST",
      path: `/apis/${manifest.apiVersion}/namespaces/${namespace}/${plural}`,
      query: { dryRun: "All", fieldValidation: "Strict" },
      body: manifest,
    });
    return undefined;
  } catch (error) {
    if (isKubeError(error, 422) || isKubeError(error, 400)) return error.message;
    throw error;
  }
}

describe("an invalid manifest is rejected with the cause and location", () => {
  test.each(BAD_MANIFESTS)("Kubernetes API rejects the manifest: $name", async ({ manifest, field, says }) => {
    const message = await refusalBy(manifest);
    expect(message).toMatch(says);
    expect(message).toContain(`${field}: `);
  });

  test.each(BAD_MANIFESTS)("postern validate rejects the manifest: $name", ({ manifest, field, location = field }) => {
    expect(checkManifest(manifest).map((problem) => problem.location)).toContain(location);
  });
});

describe("a valid manifest is accepted", () => {
  test.each(GOOD_MANIFESTS)("Kubernetes API and postern validate accept the manifest: $name", async ({ manifest }) => {
    expect(await refusalBy(manifest)).toBeUndefined();
    expect(checkManifest(manifest)).toEqual([]);
  });
});

/* Values at and around the edges of a field; what is wrong in one place must not hide, or cause, a fault in another. */

const text = fc.oneof(
  fc.constantFrom(
    "",
    " ",
    "a",
    "ab",
    "abc",
    "key",
    "Key",
    "a b",
    "\u00a0\u00a0\u00a0",
    "ä🗝x",
    "-",
    "a-",
    "0",
    "00",
    "a".repeat(64),
    "a".repeat(1030),
  ),
  anyText({ maxLength: 6 }),
);
const lettersOf = (letters: string, maxLength: number) => fc.string({ unit: fc.constantFrom(...letters), maxLength });
const duration = fc.oneof(
  fc.constantFrom<unknown>(
    "1s",
    1000,
    "1000ms",
    "999ms",
    999,
    "1m",
    60_000,
    "15m",
    "16m",
    "876000h",
    "876001h",
    "",
    "1",
    "1d",
    "00h1s",
    -1,
    1.5,
  ),
  lettersOf("019hms", 6),
  fc.nat({ max: 1_000_000 }),
);
const address = fc.oneof(
  fc.constantFrom("10.0.0.1", "10.0.0.0/8", "::1", "::ffff:1.2.3.4", "1.2.3.4%a", "fe80::1%a/64", "1.2.3.4%:"),
  fc.ipV4(),
  fc.ipV4Extended(),
  fc.ipV6(),
  fc.tuple(fc.ipV6(), lettersOf("0123456789", 4)).map(([ip, bits]) => `${ip}/${bits}`),
  fc.tuple(fc.ipV4(), lettersOf("0123456789", 3)).map(([ip, bits]) => `${ip}/${bits}`),
  lettersOf("0f:.%/a1x", 14),
  lettersOf("0fF:", 24),
);
const path = fc.oneof(
  lettersOf("/.%258cCfFeE;\\aA?# 0*{", 8).map((rest) => `/${rest}`),
  text,
  text.map((rest) => `/${rest}`),
);
const labels = fc.dictionary(
  fc.oneof(
    text,
    lettersOf("aB1-_./", 8),
    lettersOf("a./", 4).map((prefix) => `${prefix}/${"k".repeat(62)}`),
  ),
  fc.oneof(text, lettersOf("aB1-_. ", 6)),
  { maxKeys: 3 },
);
const some = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 2 });
const limit = fc.record({
  name: some(fc.constantFrom("a", "b", "", "a".repeat(256))),
  namespace: fc.option(fc.constantFrom("a", "b"), { nil: undefined, freq: 1 }),
  identifier: some(fc.constantFrom("Key", "Identity", "other")),
  by: fc.option(
    fc.array(fc.constantFrom("key", "identity", "address", "method", "path.a", "header.A", "x"), { maxLength: 5 }),
    {
      nil: undefined,
      freq: 1,
    },
  ),
  limit: fc.constantFrom<unknown>(1, 0, -1, "1", 9_007_199_254_740_991),
  duration: fc.constantFrom<unknown>("60s", "1m", 60_000, "1h", 999, "x"),
});
const manifestAtEdges: fc.Arbitrary<TriedManifest> = fc
  .oneof(
    fc.record({
      target: fc.record({
        port: fc.oneof(text, lettersOf("a1-B", 7), fc.integer({ min: -2, max: 65_540 })),
        protocol: some(fc.constantFrom("http1", "h2c", "http3", "")),
      }),
    }),
    fc.record({ onStale: fc.record({ after: some(duration), denyAfter: some(duration) }) }),
    fc.record({ selector: some(fc.record({ matchLabels: some(labels) })) }),
    fc.record({ api: fc.record({ name: some(text), id: some(fc.oneof(fc.constantFrom("api_12345678"), text)) }) }),
    fc.record({
      clientAddress: fc.record({
        from: fc.constantFrom("ForwardedFor", "Connection"),
        trustedProxies: some(fc.array(address, { maxLength: 2 })),
        ipv6PrefixBits: some(fc.constantFrom<unknown>(31, 32, 128, 129, "64")),
      }),
    }),
    fc.record({
      clientAddress: some(fc.constant({ from: "Connection" })),
      failedAttempts: some(fc.record({ limit: fc.constantFrom(0, 1, 1_000_001), duration })),
      defaultAccess: some(fc.constantFrom("Key", "Anonymous", "Deny", "deny")),
      rules: fc.array(
        fc.record({
          name: some(fc.oneof(fc.constantFrom("a", "b", "a-"), text)),
          access: some(fc.constantFrom("Key", "Anonymous", "Deny")),
          match: some(fc.constant({ path: { template: "/{a}" } })),
          permissions: fc.option(fc.constant("p"), { nil: undefined, freq: 1 }),
          ratelimits: some(fc.array(limit, { maxLength: 3 })),
        }),
        { maxLength: 3 },
      ),
    }),
    fc.record({
      rules: fc.array(
        fc.record({
          match: fc.record({
            path: some(
              fc.record({
                prefix: some(path),
                exact: some(path),
                template: some(
                  fc.oneof(
                    path,
                    lettersOf("/{}a.%2*", 10).map((rest) => `/${rest}`),
                  ),
                ),
              }),
            ),
            hosts: some(fc.array(fc.oneof(lettersOf("a.*-A:", 6), text), { maxLength: 2 })),
            headers: some(
              fc.array(
                fc.record({
                  name: fc.constantFrom("A", "a", "hOST", "a b", ""),
                  exact: some(text),
                  present: some(fc.constantFrom<unknown>(true, false)),
                }),
                { maxLength: 2 },
              ),
            ),
            methods: some(fc.array(fc.constantFrom("GET", "POST", "get"), { maxLength: 3 })),
          }),
        }),
        { maxLength: 2 },
      ),
      allowPaths: fc.array(fc.constantFrom(...PathAllowance.options), { maxLength: 3 }),
    }),
    fc.record({
      credentials: fc.array(
        fc.record({
          header: some(
            fc.record({
              name: fc.constantFrom("A", "a", "a b", "ä"),
              scheme: some(fc.constantFrom("B", "b", "Ä", "ä", "")),
            }),
          ),
          query: some(fc.record({ name: fc.constantFrom("a", "A") })),
        }),
        { maxLength: 3 },
      ),
    }),
    fc.record({
      allowedNamespaces: fc.array(fc.constantFrom("lab", "shop", "A", ""), { maxLength: 3 }),
      mode: some(fc.constantFrom("Audit", "audit")),
    }),
  )
  .map((spec) => JSON.parse(JSON.stringify(aPolicy(spec))) as TriedManifest);

test("Kubernetes API and postern validate agree at the bounds of every field", async () => {
  const verdicts = { accepted: 0, refused: 0 };
  await fc.assert(
    fc.asyncProperty(manifestAtEdges, async (manifest) => {
      const message = await refusalBy(manifest);
      verdicts[message === undefined ? "accepted" : "refused"] += 1;
      expect({ message, refused: checkManifest(manifest).length > 0 }).toEqual({
        message,
        refused: message !== undefined,
      });
    }),
    { numRuns: Number(process.env.AGREE_RUNS ?? 300) },
  );
  // Neither of them has said the same to everything.
  expect(Math.min(verdicts.accepted, verdicts.refused)).toBeGreaterThan(20);
}, 300_000);
