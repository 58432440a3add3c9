import { expect, test } from "vitest";
import { aDeletedObject, anObject } from "../test/builders.ts";
import { aPod } from "../test/pods.ts";
import { policyOfPod, selects } from "./policy-of-pod.ts";

const aPolicy = (name: string, labels: Record<string, string>, creationTimestamp: string, more: object = {}) =>
  anObject(
    "ApiKeyPolicy",
    { selector: { matchLabels: labels }, target: { port: "http" }, ...more },
    { name, creationTimestamp },
  );
const older = aPolicy("z-older", { app: "orders" }, "2026-01-01T00:00:00Z", { interception: "Redirect" });
const younger = aPolicy("a-younger", { app: "orders" }, "2026-02-01T00:00:00Z");
const other = aPolicy("other", { app: "others" }, "2025-01-01T00:00:00Z");

test("the policy that selects the pod is found, and of two the older one", () => {
  expect(policyOfPod(aPod(), [other, younger])).toEqual({
    name: "a-younger",
    port: "http",
    interception: "Port",
    outdone: [],
  });
  expect(policyOfPod(aPod(), [younger, other, older])).toMatchObject({
    name: "z-older",
    interception: "Redirect",
    outdone: ["a-younger"],
  });
});

test.each<{ name: string; labels: Record<string, string>; is: boolean }>([
  { name: "all labels must match", labels: { app: "orders", tier: "web" }, is: false },
  { name: "a label of every object's prototype is none of the pod's", labels: { valueOf: "x" }, is: false },
  { name: "an empty selector selects nothing", labels: {}, is: false },
  { name: "further labels do not matter", labels: { app: "orders" }, is: true },
])("$name", ({ labels, is }) => expect(selects(aPolicy("one", labels, "2026-01-01T00:00:00Z"), aPod())).toBe(is));

test("a policy without a selector, one that is being deleted and one that cannot be read select nothing", () => {
  const spec = { selector: { matchLabels: { app: "orders" } }, target: { port: 1 } };
  for (const policy of [
    anObject("ApiKeyPolicy", { target: { port: 1 } }),
    aDeletedObject("ApiKeyPolicy", spec),
    anObject("ApiKeyPolicy", { selector: "app" }),
    anObject("ApiKeyPolicy", null),
  ]) {
    expect(selects(policy, aPod())).toBe(false);
  }
  expect(policyOfPod(aPod(), [other])).toMatchObject({
    refused: expect.stringContaining("no ApiKeyPolicy selects this pod"),
  });
});

test("a fault elsewhere in a policy does not keep its pods from starting", () => {
  const broken = aPolicy("broken", { app: "orders" }, "2026-01-01T00:00:00Z", { rules: "none", later: 1 });
  expect(policyOfPod(aPod(), [broken])).toMatchObject({ name: "broken", port: "http" });
});

const named = (annotations: Record<string, string>, containers?: object[]) =>
  aPod({ metadata: { annotations }, ...(containers === undefined ? {} : { spec: { containers } }) });

test("the annotation wins over selectors, and may name a policy that is to come", () => {
  const policies = [older, other];
  expect(policyOfPod(named({ "postern.dev/policy": "other" }), policies)).toMatchObject({ name: "other", outdone: [] });
  const coming = { "postern.dev/policy": "coming" };
  expect(policyOfPod(named(coming), policies)).toMatchObject({ name: "coming", port: "http", interception: "Port" });
  expect(policyOfPod(named({ ...coming, "postern.dev/target-port": "9090" }), policies)).toMatchObject({ port: 9090 });
  expect(policyOfPod(named({ ...coming, "postern.dev/target-port": "web" }), policies)).toMatchObject({ port: "web" });
  for (const ports of [[], [{ containerPort: 1 }, { containerPort: 2 }]]) {
    expect(policyOfPod(named(coming, [{ name: "app", ports }]), policies)).toMatchObject({
      refused: expect.stringContaining("postern.dev/target-port"),
    });
  }
});
