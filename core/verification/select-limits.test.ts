import { describe, expect, test } from "vitest";
import { aKeyView, aRatelimitRecord as aLimit, anIdentityRecord } from "../../test/builders/key-view.ts";
import type { RatelimitRecord } from "../records.ts";
import type { KeyView } from "./key-view.ts";
import { effectiveIdentityLimits, type RequestedLimit, selectLimits } from "./select-limits.ts";

const aView = (keyLimits: RatelimitRecord[], identityLimits?: RatelimitRecord[]): KeyView =>
  aKeyView({
    key: { ratelimits: keyLimits },
    identity: identityLimits && anIdentityRecord({ ratelimits: identityLimits }),
  });

const select = (view: KeyView, ...requested: RequestedLimit[]) => selectLimits(view, requested);
const own = aLimit("own", { autoApply: true });
const shared = aLimit("shared", { autoApply: true, limit: 50 });
const onCall = aLimit("on-call");

describe("the limits that are charged", () => {
  test("selectLimits is empty without stored or requested limits", () => {
    expect(select(aView([]))).toEqual({ limits: [] });
  });

  test("selectLimits returns auto-applied limits of key and identity by name", () => {
    const selected = select(aView([onCall, own], [shared]));
    expect(selected).toEqual({
      limits: [
        { id: "rl_own", name: "own", limit: 10, durationMs: 60_000, autoApply: true, cost: 1, identifier: "key_7" },
        {
          id: "rl_shared",
          name: "shared",
          limit: 50,
          durationMs: 60_000,
          autoApply: true,
          cost: 1,
          identifier: "id_5",
        },
      ],
    });
  });

  test.each([
    { name: "the key's alone", view: aView([own]), identifier: "key_7" },
    { name: "the key's, beside an identity without any", view: aView([own], []), identifier: "key_7" },
    { name: "the identity's alone", view: aView([], [own]), identifier: "id_5" },
  ])("selectLimits returns the auto-applied limits with the expected identifier: $name", ({ view, identifier }) => {
    expect(select(view)).toMatchObject({ limits: [{ name: "own", identifier }] });
  });

  test("selectLimits sorts limits by name for any stored or requested order", () => {
    const names = (selection: ReturnType<typeof select>) =>
      "limits" in selection && selection.limits.map(({ name }) => name);
    const stored = (...order: string[]) => aView(order.map((name) => aLimit(name, { autoApply: true })));
    for (const order of [
      ["a", "b", "c"],
      ["b", "c", "a"],
      ["c", "b", "a"],
    ]) {
      expect(names(select(stored(...order)))).toEqual(["a", "b", "c"]);
      expect(names(select(aView([]), ...order.map((name) => ({ name, limit: 1, durationMs: 1000 }))))).toEqual([
        "a",
        "b",
        "c",
      ]);
    }
  });

  test("key limit shadows an identity limit of the same name", () => {
    const view = aView([aLimit("shared")], [shared]);
    expect(select(view)).toEqual({ limits: [] });
    expect(select(view, { name: "shared" })).toMatchObject({ limits: [{ limit: 10, identifier: "key_7" }] });
  });

  test.each<{ name: string; requested: RequestedLimit; used: object }>([
    {
      name: "a stored one by its name, with cost 1",
      requested: { name: "on-call" },
      used: { id: "rl_on-call", limit: 10, cost: 1, autoApply: false },
    },
    {
      name: "a stored one with its cost",
      requested: { name: "own", cost: 5 },
      used: { id: "rl_own", cost: 5, autoApply: true },
    },
    { name: "a stored one as a mere check", requested: { name: "own", cost: 0 }, used: { id: "rl_own", cost: 0 } },
    {
      name: "an ad-hoc one in place of a stored one",
      requested: { name: "own", limit: 3, durationMs: 1000 },
      used: { id: "", limit: 3, durationMs: 1000, autoApply: false, identifier: "key_7" },
    },
    {
      name: "an ad-hoc one in place of the identity's, on the key's counter",
      requested: { name: "shared", limit: 3, durationMs: 1000, cost: 2 },
      used: { id: "", cost: 2, identifier: "key_7" },
    },
    {
      name: "an ad-hoc limit takes the stored duration",
      requested: { name: "own", limit: 3 },
      used: { id: "", limit: 3, durationMs: 60_000, autoApply: false },
    },
    {
      name: "an ad-hoc duration takes the stored limit",
      requested: { name: "own", durationMs: 5000 },
      used: { id: "", limit: 10, durationMs: 5000 },
    },
    {
      name: "an ad-hoc limit of 0",
      requested: { name: "new", limit: 0, durationMs: 1000 },
      used: { id: "", limit: 0 },
    },
  ])("selectLimits applies a requested limit: $name", ({ requested, used }) => {
    const selected = select(aView([own, onCall], [shared]), requested);
    expect("limits" in selected && selected.limits.find(({ name }) => name === requested.name)).toMatchObject(used);
    expect("limits" in selected && selected.limits.map(({ name }) => name)).toEqual(
      [...new Set(["own", "shared", requested.name])].sort(),
    );
  });

  test.each<{ name: string; requested: RequestedLimit[]; result: object }>([
    { name: "a name without a stored limit is unknown", requested: [{ name: "x" }], result: { unknown: "x" } },
    {
      name: "a limit without a duration is unknown too",
      requested: [{ name: "x", limit: 1 }],
      result: { unknown: "x" },
    },
    {
      name: "a duration without a limit is unknown too",
      requested: [{ name: "x", durationMs: 1000 }],
      result: { unknown: "x" },
    },
    {
      name: "an ad-hoc duration under a second is too short",
      requested: [{ name: "x", limit: 1, durationMs: 999 }],
      result: { tooShort: "x" },
    },
    {
      name: "the last entry of a name wins, over one that would fail",
      requested: [{ name: "x" }, { name: "x", limit: 1, durationMs: 1000 }],
      result: { limits: [{ name: "x", limit: 1 }] },
    },
  ])("selectLimits accepts or rejects the requested limits: $name", ({ requested, result }) =>
    expect(select(aView([]), ...requested)).toMatchObject(result),
  );

  test("selectLimits ignores the limits of a deleted identity", () => {
    expect(select(aView([]), { name: "shared" })).toEqual({ unknown: "shared" });
  });
});

test("identity limits of a key exclude those shadowed by key limits", () => {
  expect(effectiveIdentityLimits(aView([aLimit("shared")], [shared, onCall]))).toEqual([onCall]);
  expect(effectiveIdentityLimits(aView([], [shared]))).toEqual([shared]);
  expect(effectiveIdentityLimits(aView([own]))).toEqual([]);
});
