import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hashKey } from "../../core/keys/key-string.ts";
import { createMemoryEdge, type Edge } from "../../edge/open.ts";
import { extAuthOf } from "../../test/harness/ext-auth.ts";
import {
  aPolicy,
  openGate,
  POLICY,
  Records,
  silent,
  type TestGate,
  WORKSPACE,
  waitFor,
} from "../../test/harness/gate.ts";
import { startSidecar } from "../start.ts";
import { Authorization } from "./generated/envoy/service/auth/v3/external_auth_pb.js";
import { RateLimitResponse_Code as Answered, RateLimitService } from "./generated/envoy/service/ratelimit/v3/rls_pb.js";
import { RateLimitUnit as Unit } from "./generated/envoy/type/v3/ratelimit_unit_pb.js";

/*
 * Descriptors made to confuse or to cause load, and two workspaces on one store whose ext-auth endpoints are called for each other's
 * resources.
 */

const OTHER = "ws_other";
const extAuth = extAuthOf(["grpc"]);

let edge: Edge;
let gate: TestGate;
let close: () => Promise<unknown>;
let own: ReturnType<typeof clientsOf>;
let others: ReturnType<typeof clientsOf>;
let othersKey: string;

const clientsOf = (baseUrl: string) => {
  const transport = createGrpcTransport({ baseUrl, readMaxBytes: 1_000_000 });
  return { limits: createClient(RateLimitService, transport), authorization: createClient(Authorization, transport) };
};

beforeAll(async () => {
  edge = createMemoryEdge();
  // One projection contains two workspaces; each has its own records and gate.
  gate = await openGate({ edge, config: { upstream: undefined, extAuth } });
  const records = new Records(edge, OTHER);
  await records.begin();
  await records.putPolicy(aPolicy());
  othersKey = await records.putKey({ keyId: "key_others" });
  for (const workspace of [gate.records, records]) {
    await workspace.putAny("namespace", "rlns_same", { id: "rlns_same", name: "same" });
  }
  await gate.records.putAny("namespace", "rlns_one", { id: "rlns_one", name: "one" });
  await gate.records.putAny("namespace", "rlns_two", { id: "rlns_two", name: "two" });
  await records.putAny("namespace", "rlns_others", { id: "rlns_others", name: "others" });
  await records.complete();
  const other = await startSidecar({
    ...{ edge, workspaceId: OTHER, policyId: POLICY, upstream: undefined, extAuth, podId: "pod-2", region: "test" },
    ...{ listen: { host: "127.0.0.1", port: 0 }, admin: { host: "127.0.0.1", port: 0 } },
    ...{ errorDocsUrl: "https://docs.test", logger: silent },
  });
  own = clientsOf(gate.sidecar.grpcUrl ?? "");
  others = clientsOf(other.grpcUrl ?? "");
  await waitFor("both to have their policies", async () => {
    await others.limits.shouldRateLimit({ domain: "rlns_others", descriptors: [{ entries: [{ key: "a" }] }] });
    return true;
  });
  close = () => other.close();
});
afterAll(async () => {
  await close?.();
  await gate?.close();
});

type ParsedExtAuthRequest = Parameters<(typeof own)["limits"]["shouldRateLimit"]>[0];
type Descriptors = NonNullable<ParsedExtAuthRequest["descriptors"]>;
const perHour = (requestsPerUnit: number) => ({ requestsPerUnit, unit: Unit.HOUR });
const ask = (domain: string, descriptors: Descriptors, more: ParsedExtAuthRequest = {}, of = own) =>
  of.limits.shouldRateLimit({ domain, descriptors, ...more });
const remaining = async (...args: Parameters<typeof ask>): Promise<number | undefined> =>
  (await ask(...args)).statuses[0]?.limitRemaining;

describe("descriptors", () => {
  test("Envoy rate limit service distinguishes descriptors with thousands of entries that differ only in the last one", async () => {
    const entries = (last: string) =>
      Array.from({ length: 5_000 }, (_, at) => ({ key: "k", value: at === 4_999 ? last : "v" }));
    const limit = perHour(1);
    expect(await ask("rlns_one", [{ entries: entries("a"), limit }])).toMatchObject({ overallCode: Answered.OK });
    expect(await ask("rlns_one", [{ entries: entries("b"), limit }])).toMatchObject({ overallCode: Answered.OK });
    expect(await ask("rlns_one", [{ entries: entries("a"), limit }])).toMatchObject({
      overallCode: Answered.OVER_LIMIT,
    });
  });

  test("Envoy rate limit service distinguishes descriptors that look alike", async () => {
    const all: ReadonlyArray<ReadonlyArray<readonly [string, string]>> = [
      [["", ""]],
      [["", "="]],
      [["=", ""]],
      [["a", ""]],
      [["a", "|b="]],
      [
        ["a", ""],
        ["b", ""],
      ],
      [
        ["b", ""],
        ["a", ""],
      ],
      [["a=", "b"]],
      [["a", "=b"]],
      [["a", "%3Db"]],
      [["a", "\n"]],
      [["a", "%0A"]],
      [["a", "\u00e4"]],
      [["a", "a\u0308"]],
      [["A", ""]],
    ];
    for (const pairs of all) {
      const entries = pairs.map(([key, value]) => ({ key: `x${key}`, value }));
      expect(await remaining("rlns_one", [{ entries, limit: perHour(9) }]), JSON.stringify(pairs)).toBe(8);
    }
  });

  test("Envoy rate limit service charges a descriptor that occurs twice either twice or not at all", async () => {
    const one = { entries: [{ key: "twice" }], limit: perHour(3) };
    expect(await ask("rlns_one", [one, one])).toMatchObject({ overallCode: Answered.OK });
    expect(await ask("rlns_one", [one, one])).toMatchObject({ overallCode: Answered.OVER_LIMIT });
    expect(await remaining("rlns_one", [{ ...one, hitsAddend: 0n }])).toBe(1);
  });

  test.each([
    { name: "0 of the request is 1", asked: {}, descriptor: {}, left: 9 },
    { name: "0 of the descriptor only looks", asked: { hitsAddend: 5 }, descriptor: { hitsAddend: 0n }, left: 10 },
    {
      name: "the highest of the request charges nothing",
      asked: { hitsAddend: 0xffff_ffff },
      descriptor: {},
      left: 10,
    },
    {
      name: "the highest of the descriptor charges nothing",
      asked: {},
      descriptor: { hitsAddend: 0xffff_ffff_ffff_ffffn },
      left: 10,
    },
  ])("Envoy rate limit service charges the requested hits: $name", async ({ name, asked, descriptor, left }) => {
    const one = { entries: [{ key: "hits", value: name }], limit: perHour(10) };
    const response = await ask("rlns_one", [{ ...one, ...descriptor }], asked);
    expect(response.overallCode).toBe(left === 10 && name.includes("highest") ? Answered.OVER_LIMIT : Answered.OK);
    expect(await remaining("rlns_one", [{ ...one, hitsAddend: 0n }])).toBe(left);
  });

  test("Envoy rate limit service enforces the maximum limit and a limit of zero", async () => {
    const of = (requestsPerUnit: number, value: string, unit = Unit.YEAR) => ({
      entries: [{ key: "edge", value }],
      limit: { requestsPerUnit, unit },
    });
    expect(await remaining("rlns_one", [of(0xffff_ffff, "high")])).toBe(0xffff_fffe);
    const none = await ask("rlns_one", [of(0, "none", Unit.SECOND)]);
    expect(none).toMatchObject({ overallCode: Answered.OVER_LIMIT, statuses: [{ limitRemaining: 0 }] });
  });

  test("Envoy rate limit service limits the total hits of concurrent requests", async () => {
    const of = (unitMultiplier: number, unit = Unit.HOUR) => ({
      entries: [{ key: "units", value: `${unitMultiplier} ${unit}` }],
      limit: { requestsPerUnit: 5, unit, unitMultiplier },
    });
    const limitOf = async (...args: Parameters<typeof of>) =>
      (await ask("rlns_one", [of(...args)])).statuses[0]?.currentLimit;
    expect(await limitOf(7)).toMatchObject({ requestsPerUnit: 5, unit: Unit.HOUR, unitMultiplier: 7 });
    expect(await limitOf(48)).toMatchObject({ requestsPerUnit: 5, unit: Unit.DAY, unitMultiplier: 2 });
    expect(await limitOf(60, Unit.SECOND)).not.toHaveProperty("unitMultiplier");
    expect(await limitOf(0)).not.toHaveProperty("unitMultiplier");
    await expect(limitOf(0xffff_ffff, Unit.YEAR)).rejects.toThrow("ten years");
  });

  test("Envoy rate limit service counts equal descriptors of two namespaces separately", async () => {
    const one = [{ entries: [{ key: "user", value: "1" }], limit: perHour(5) }];
    expect(await remaining("rlns_one", one)).toBe(4);
    expect(await remaining("rlns_two", one)).toBe(4);
    expect(await remaining("rlns_one", one)).toBe(3);
  });
});

describe("another workspace's", () => {
  test("Envoy rate limit service ignores a namespace of another workspace", async () => {
    const one = [{ entries: [{ key: "user", value: "1" }], limit: perHour(5) }];
    for (const domain of ["rlns_others", "others", `${OTHER}:rlns_others`, "../rlns_others", `${WORKSPACE}/rlns_one`]) {
      await expect(ask(domain, one), domain).rejects.toThrow("not_found");
    }
    expect(await remaining("rlns_same", one)).toBe(4);
    expect(await remaining("rlns_same", one, {}, others)).toBe(4);
    expect(await remaining("rlns_same", one)).toBe(3);
  });

  test("Envoy rate limit service treats a key of another workspace as unknown", async () => {
    const request = { http: { method: "GET", path: "/", host: "a", headers: { "x-api-key": othersKey } } };
    const asked = { attributes: { request } };
    expect((await others.authorization.check(asked)).httpResponse.case).toBe("okResponse");
    expect((await own.authorization.check(asked)).httpResponse.case).toBe("deniedResponse");
    expect(hashKey(othersKey)).not.toBe("");
  });
});
