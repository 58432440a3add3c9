import { describe, expect, test } from "vitest";
import { ApiKeyPolicySpec } from "../../../core/manifests/api-key-policy.ts";
import { isolating, type NetworkPolicy, type NetworkPolicySpec } from "../../network/network-policy.ts";
import type { ServiceSummary } from "../../network/service.ts";
import type { PodSummary } from "../../pods/pod.ts";
import { anObject } from "../../test/builders.ts";
import { aGate, aPodSummary } from "../../test/seen-pods.ts";
import { parseSpec } from "../spec.ts";
import { bypassable } from "./bypassable.ts";
import { desiredNetworkPolicy, networkActions, networkConflict, networkPolicyName } from "./network.ts";
import type { ObservedPolicy } from "./observed.ts";
import { selectedBy } from "./selection.ts";

const spec = {
  api: { name: "orders" },
  target: { port: "http" },
  selector: { matchLabels: { app: "orders" } },
};

interface Case {
  readonly of?: object;
  readonly pods?: readonly PodSummary[];
  readonly network?: readonly NetworkPolicy[] | "unknown" | undefined;
}

function observe({ of = {}, pods = [aPodSummary("a")], network = [] }: Case = {}) {
  const object = anObject("ApiKeyPolicy", { ...spec, ...of });
  const parsed = parseSpec(ApiKeyPolicySpec, object);
  const selected: ObservedPolicy["selected"] = selectedBy(object, pods, [object]);
  return { object, parsed, selected, network } as const;
}

const other = (name: string, more: Partial<NetworkPolicySpec> = {}, controllerUid?: string): NetworkPolicy => ({
  namespace: "shop",
  name,
  uid: `uid-of-${name}`,
  controllerUid,
  isOrphaned: false,
  spec: { podSelector: {}, policyTypes: ["Ingress"], ...more },
});
/** Returns the managed NetworkPolicy that the case requires. */
function ours(one: Case = {}): NetworkPolicy {
  const desired = desiredNetworkPolicy(observe({ ...one, network: [] }));
  if (desired === undefined) throw new Error("the case wants no NetworkPolicy");
  return other("postern-it", desired, "uid-of-it");
}

describe("the NetworkPolicy", () => {
  test("managed NetworkPolicy closes only the app port of the policy's pods", () => {
    expect(networkActions(observe())).toEqual([
      {
        type: "writeNetworkPolicy",
        name: "postern-it",
        found: undefined,
        spec: {
          podSelector: {
            matchLabels: { "postern.dev/gated-by": "it" },
            matchExpressions: [{ key: "postern.dev/interception", operator: "NotIn", values: ["Redirect", "None"] }],
          },
          policyTypes: ["Ingress"],
          ingress: [
            {
              ports: [
                { protocol: "TCP", port: 9090 },
                { protocol: "TCP", port: 19_080 },
                { protocol: "TCP", port: 19_081 },
                { protocol: "TCP", port: 1, endPort: 8079 },
                { protocol: "TCP", port: 8081, endPort: 65_535 },
                { protocol: "UDP" },
                { protocol: "SCTP" },
              ],
            },
          ],
        },
      },
    ]);
  });

  test("managed NetworkPolicy is written only when missing or different", () => {
    const found = ours();
    expect(networkActions(observe({ network: [found] }))).toEqual([]);
    const changed = { ...found, spec: { ...found.spec, ingress: [{}] } };
    expect(networkActions(observe({ network: [changed] }))).toMatchObject([
      { type: "writeNetworkPolicy", found: changed },
    ]);
    expect(networkActions(observe({ network: [] }))).toMatchObject([{ type: "writeNetworkPolicy", found: undefined }]);
  });

  test("managed NetworkPolicy closes all port numbers that a port name has in its pods", () => {
    const pods = [
      aPodSummary("a"),
      aPodSummary("b", { gate: { ...aGate, guards: 9090, ports: [] }, isRunning: false }),
    ];
    const ports = desiredNetworkPolicy(observe({ pods }))?.ingress?.[0]?.ports ?? [];
    expect(ports).not.toContainEqual({ protocol: "TCP", port: 9090 });
    expect(ports).toContainEqual({ protocol: "TCP", port: 8081, endPort: 9089 });
  });

  test("managed NetworkPolicy keeps the gate ports of other pods open", () => {
    const pods = [aPodSummary("a"), aPodSummary("b", { gate: { ...aGate, guards: 19_080, own: [19_082, 19_083] } })];
    const found = { ...ours({ pods }) };
    expect(found.spec.ingress?.[0]?.ports).toContainEqual({ protocol: "TCP", port: 8081, endPort: 65_535 });
    expect(networkActions(observe({ pods, network: [found] }))).toEqual([]);
    expect(bypassable(observe({ pods, network: [found] }))).toMatchObject({ status: "True", reason: "PodsNotCovered" });
  });

  test("managed NetworkPolicy for a named port is not written before a pod has the port", () => {
    expect(desiredNetworkPolicy(observe({ pods: [] }))).toBeUndefined();
    expect(desiredNetworkPolicy(observe({ pods: [], of: { target: { port: 8080 } } }))).toBeDefined();
  });

  test.each([
    { name: "networkPolicy None", of: { networkPolicy: "None" } },
    { name: "interception Redirect and no pod from before", of: { interception: "Redirect" }, pods: [] },
    { name: "interception None and no pod from before", of: { interception: "None" }, pods: [] },
  ])("managed NetworkPolicy is deleted with $name", ({ of, pods }) => {
    const found = ours();
    const now = { of, ...(pods === undefined ? {} : { pods }) };
    expect(networkActions(observe({ ...now, network: [found] }))).toEqual([{ type: "deleteNetworkPolicy", found }]);
    expect(networkActions(observe({ ...now, network: [] }))).toEqual([]);
  });

  const made = (interception: string, more: Partial<PodSummary> = {}) =>
    aPodSummary(`of-${interception}`, {
      labels: { app: "orders", "postern.dev/gated-by": "it", "postern.dev/interception": interception },
      gate: { ...aGate, redirects: interception === "Redirect" },
      ...more,
    });

  test.each(["Redirect", "None"])(
    "managed NetworkPolicy remains after a change to %s until the last Port pod ends",
    (interception) => {
      const of = { interception };
      const found = ours();
      const actions = (...pods: PodSummary[]) =>
        networkActions(observe({ of, pods, network: [found] })).map(({ type }) => type);
      expect(actions(made("Port"), made(interception))).toEqual([]);
      // A terminating pod serves until it ends, and a pending pod will serve.
      expect(actions(made("Port", { isRunning: false }))).toEqual([]);
      expect(actions(made("Port", { isRunning: false, hasEnded: true }), made(interception))).toEqual([
        "deleteNetworkPolicy",
      ]);
      expect(actions(made(interception))).toEqual(["deleteNetworkPolicy"]);
    },
  );

  test("managed NetworkPolicy remains after its selector is removed until the pods with interception Port have ended", () => {
    const found = ours();
    const bare = (formerPods: readonly PodSummary[] | "unknown", of: object = {}) =>
      networkActions({
        ...observe({ of: { selector: undefined, ...of }, network: [found] }),
        selected: undefined,
        formerPods,
      });
    const pods = [made("Port"), made("Redirect")];
    expect(bare(pods)).toEqual([{ type: "orphanNetworkPolicy", found, pods: pods.slice(0, 1) }]);
    expect(bare("unknown")).toEqual([]);
    expect(bare([made("Port", { isRunning: false, hasEnded: true })])).toEqual([
      { type: "deleteNetworkPolicy", found },
    ]);
    expect(bare(pods, { networkPolicy: "None" })).toEqual([{ type: "deleteNetworkPolicy", found }]);
  });

  test("managed NetworkPolicy ignores pods with interception Redirect or None", () => {
    const { podSelector } = ours().spec;
    const closes = (pod: PodSummary) => isolating([other("x", { podSelector })], pod.labels).length > 0;
    expect([made("Port"), aPodSummary("before-the-label"), made("Redirect"), made("None")].map(closes)).toEqual([
      ...[true, true, false, false],
    ]);
  });

  test("managed NetworkPolicy is unchanged while spec, pods or NetworkPolicies are unreadable", () => {
    const network = [ours()];
    expect(networkActions(observe({ of: { target: {} }, network }))).toEqual([]);
    expect(networkActions({ ...observe({ network }), selected: "unknown" })).toEqual([]);
    expect(networkActions(observe({ network: "unknown" }))).toEqual([]);
    expect(networkActions({ ...observe(), network: undefined })).toEqual([]);
  });

  test("managed NetworkPolicy never opens ports that another NetworkPolicy closes", () => {
    const denied = other("default-deny");
    expect(networkActions(observe({ network: [denied] }))).toEqual([]);
    expect(networkActions(observe({ network: [denied, ours()] }))).toMatchObject([{ type: "deleteNetworkPolicy" }]);
    // The NetworkPolicy exists before the first pod, which would otherwise be open for a moment.
    const early = { pods: [], of: { target: { port: 8080 } } };
    expect(networkActions(observe({ ...early, network: [denied] }))).toEqual([]);
    const elsewhere = other("for-billing", { podSelector: { matchLabels: { app: "billing" } } });
    expect(networkActions(observe({ ...early, network: [elsewhere] }))).toHaveLength(1);
  });

  test.each([
    { name: "nobody's", controllerUid: undefined },
    { name: "that of a former object of the name", controllerUid: "uid-of-the-former" },
  ])("NetworkPolicy with the reserved name is left untouched if its owner is $name", ({ controllerUid }) => {
    const network = [other("postern-it", {}, controllerUid)];
    expect(networkActions(observe({ network }))).toEqual([]);
    expect(networkActions(observe({ network, of: { networkPolicy: "None" } }))).toEqual([]);
    expect(networkConflict(observe({ network }))).toMatchObject({ state: "Stalled", reason: "Conflict" });
    expect(networkConflict(observe({ network }))?.message).toContain("postern-it");
    expect(networkConflict(observe({ network, of: { networkPolicy: "None" } }))).toBeUndefined();
  });

  test("managed NetworkPolicy has a valid, unique name for any policy name", () => {
    const named = (name: string) => networkPolicyName(anObject("ApiKeyPolicy", spec, { name }));
    expect(named("orders")).toBe("postern-orders");
    const long = [`${"a".repeat(228)}.${"b".repeat(24)}`, `${"a".repeat(228)}.${"b".repeat(23)}c`].map(named);
    expect(new Set(long).size).toBe(2);
    for (const name of long)
      expect(name).toMatch(/^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/);
  });
});

describe("Bypassable", () => {
  const bare = aPodSummary("bare", { gate: undefined, policy: undefined });
  const byHand = aPodSummary("by-hand", { labels: { app: "orders" } });
  const redirected = aPodSummary("redirected", { gate: { ...aGate, redirects: true } });
  const onHost = aPodSummary("on-host", { gate: { ...aGate, isOnHostNetwork: true } });
  const unknownPort = aPodSummary("unknown", { gate: { ...aGate, guards: undefined } });
  const foreign = other("default-deny");
  const managed = ours();

  test.each<Case & { name: string; status: string; reason: string }>([
    { name: "no cluster", network: undefined, status: "True", reason: "NotSupported" },
    {
      name: "NetworkPolicies that were not listed",
      network: "unknown",
      status: "Unknown",
      reason: "NetworkPoliciesUnavailable",
    },
    { name: "ours", network: [managed], status: "False", reason: "Succeeded" },
    { name: "ours still to come", network: [], status: "True", reason: "Progressing" },
    {
      name: "ours, and a pod without a gate",
      network: [managed],
      pods: [aPodSummary("a"), bare],
      status: "True",
      reason: "UnguardedPods",
    },
    {
      name: "ours, and a gate by hand",
      network: [managed],
      pods: [aPodSummary("a"), byHand],
      status: "True",
      reason: "PodsNotCovered",
    },
    {
      name: "ours, and a pod on its node's network",
      network: [managed],
      pods: [onHost],
      status: "True",
      reason: "PodsNotCovered",
    },
    {
      name: "a gate whose port nobody knows",
      network: [managed],
      pods: [unknownPort],
      status: "True",
      reason: "PodsNotCovered",
    },
    {
      name: "ours, which someone has opened",
      network: [{ ...managed, spec: { ...managed.spec, ingress: [{}] } }],
      status: "True",
      reason: "Progressing",
    },
    {
      name: "ours, and a foreign one that selects the pods",
      network: [managed, foreign],
      status: "Unknown",
      reason: "ConflictingNetworkPolicy",
    },
    {
      name: "a foreign one that selects the pods",
      network: [foreign],
      status: "Unknown",
      reason: "ConflictingNetworkPolicy",
    },
    {
      name: "ours, and a foreign one for other pods or for egress",
      network: [
        managed,
        other("billing", { podSelector: { matchLabels: { app: "billing" } } }),
        other("egress", { policyTypes: ["Egress"] }),
      ],
      status: "False",
      reason: "Succeeded",
    },
    {
      name: "a foreign one, and a pod on its node's network",
      network: [foreign],
      pods: [aPodSummary("a"), onHost],
      status: "True",
      reason: "ConflictingNetworkPolicy",
    },
    {
      name: "networkPolicy None",
      of: { networkPolicy: "None" },
      network: [],
      status: "True",
      reason: "NetworkPolicyDisabled",
    },
    {
      name: "networkPolicy None, and a foreign one that selects the pods",
      of: { networkPolicy: "None" },
      network: [foreign],
      status: "Unknown",
      reason: "ConflictingNetworkPolicy",
    },
    {
      name: "one of our name that selects the pods",
      network: [other("postern-it", { ingress: [{}] })],
      status: "Unknown",
      reason: "ConflictingNetworkPolicy",
    },
    {
      name: "one of our name for other pods",
      network: [other("postern-it", { podSelector: { matchLabels: { x: "y" } } })],
      status: "True",
      reason: "Conflict",
    },
    {
      name: "interception None",
      of: { interception: "None" },
      network: [],
      status: "True",
      reason: "InterceptionDisabled",
    },
    {
      name: "pods that redirect",
      of: { interception: "Redirect" },
      network: [],
      pods: [redirected],
      status: "False",
      reason: "Redirected",
    },
    {
      name: "Redirect, and a pod that does not, until ours is back",
      of: { interception: "Redirect" },
      network: [],
      pods: [redirected, aPodSummary("a")],
      status: "True",
      reason: "Progressing",
    },
    {
      name: "Redirect, ours, and a pod that does not",
      of: { interception: "Redirect" },
      network: [managed],
      pods: [redirected, aPodSummary("a")],
      status: "False",
      reason: "Succeeded",
    },
    {
      name: "Port, ours, and a pod from before that has no interception",
      network: [managed],
      pods: [aPodSummary("a", { labels: { "postern.dev/interception": "None", app: "orders" } })],
      status: "True",
      reason: "PodsOutdated",
    },
    {
      name: "a target port that the gate of a pod does not guard",
      of: { target: { port: "metrics" } },
      network: [managed],
      status: "True",
      reason: "PodsOutdated",
    },
    { name: "no pods and no NetworkPolicy", network: [], pods: [], status: "Unknown", reason: "NoPods" },
    {
      name: "no pods, and ours",
      of: { target: { port: 8080 } },
      network: [managed],
      pods: [],
      status: "False",
      reason: "Succeeded",
    },
    {
      name: "an invalid spec",
      of: { target: {} },
      network: [managed],
      status: "False",
      reason: "Succeeded",
    },
    {
      name: "an invalid spec, and ours, which someone has opened",
      of: { target: {} },
      network: [{ ...managed, spec: { ...managed.spec, ingress: [{}] } }],
      status: "True",
      reason: "PodsNotCovered",
    },
  ])("Bypassable condition has status $status and reason $reason with $name", ({ name: _, status, reason, ...one }) => {
    // `observe` has defaults for omitted members, and an explicit `undefined` is a separate case.
    const observed = { ...observe(one), ...("network" in one ? { network: one.network } : {}) };
    expect(bypassable(observed)).toMatchObject({ type: "Bypassable", status, reason });
  });

  test("Bypassable is True when another NetworkPolicy isolates only some of the pods", () => {
    const tier = aPodSummary("tier", { labels: { app: "orders", tier: "x", "postern.dev/gated-by": "it" } });
    const some = other("some", { podSelector: { matchLabels: { tier: "x" } } });
    const condition = bypassable(observe({ pods: [aPodSummary("a"), tier], network: [some] }));
    expect(condition).toMatchObject({ status: "True", reason: "ConflictingNetworkPolicy" });
    expect(condition.message).toContain("The app's port of one pod is open.");
  });

  test("Bypassable message names foreign NetworkPolicies that Postern does not evaluate", () => {
    const [one, two] = ["b", "a"].map((name) => other(name));
    const { message } = bypassable(observe({ network: [one, two].filter((found) => found !== undefined) }));
    expect(message).toMatch(
      /^The NetworkPolicy a, b selects pods .* may open the app's port; Postern does not evaluate it/,
    );
  });

  test("Bypassable message mentions the dependency on the cluster network plugin", () => {
    expect(bypassable(observe({ network: [managed] })).message).toContain("network plugin");
  });

  test("Bypassable condition is set even if a policy selects no pods", () => {
    expect(bypassable({ ...observe(), selected: undefined })).toMatchObject({
      status: "True",
      reason: "SelectorMissing",
    });
    expect(bypassable({ ...observe(), selected: "unknown" })).toMatchObject({ status: "Unknown" });
  });

  describe("goes by Services", () => {
    const service = (name: string, more: Partial<ServiceSummary> = {}): ServiceSummary => ({
      ...{ namespace: "shop", name, selector: { app: "orders" }, isHeadless: false, targets: ["http"] },
      ...more,
    });
    const of = (services: readonly ServiceSummary[], one: Case = { network: [managed] }) =>
      bypassable({ ...observe(one), services });

    test("Bypassable check uses the first port of a name, as Kubernetes does", () => {
      const twice = (numbers: readonly number[]) =>
        aPodSummary("a", { gate: { ...aGate, ports: numbers.map((number) => ({ name: "web", number })) } });
      const direct = [service("direct", { targets: ["web"] })];
      expect(of(direct, { pods: [twice([8080, 9090])], network: [managed] })).toMatchObject({ status: "True" });
      expect(of(direct, { pods: [twice([9090, 8080])], network: [managed] })).toMatchObject({ status: "False" });
    });

    test.each([
      { name: "the number of the app's port", targets: [8080], is: true },
      { name: "the name that the gate took over", targets: ["http"], is: false },
      { name: "the gate's number", targets: [19_080], is: false },
      { name: "another port and the app's", targets: ["http", 8080], is: true },
      { name: "a name that no container has", targets: ["web"], is: false },
    ])("Bypassable condition names a Service that bypasses the gate ($is): it targets $name", ({ targets, is }) => {
      const condition = of([service("fine"), service("direct", { targets })]);
      expect(condition).toMatchObject(is ? { status: "True", reason: "ServicePastGate" } : { status: "False" });
      if (!is) return;
      expect(condition.message).toMatch(/^The Service direct sends requests to the app's port, past the gate/);
      expect(condition.note).toBe(condition.message);
    });

    test("Bypassable is False for Services of other pods or of pods with Redirect", () => {
      const others = [
        service("other", { selector: { app: "billing" }, targets: [8080] }),
        service("bare", { selector: {}, targets: [8080] }),
      ];
      expect(of(others)).toMatchObject({ status: "False" });
      const redirecting = { of: { interception: "Redirect" }, pods: [redirected], network: [] };
      expect(of([service("direct", { targets: [8080] })], redirecting)).toMatchObject({ reason: "Redirected" });
    });

    test("Bypassable message names headless Services, and limits the number of Services that it names", () => {
      expect(of([service("peers", { isHeadless: true })])).toMatchObject({
        status: "False",
        message: expect.stringContaining("Clients of the headless Service peers choose the port themselves"),
      });
      const many = Array.from({ length: 8 }, (_, i) => service(`s${i}`, { targets: [8080] }));
      expect(of(many).message).toContain(
        "The Services s0, s1, s2, s3, s4 and 3 more send requests to the app's port, past the gate",
      );
    });
  });

  // A user with write access to one namespace controls these numbers, while the operator must admit the pods of all namespaces.
  test("Bypassable condition of thousands of Services and NetworkPolicies is computed within eight seconds", () => {
    const listed = Array.from({ length: 100 }, (_, i) => ({ name: `p${i}`, number: 9_100 + i }));
    const gate = { ...aGate, ports: [...listed, ...aGate.ports] };
    const pods = Array.from({ length: 100 }, (_, i) => aPodSummary(`pod-${i}`, { gate }));
    const targets = Array.from({ length: 100 }, (_, i) => `q${i}`);
    const podSelector = { matchExpressions: targets.map((key) => ({ key, operator: "DoesNotExist" })) };
    const network = Array.from({ length: 500 }, (_, i) => other(`np-${i}`, { podSelector }));
    const services = Array.from({ length: 1_000 }, (_, i) => ({
      ...{ namespace: "shop", name: `s-${i}`, selector: { app: "orders" }, isHeadless: false, targets },
    }));
    const observed = observe({ pods, network });
    const startMs = performance.now();
    expect(bypassable({ ...observed, services })).toMatchObject({ reason: "ConflictingNetworkPolicy" });
    // Takes 0.3 s on an idle machine; comparing each port with every other would take 19 s. The limit allows for other load.
    expect(performance.now() - startMs).toBeLessThan(8_000);
  });
});

test("managed NetworkPolicy of a deleted policy is adopted by a new policy of the same name", () => {
  const left = { ...other("postern-it"), isOrphaned: true };
  expect(networkActions(observe({ network: [left] }))).toMatchObject([{ type: "writeNetworkPolicy", found: left }]);
  expect(networkConflict(observe({ network: [left] }))).toBeUndefined();
  expect(networkActions(observe({ of: { networkPolicy: "None" }, network: [left] }))).toEqual([]);
  expect(networkActions(observe({ network: [other("postern-it")] }))).toEqual([]);
});

test("managed NetworkPolicy is not written while it would open an isolated pod without a gate", () => {
  const closed = other("db", { podSelector: { matchLabels: { app: "db" } } });
  const labelled = aPodSummary("db", {
    ...{ labels: { app: "db", "postern.dev/gated-by": "it" }, gate: undefined, policy: undefined },
  });
  const pods = [aPodSummary("a"), labelled];
  expect(networkActions(observe({ pods, network: [closed] }))).toEqual([]);
  expect(networkActions(observe({ pods: [labelled], network: [closed] }))).toEqual([]);
  expect(bypassable(observe({ pods, network: [closed] }))).toMatchObject({
    ...{
      status: "True",
      reason: "ConflictingNetworkPolicy",
      message: expect.stringContaining("db isolates other pods"),
    },
  });
});
