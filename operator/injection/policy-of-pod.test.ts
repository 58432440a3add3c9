import { expect, test } from "vitest";
import { selectedBy } from "../reconcilers/api-key-policy/selection.ts";
import { anObject } from "../test/builders.ts";
import { aPod } from "../test/pods.ts";
import { aGate } from "../test/seen-pods.ts";
import { policyOfPod } from "./policy-of-pod.ts";

const aPolicy = (name: string, labels: Record<string, string>, creationTimestamp: string, more: object = {}) =>
  anObject(
    "ApiKeyPolicy",
    { selector: { matchLabels: labels }, target: { port: "http" }, ...more },
    { name, creationTimestamp },
  );
const older = aPolicy("z-older", { app: "orders" }, "2026-01-01T00:00:00Z", { interception: "Redirect" });
const younger = aPolicy("a-younger", { app: "orders" }, "2026-02-01T00:00:00Z");
const other = aPolicy("other", { app: "others" }, "2025-01-01T00:00:00Z");

test("injection chooses the oldest policy that selects the pod", () => {
  expect(policyOfPod(aPod(), "shop", [other, younger])).toEqual({
    name: "a-younger",
    port: "http",
    protocol: "http1",
    interception: "Port",
    overridden: [],
  });
  expect(policyOfPod(aPod(), "shop", [younger, other, older])).toMatchObject({
    name: "z-older",
    interception: "Redirect",
    overridden: ["a-younger"],
  });
});

test("injection rejects a pod without a matching policy, or with a policy that has no port", () => {
  expect(policyOfPod(aPod(), "shop", [other])).toMatchObject({
    refused: expect.stringContaining("no ApiKeyPolicy selects this pod"),
  });
  const portless = aPolicy("portless", { app: "orders" }, "2026-01-01T00:00:00Z", { target: {} });
  expect(policyOfPod(aPod(), "shop", [portless])).toMatchObject({
    refused: "the ApiKeyPolicy portless has no valid port or protocol in spec.target: correct it.",
  });
});

test("injection takes the protocol of the app from the policy and ignores annotations of the pod", () => {
  const target = (protocol: string) => ({ target: { port: "http", protocol } });
  const grpc = aPolicy("grpc", { app: "orders" }, "2026-01-01T00:00:00Z", target("h2c"));
  const retired = aPod({ metadata: { annotations: { "postern.dev/upstream-protocol": "http1" } } });
  expect(policyOfPod(retired, "shop", [grpc])).toMatchObject({ name: "grpc", port: "http", protocol: "h2c" });
  const later = aPolicy("later", { app: "orders" }, "2026-01-01T00:00:00Z", target("h3"));
  expect(policyOfPod(aPod(), "shop", [later])).toMatchObject({
    refused: expect.stringContaining("the ApiKeyPolicy later has no valid port or protocol"),
  });
});

test("injection accepts a pod although unrelated parts of its policy are invalid", () => {
  const broken = aPolicy("broken", { app: "orders" }, "2026-01-01T00:00:00Z", { rules: "none", later: 1 });
  expect(policyOfPod(aPod(), "shop", [broken])).toMatchObject({ name: "broken", port: "http" });
});

const named = (annotations: Record<string, string>, containers?: object[]) =>
  aPod({ metadata: { annotations }, ...(containers === undefined ? {} : { spec: { containers } }) });

test("policy annotation of a pod overrides selectors and can name a policy that does not exist yet", () => {
  const policies = [older, other];
  expect(policyOfPod(named({ "postern.dev/policy": "other" }), "shop", policies)).toMatchObject({
    name: "other",
    overridden: [],
  });
  const coming = { "postern.dev/policy": "coming" };
  expect(policyOfPod(named(coming), "shop", policies)).toMatchObject({
    name: "coming",
    port: "http",
    // Unknown until the policy exists.
    protocol: "http1",
    interception: "Port",
  });
  expect(policyOfPod(named({ ...coming, "postern.dev/target-port": "9090" }), "shop", policies)).toMatchObject({
    port: 9090,
  });
  expect(policyOfPod(named({ ...coming, "postern.dev/target-port": "web" }), "shop", policies)).toMatchObject({
    port: "web",
  });
  for (const ports of [[], [{ containerPort: 1 }, { containerPort: 2 }]]) {
    expect(policyOfPod(named(coming, [{ name: "app", ports }]), "shop", policies)).toMatchObject({
      refused: expect.stringContaining("postern.dev/target-port"),
    });
  }
});

test.each(["", "../bank/orders", "Orders", "a_b", "$(REDIS_URL)", "a".repeat(254)])(
  "injection rejects a pod with the invalid policy annotation %j",
  (name) => {
    expect(policyOfPod(named({ "postern.dev/policy": name }), "shop", [older])).toEqual({
      refused: "the annotation postern.dev/policy is not the name of an ApiKeyPolicy.",
    });
  },
);

test("injection and the policy status choose the same policy for a pod", () => {
  const january = "2026-01-01T00:00:00Z";
  const at = (name: string, uid: string, creationTimestamp = january) => {
    const policy = aPolicy(name, { app: "orders" }, creationTimestamp);
    return { ...policy, metadata: { ...policy.metadata, uid } };
  };
  // Two policies have equal times, so that the smaller uid decides. Names, uids and list positions sort differently.
  const all = [at("c-later", "uid-1", "2026-02-01T00:00:00Z"), at("m-first", "uid-5"), at("a-same-time", "uid-7")];
  const lists = [all, all.toReversed(), all.slice(1), all.slice(1).toReversed(), [all[0], all[2]], [all[1]]];
  for (const list of lists) {
    const policies = list.filter((one) => one !== undefined);
    const injected = policyOfPod(aPod(), "shop", policies);
    if ("refused" in injected) throw new Error(injected.refused);
    // Without and with the webhook's annotation on the pod.
    for (const named of [undefined, injected.name]) {
      const running = {
        ...{ namespace: "shop", name: "orders-1", uid: "uid-1", labels: { app: "orders" } },
        ...{ isRunning: true, hasEnded: false, gate: aGate, policy: named },
      };
      for (const policy of policies) {
        const { guarded, contested, competitor } = selectedBy(policy, [running], policies);
        const isChosen = policy.metadata.name === injected.name;
        expect([guarded, contested, competitor?.metadata.name]).toEqual(
          isChosen ? [1, 0, undefined] : [0, 1, injected.name],
        );
      }
    }
  }
});
