import { Ajv } from "ajv";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LISTED_KINDS, listRecordRefs } from "../../../api-server/db/records.ts";
import { buildTestApp, type TestApp } from "../../../api-server/test/app.ts";
import { makeResources, policyBody } from "../../../api-server/test/resources.ts";
import { readStoredPolicy } from "../../../core/policies/stored-policy.ts";
import { readRecordData } from "../../../edge/projection/record-schemas.ts";
import { readRecords } from "../../harness/projected-records.ts";
import {
  FROZEN_KINDS,
  type FrozenKind,
  freeze,
  frozenKinds,
  frozenReleases,
  isFrozen,
  readFrozenRecords,
  readFrozenSchema,
  recordKindOf,
  THIS_RELEASE,
} from "./frozen.ts";

/*
 * Old and new pods and api-servers run side by side during an upgrade, so records of each version are read by the next and the previous
 * version. `npm run freeze:records` stores the records of the current version.
 */

const HOUR_MS = 3_600_000;

let t: TestApp;
let records: Record<FrozenKind, object[]>;
beforeAll(async () => {
  t = await buildTestApp();
  await makeOneOfEach();
  records = await readAll();
});
afterAll(() => t.close());

/** Creates for each kind one record without optional members and one with all of them. */
async function makeOneOfEach(): Promise<void> {
  const resources = makeResources(t.deps.db, { workspaceId: t.workspace.id, ask: (path, body) => t.data(path, body) });
  const ratelimits = [{ name: "requests", limit: 100, duration: HOUR_MS, autoApply: true }];
  const { externalId } = await resources.identity();
  await t.data("identities.updateIdentity", { identity: externalId, ratelimits, meta: { plan: "pro" } });
  await resources.identity();
  const { slug } = await resources.permission();
  const role = await resources.role([slug]);
  await resources.role();
  const { apiId } = await resources.key();
  await t.deps.db.query("update apis set ip_allow_list = '{192.0.2.0/24}' where id = $1", [apiId]);
  const whole = { apiId, name: "whole", externalId, permissions: [slug], roles: [role.name], ratelimits };
  await resources.key({
    ...whole,
    expires: 4_000_000_000_000,
    credits: { remaining: 5 },
    meta: { a: 1 },
    enabled: false,
  });
  const { namespaceId, namespace } = await resources.override();
  const pattern = { namespace: namespaceId, identifier: "premium_*", limit: 9, duration: HOUR_MS, async: true };
  await t.data("ratelimit.setOverride", pattern);
  const gone = await resources.namespace();
  await t.data("ratelimit.deleteNamespace", { namespace: gone.namespaceId });
  await resources.policy(apiId);
  await t.data("managed.applyObject", wholePolicy(apiId, namespace));
  await t.data("managed.applyObject", policyOfFormat2(apiId, namespace));
}

/** Returns a policy with every member of format 1. */
const wholePolicy = (apiId: string, namespace: string) => {
  const limit = { limit: 5, duration: "1m", cost: 2 };
  return policyBody(apiId, "whole", {
    rules: [
      {
        match: { methods: ["GET"], path: { prefix: "/a" } },
        permissions: "a OR b",
        credits: { cost: 3 },
        ratelimits: [{ name: "own", async: true, ...limit }],
      },
      {
        match: { path: { exact: "/b" } },
        credits: { cost: 0 },
        ratelimits: [{ namespace, identifier: "Identity", ...limit }],
      },
      { match: { path: { prefix: "/healthz" } }, access: "Anonymous" },
    ],
    credentials: [{ header: { name: "Authorization", scheme: "Bearer" } }, { query: { name: "key" } }],
    clientAddress: { from: "ForwardedFor", trustedProxies: ["10.0.0.0/8"] },
    allowPaths: ["Semicolon"],
  });
};

/** Returns a policy with every member that format 2 added. */
const policyOfFormat2 = (apiId: string, namespace: string) => {
  const limit = { limit: 5, duration: "1m" };
  return policyBody(apiId, "format-2", {
    rules: [
      {
        name: "refund",
        match: {
          methods: ["POST"],
          path: { template: "/orders/{order}/refund" },
          hosts: ["api.example.com", "*.eu.example.com"],
          headers: [
            { name: "X-Api-Version", exact: "2" },
            { name: "X-Beta", present: true },
          ],
        },
        ratelimits: [
          { name: "refunds", by: ["key", "path.order", "header.X-Tenant", "host"], ...limit },
          { namespace, by: ["identity", "method"], ...limit },
        ],
      },
      {
        match: { path: { prefix: "/catalogue" } },
        access: "Anonymous",
        ratelimits: [{ name: "guests", by: ["address"], ...limit }],
      },
      { name: "internal", match: { path: { prefix: "/internal" } }, access: "Deny" },
    ],
    defaultAccess: "Deny",
    failedAttempts: { limit: 20, duration: "1m" },
    clientAddress: { from: "ForwardedFor", trustedProxies: ["10.0.0.0/8"], ipv6PrefixBits: 56 },
  });
};

/** Reads all records with the statements of the relay. */
async function readAll(): Promise<Record<FrozenKind, object[]>> {
  const { db } = t.deps;
  const all: Partial<Record<FrozenKind, object[]>> = {};
  for (const kind of LISTED_KINDS) {
    const { refs } = await listRecordRefs(db, { kind, after: "", max: 1_000 });
    all[kind] = (await readRecords(db, refs)) as object[];
  }
  const names = (all.namespace as Array<{ name: string }>).map(({ name }) => name);
  const refs = names.map((id) => ({ workspaceId: t.workspace.id, kind: "namespaceName", id }) as const);
  all.namespaceName = (await readRecords(db, refs)) as object[];
  const policies = all.policy as Array<{ policy: { formatVersion: number } }>;
  all.policy = policies.filter(({ policy }) => policy.formatVersion === 1);
  all.policy2 = policies.filter(({ policy }) => policy.formatVersion === 2);
  return all as Record<FrozenKind, object[]>;
}

type Json = Readonly<Record<string, unknown>>;

/** Returns the complete value of a record as used for decisions; throws if it is unreadable. */
function complete(kind: FrozenKind, data: unknown): Json {
  const record = readRecordData(recordKindOf(kind), data);
  if (!record.success) throw new Error(record.problem);
  const value = record.value as Json;
  if (recordKindOf(kind) !== "policy") return value;
  const { policy, problem } = readStoredPolicy(value.policy);
  if (policy === undefined) throw new Error(problem);
  return { ...value, policy };
}

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns a copy with an additional member in every object at every level. */
function withUnknown(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withUnknown);
  if (!isObject(value)) return value;
  const members = Object.entries(value).map(([name, member]) => [name, withUnknown(member)]);
  return { ...Object.fromEntries(members), ofALaterRelease: { deep: [1, { deeper: null }] } };
}

test("record fixtures cover each kind with all members", () => {
  expect(Object.keys(records).sort()).toEqual([...FROZEN_KINDS].sort());
  for (const kind of FROZEN_KINDS) expect(records[kind as FrozenKind].length, kind).toBeGreaterThan(0);
});

if (process.env.FREEZE_RECORDS === "1")
  test("record fixtures of this version are written to the repository", () => freeze(records));

test("record fixtures of this version are kept for later versions", () => {
  const message = `test/contracts/records has nothing of ${THIS_RELEASE}: run npm run freeze:records and commit what it writes`;
  expect(isFrozen(THIS_RELEASE), message).toBe(true);
});

const cases = frozenReleases().flatMap((release) => frozenKinds(release).map((kind) => ({ release, kind })));

describe.each(cases)("$kind of $release", ({ release, kind }) => {
  const frozen = readFrozenRecords(release, kind);

  test("stored record is read unchanged by this version", () => {
    expect(frozen.length).toBeGreaterThan(0);
    for (const record of frozen) expect(complete(kind, record)).toMatchObject(record);
  });

  test("stored record with unknown members is read by this version", () => {
    for (const record of frozen) expect(complete(kind, withUnknown(record))).toMatchObject(record);
  });

  test("record of a newer format is rejected by this version", () => {
    for (const record of frozen) expect(() => complete(kind, { ...record, formatVersion: 99 })).toThrow(/format 99/);
  });

  test("stored record and current output match the frozen schema of their version", () => {
    const validate = new Ajv({ strict: false }).compile(readFrozenSchema(release, kind));
    for (const record of [...frozen, ...records[kind]]) {
      expect(validate(record), JSON.stringify(validate.errors)).toBe(true);
    }
  });
});

/** Optional members with their defaults. All other members are required, because their absence would admit more. */
const DEFAULTS: Readonly<Partial<Record<FrozenKind, Json>>> = {
  key: { roleIds: [], permissions: [] },
  role: { permissions: [] },
  namespace: { deleted: false },
  namespaceName: { deleted: false },
  override: { async: false },
};
/** Optional members without a default. */
const OPTIONAL: Readonly<Partial<Record<FrozenKind, readonly string[]>>> = {
  key: ["name", "expiresMs", "identityId"],
  api: ["ipAllowList"],
};

describe.each(FROZEN_KINDS.map((kind) => ({ kind: kind as FrozenKind })))("a missing member of a $kind", ({ kind }) => {
  test("record with a missing member gets the default value or, without one, is unreadable", () => {
    const defaults = DEFAULTS[kind] ?? {};
    const whole = records[kind].reduce((most, one) =>
      Object.keys(one).length > Object.keys(most).length ? one : most,
    );
    for (const member of Object.keys(whole)) {
      const { [member]: _, ...rest } = whole as Json;
      if (member in defaults) expect(complete(kind, rest)[member]).toEqual(defaults[member]);
      else if (OPTIONAL[kind]?.includes(member)) expect(complete(kind, rest)).not.toHaveProperty(member);
      else expect(() => complete(kind, rest), member).toThrow();
    }
    expect(Object.keys(defaults).filter((member) => !(member in whole))).toEqual([]);
  });
});
