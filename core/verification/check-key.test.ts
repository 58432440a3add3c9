import { describe, expect, test } from "vitest";
import { aKeyView, anApiRecord } from "../../test/builders/key-view.ts";
import { parseQuery } from "../permissions/query.ts";
import { checkKey, ipAllowed } from "./check-key.ts";
import type { Code } from "./codes.ts";
import type { KeyView } from "./key-view.ts";

const nowMs = 1_800_000_000_000;

describe("why a key is rejected", () => {
  const write = parseQuery("orders.write");
  const listed = anApiRecord({ ipAllowList: ["192.0.2.1"] });

  test.each<{
    name: string;
    view: KeyView;
    clientIp?: string;
    apiId?: string;
    query?: typeof write;
    code: Code | undefined;
  }>([
    { name: "nothing, when all is well", view: aKeyView(), code: undefined },
    {
      name: "nothing, with the permission that is asked for",
      view: aKeyView(),
      query: parseQuery("orders.read"),
      code: undefined,
    },
    {
      name: "nothing, with the permission of a role",
      view: aKeyView({ roles: [{ id: "role_1", name: "editor", permissions: ["orders.*"] }] }),
      query: write,
      code: undefined,
    },
    { name: "its API was deleted", view: aKeyView({ api: undefined }), code: "NOT_FOUND" },
    { name: "its workspace is disabled", view: aKeyView({ workspace: { enabled: false } }), code: "FORBIDDEN" },
    { name: "it is disabled", view: aKeyView({ key: { enabled: false } }), code: "DISABLED" },
    {
      name: "it is of another API",
      view: aKeyView({ key: { expiresMs: nowMs - 1 } }),
      apiId: "api_another",
      code: "FORBIDDEN",
    },
    {
      name: "it is disabled, before its API",
      view: aKeyView({ key: { enabled: false } }),
      apiId: "api_another",
      code: "DISABLED",
    },
    { name: "nothing, when it is of the API", view: aKeyView(), apiId: aKeyView().key.apiId, code: undefined },
    { name: "it has expired", view: aKeyView({ key: { expiresMs: nowMs - 1 } }), code: "EXPIRED" },
    {
      name: "nothing, in the millisecond of its expiry",
      view: aKeyView({ key: { expiresMs: nowMs } }),
      code: undefined,
    },
    { name: "an expiry of 0 is one", view: aKeyView({ key: { expiresMs: 0 } }), code: "EXPIRED" },
    {
      name: "the client is not on the API's list",
      view: aKeyView({ api: listed }),
      clientIp: "192.0.2.2",
      code: "FORBIDDEN",
    },
    {
      name: "nothing, when the client is on the list",
      view: aKeyView({ api: listed }),
      clientIp: "::ffff:192.0.2.1",
      code: undefined,
    },
    { name: "nothing, when the client's address is not looked at", view: aKeyView({ api: listed }), code: undefined },
    { name: "the client's address is not known", view: aKeyView({ api: listed }), clientIp: "", code: "FORBIDDEN" },
    { name: "a permission is missing", view: aKeyView(), query: write, code: "INSUFFICIENT_PERMISSIONS" },
  ])("checkKey rejects a key with the expected code: $name", ({ view, clientIp, apiId, query, code }) =>
    expect(checkKey({ view, nowMs, clientIp, apiId, query })).toBe(code),
  );

  const everything = { enabled: false, expiresMs: 0 };
  test.each<{ first: Code; view: KeyView }>([
    { first: "NOT_FOUND", view: aKeyView({ key: everything, api: undefined, workspace: { enabled: false } }) },
    { first: "FORBIDDEN", view: aKeyView({ key: everything, api: listed, workspace: { enabled: false } }) },
    { first: "DISABLED", view: aKeyView({ key: everything, api: listed }) },
    { first: "EXPIRED", view: aKeyView({ key: { expiresMs: 0 }, api: listed }) },
    { first: "FORBIDDEN", view: aKeyView({ api: listed }) },
    { first: "INSUFFICIENT_PERMISSIONS", view: aKeyView() },
  ])("checkKey reports $first before later codes", ({ first, view }) => {
    const refusal = checkKey({ view, nowMs, clientIp: "198.51.100.1", query: write });
    expect(refusal).toBe(first);
  });
});

describe("an IP allow-list", () => {
  test("empty IP allow-list admits all addresses", () => expect(ipAllowed([], "anything")).toBe(true));

  test.each([
    { list: ["192.0.2.1", " 192.0.2.7 "], clientIp: "192.0.2.7", allowed: true },
    { list: ["2001:DB8::1"], clientIp: "2001:db8:0:0:0:0:0:1", allowed: true },
    { list: ["::ffff:192.0.2.1"], clientIp: "192.0.2.1", allowed: true },
    { list: ["192.0.2.1"], clientIp: "192.0.2.10", allowed: false },
    { list: ["198.51.100.1", "192.0.2.0/24"], clientIp: "192.0.2.255", allowed: true },
    { list: ["192.0.2.0/24"], clientIp: "192.0.3.0", allowed: false },
    { list: ["192.0.2.9/24"], clientIp: "192.0.2.1", allowed: true },
    { list: ["192.0.2.0/24"], clientIp: "::ffff:192.0.2.1", allowed: true },
    { list: ["::ffff:192.0.2.0/120"], clientIp: "192.0.2.77", allowed: true },
    { list: ["::/0"], clientIp: "192.0.2.1", allowed: false },
    { list: ["0.0.0.0/0"], clientIp: "2001:db8::1", allowed: false },
    { list: ["0.0.0.0/0"], clientIp: "255.255.255.255", allowed: true },
    { list: ["2001:db8::/33"], clientIp: "2001:db8:7fff::1", allowed: true },
    { list: ["2001:db8::/33"], clientIp: "2001:db8:8000::", allowed: false },
    { list: ["192.0.2.0/33", "192.0.2.0/", "192.0.2.0/24/8", "/24"], clientIp: "192.0.2.1", allowed: false },
    { list: ["nonsense"], clientIp: "nonsense", allowed: false },
  ])("admission of client $clientIp by the IP allow-list $list is $allowed", ({ list, clientIp, allowed }) => {
    expect(ipAllowed(list, clientIp)).toBe(allowed);
    expect(ipAllowed(list, clientIp)).toBe(allowed);
  });
});

test("checkKey calls the function for the permission query only after earlier checks have passed", () => {
  const fault = () => {
    throw new Error("not a query");
  };
  const disabled = aKeyView({ key: { enabled: false } });
  expect(checkKey({ view: disabled, nowMs, query: fault })).toBe("DISABLED");
  expect(() => checkKey({ view: aKeyView(), nowMs, query: fault })).toThrow("not a query");
  expect(checkKey({ view: aKeyView(), nowMs, query: () => parseQuery("orders.write") })).toBe(
    "INSUFFICIENT_PERMISSIONS",
  );
});
