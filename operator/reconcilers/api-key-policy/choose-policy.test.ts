import { describe, expect, test } from "vitest";
import { aDeletedObject, anObject } from "../../test/builders.ts";
import { choosePolicy, selectorOf, selects } from "./choose-policy.ts";

const policy = (matchLabels: unknown, metadata: Parameters<typeof anObject>[2] = {}) =>
  anObject("ApiKeyPolicy", { selector: { matchLabels }, target: { port: 80 } }, metadata);
const pod = (labels: Record<string, string>, named?: string) => ({ namespace: "shop", labels, policy: named });

test.each<{ name: string; matchLabels: unknown; is: boolean }>([
  { name: "a pod with all labels and more", matchLabels: { app: "orders" }, is: true },
  { name: "no pod without one of them", matchLabels: { app: "orders", tier: "x" }, is: false },
  { name: "no pod with another value", matchLabels: { app: "order" }, is: false },
  { name: "no pod by what every object inherits", matchLabels: { valueOf: "x" }, is: false },
  { name: "no pod by an empty selector", matchLabels: {}, is: false },
  { name: "no pod without a selector", matchLabels: undefined, is: false },
  { name: "no pod by one that is no selector", matchLabels: "app=orders", is: false },
])("policy selector matches $name", ({ matchLabels, is }) => {
  expect(selects(policy(matchLabels), pod({ app: "orders", more: "1" }))).toBe(is);
});

test("label selection ignores policies of other namespaces, deleted policies and policies without a spec", () => {
  const labels = { app: "orders" };
  const others = [
    policy(labels, { namespace: "bank" }),
    aDeletedObject("ApiKeyPolicy", { selector: { matchLabels: labels } }),
    anObject("ApiKeyPolicy", null),
  ];
  expect(choosePolicy(pod(labels), others)).toBeUndefined();
  expect(selectorOf(anObject("ApiKeyPolicy", null))).toBeUndefined();
});

test("a policy named by the pod is chosen in the pod's namespace, even if the policy does not exist", () => {
  const elsewhere = policy({ app: "x" }, { name: "named", namespace: "bank" });
  const here = policy({ app: "x" }, { name: "named" });
  expect(choosePolicy(pod({}, "named"), [elsewhere, here])).toEqual({ policy: here, name: "named", overridden: [] });
  expect(choosePolicy(pod({}, "named"), [elsewhere])).toEqual({ policy: undefined, name: "named", overridden: [] });
});

describe("several policies select one pod", () => {
  const at = (creationTimestamp: string, name: string, uid: string) =>
    policy({ app: "orders" }, { name, uid, creationTimestamp });
  const january = "2026-01-01T00:00:00Z";
  // Names, uids and times sort in different orders.
  const oldest = at(january, "m-first", "uid-5");
  const sameTime = at(january, "a-same-time", "uid-7");
  const later = at("2026-02-01T00:00:00Z", "b-later", "uid-1");
  const latest = at("2026-02-01T00:00:00.5Z", "c-latest", "uid-0");
  const all = [oldest, sameTime, later, latest];

  /** Returns every permutation of the list, because a watch delivers objects in any order. */
  function orders<T>(items: readonly T[]): T[][] {
    if (items.length <= 1) return [[...items]];
    return items.flatMap((item, i) => orders(items.toSpliced(i, 1)).map((rest) => [item, ...rest]));
  }

  test("the oldest policy that selects a pod is chosen, or the one with the smaller uid if both are equally old", () => {
    for (const policies of orders(all)) {
      const choice = choosePolicy(pod({ app: "orders" }), policies);
      expect(choice?.policy).toBe(oldest);
      expect(choice?.overridden.map(({ metadata }) => metadata.name).sort()).toEqual([
        "a-same-time",
        "b-later",
        "c-latest",
      ]);
    }
    expect(choosePolicy(pod({ app: "orders" }), [latest, later])?.policy).toBe(later);
  });
});
