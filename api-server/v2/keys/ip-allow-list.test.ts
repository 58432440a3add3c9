import { afterAll, beforeAll, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";

/* The IP allow-list of an API, as it is stored, in a verification (api-v2.md section 12, step 10). */

let t: TestApp;
let apiId: string;
let key: string;
beforeAll(async () => {
  t = await buildTestApp({ trustedProxies: ["127.0.0.1"] });
  ({ apiId } = await t.data("apis.createApi", { name: "listed" }));
  ({ key } = await t.data("keys.createKey", { apiId }));
});
afterAll(() => t.close());

async function codeFrom(address: string, list: readonly string[]): Promise<string> {
  await t.deps.db.query("update apis set ip_allow_list = $2 where id = $1", [apiId, list]);
  t.deps.projection.drop([{ workspaceId: t.workspace.id, kind: "api", id: apiId }]);
  return (await t.data("keys.verifyKey", { key }, { headers: { "x-forwarded-for": address } })).code;
}

const HUNDRED = Array.from({ length: 100 }, (_, i) => `10.0.${i}.0/24`);

test.each([
  { name: "an address", list: ["203.0.113.7"], inside: "203.0.113.7", outside: "203.0.113.8" },
  { name: "an IPv4 range", list: ["203.0.112.0/23"], inside: "203.0.113.255", outside: "203.0.114.0" },
  { name: "host bits that are set", list: ["203.0.113.77/24"], inside: "203.0.113.0", outside: "203.0.112.255" },
  { name: "a range of one", list: ["203.0.113.7/32"], inside: "203.0.113.7", outside: "203.0.113.6" },
  { name: "all of IPv4", list: ["0.0.0.0/0"], inside: "255.255.255.255", outside: "2001:db8::1" },
  { name: "all of IPv6", list: ["::/0"], inside: "2001:db8::1", outside: "203.0.113.7" },
  { name: "an IPv6 range", list: ["2001:db8::/33"], inside: "2001:db8:7fff::1", outside: "2001:db8:8000::" },
  { name: "IPv4 within IPv6", list: ["::ffff:10.0.0.0/104"], inside: "10.255.0.1", outside: "11.0.0.0" },
  {
    name: "an IPv4 range for IPv4 within IPv6",
    list: ["10.0.0.0/8"],
    inside: "::ffff:10.1.1.1",
    outside: "::ffff:11.1.1.1",
  },
  { name: "the last of a hundred", list: HUNDRED, inside: "10.0.99.255", outside: "10.0.100.0" },
  { name: "entries beside one that cannot be read", list: ["10/8", "::1"], inside: "0:0::1", outside: "10.0.0.1" },
])(
  "IP allow-list with $name allows an address in the list and denies another address",
  async ({ list, inside, outside }) => {
    expect(await codeFrom(inside, list)).toBe("VALID");
    expect(await codeFrom(outside, list)).toBe("FORBIDDEN");
  },
);

test("empty IP allow-list allows all clients", async () => {
  expect(await codeFrom("203.0.113.7", [])).toBe("VALID");
});
