import { expect, test } from "vitest";
import { WATCH_DEADLINE_MS, watchProblem } from "./admin.ts";
import { KubeError } from "./runtime/kube-client.ts";
import type { WatchState } from "./runtime/watches.ts";

const watching: WatchState = { resource: "roles", namespace: undefined, ageMs: 30_000, failure: undefined };
const forbidden = new KubeError(403, "Forbidden", "no rights");

test.each<{ name: string; state: Partial<WatchState>; problem: string | undefined }>([
  { name: "one that was heard of lately is none", state: {}, problem: undefined },
  { name: "at the deadline it is none yet", state: { ageMs: WATCH_DEADLINE_MS }, problem: undefined },
  {
    name: "one that was not heard of for longer is named",
    state: { ageMs: WATCH_DEADLINE_MS + 500 },
    problem: "the watch of roles has had no response for 121 s",
  },
  {
    name: "its failure is told as well",
    state: { ageMs: WATCH_DEADLINE_MS + 1, failure: new Error("reset") },
    problem: "the watch of roles has had no response for 120 s: reset",
  },
  { name: "a failure that is retried in time is none", state: { failure: new Error("reset") }, problem: undefined },
  {
    name: "one that was never listed is named, with its namespace",
    state: { ageMs: undefined, namespace: "shop" },
    problem: "roles in shop are not listed yet",
  },
  {
    name: "a missing right is named at once",
    state: { ageMs: 0, failure: forbidden },
    problem: "the operator has no permission to watch roles: 403 Forbidden: no rights",
  },
  {
    name: "a missing right to list is named before there was a list",
    state: { ageMs: undefined, failure: forbidden },
    problem: "the operator has no permission to watch roles: 403 Forbidden: no rights",
  },
])("operator reports a problem of its watch: $name", ({ state, problem }) =>
  expect(watchProblem({ ...watching, ...state })).toBe(problem),
);
