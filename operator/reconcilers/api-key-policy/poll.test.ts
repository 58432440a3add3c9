import { pino } from "pino";
import { afterEach, expect, test } from "vitest";
import { waitFor } from "../../../test/harness/wait.ts";
import { type ApiClient, ApiUnavailable } from "../../api/client.ts";
import type { ManifestObject } from "../../source/contract.ts";
import { anObject } from "../../test/builders.ts";
import type { OperatorContext } from "../context.ts";
import type { ObservedPolicy } from "./observed.ts";
import { createPolicyCache, type ListedPolicy } from "./policy-cache.ts";
import { type PolicyPoll, startPolicyPoll } from "./poll.ts";

const polls: PolicyPoll[] = [];
afterEach(async () => {
  await Promise.all(polls.splice(0).map((poll) => poll.close()));
});

const policyIn = (namespace: string): ManifestObject =>
  anObject("ApiKeyPolicy", {}, { namespace, uid: `uid-${namespace}` });
const managerOf = (namespace: string): string => `test/ApiKeyPolicy/${namespace}/it`;
const pictureOf = (namespace: string, version: number): ListedPolicy => ({
  policyId: `pol_${namespace}`,
  workspaceId: "ws_1",
  apiId: "api_1",
  api: { name: "it" },
  name: `test/${namespace}/it`,
  manager: managerOf(namespace),
  uid: `uid-${namespace}`,
  generation: 1,
  version,
});

/** Creates a workspace per Kubernetes namespace, each with one cached policy, whose policy list responds as given. */
function aPoll(lists: Readonly<Record<string, (body: { cursor?: string }) => Promise<unknown>>>) {
  const asked: string[] = [];
  const apis = new Map(
    Object.entries(lists).map(([namespace, list]) => {
      const call = async (_: string, body: { cursor?: string }) => {
        asked.push(namespace);
        return await list(body);
      };
      return [namespace, { call } as unknown as ApiClient];
    }),
  );
  const policies = [...apis.keys()].map(policyIn);
  const policyCache = createPolicyCache();
  for (const object of policies) {
    const { namespace } = object.metadata;
    const stored = pictureOf(namespace, 1);
    const pollId = policyCache.begin(object.metadata);
    const observed = { object, stored, pollId, seenAtMs: Date.now() } as unknown as ObservedPolicy;
    policyCache.remember({ observed, pace: undefined });
  }
  const added: string[] = [];
  const ctx = {
    source: { list: () => policies },
    workspaces: { resolve: (namespace: string) => ({ workspace: { api: apis.get(namespace) } }) },
    cluster: "test",
    policyCache,
    resyncMs: 300_000,
    nowMs: Date.now,
  } as unknown as OperatorContext;
  const poll = startPolicyPoll({ ctx, add: ({ namespace }) => added.push(namespace), log: pino({ level: "silent" }) });
  polls.push(poll);
  return { poll, added, asked, policyCache, policies };
}

const respond = (data: readonly ListedPolicy[], next?: string) => ({ data, next });

test("policy poll reconciles only policies with changes in the list", async () => {
  const { poll, added, asked } = aPoll({
    same: async () => respond([pictureOf("same", 1)]),
    other: async () => respond([pictureOf("other", 2)]),
    gone: async () => respond([]),
  });
  poll.resume();
  await waitFor("both to be added", () => added.length === 2);
  expect(added.sort()).toEqual(["gone", "other"]);
  expect(asked.sort()).toEqual(["gone", "other", "same"]);
});

test("policy poll reads every page of the list", async () => {
  const pages = [respond([pictureOf("elsewhere", 1)], "p2"), respond([], "p3"), respond([pictureOf("paged", 2)])];
  const cursors: Array<string | undefined> = [];
  const { poll, added } = aPoll({
    paged: async ({ cursor }) => {
      cursors.push(cursor);
      return pages[cursors.length - 1];
    },
  });
  poll.resume();
  await waitFor("it to be added", () => added.length > 0);
  expect(cursors).toEqual([undefined, "p2", "p3"]);
});

test("hanging policy poll of a workspace delays no other workspace and is not started again", async () => {
  const hung = Promise.withResolvers<unknown>();
  const { poll, added, asked, policies } = aPoll({
    hangs: () => hung.promise,
    responding: async () => respond([pictureOf("responding", 2)]),
  });
  poll.resume();
  await waitFor("the other to be added", () => added.includes("responding"));
  poll.hurry({ soonMs: 0, sinceMs: Date.now() });
  await waitFor("the next round", () => asked.filter((one) => one === "responding").length === 2);
  expect(asked.filter((one) => one === "hangs")).toHaveLength(1);
  expect(added).not.toContain("hangs");
  expect(policies).toHaveLength(2);
  hung.resolve(respond([]));
});

test("policy poll queues each policy for a full read when its list first fails, and not again in every round", async () => {
  const { poll, added, asked, policyCache, policies } = aPoll({
    fails: async () => {
      throw new ApiUnavailable("away");
    },
  });
  poll.resume();
  await waitFor("it to be added", () => added.length === 1);
  for (const policy of policies) expect(policyCache.get(policy)).toBeUndefined();
  poll.hurry({ soonMs: 0, sinceMs: Date.now() });
  await waitFor("the next round", () => asked.length === 2);
  expect(added).toEqual(["fails"]);
});

test("policy poll sends no requests on a follower", async () => {
  const { poll, asked } = aPoll({ one: async () => respond([]) });
  poll.hurry({ soonMs: 0, sinceMs: Date.now() });
  poll.resume();
  await waitFor("the leader's first question", () => asked.length === 1);
  poll.pause();
  poll.hurry({ soonMs: 0, sinceMs: Date.now() });
  await new Promise((resolve) => setTimeout(resolve, 600));
  expect(asked).toHaveLength(1);
});
