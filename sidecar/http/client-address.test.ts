import { expect, test } from "vitest";
import { compileClientAddress } from "./client-address.ts";

const behindProxies = compileClientAddress({
  from: "forwardedFor",
  trustedProxies: ["10.0.0.0/8", "2001:db8::1", "nonsense"],
});

test.each([
  {
    name: "without a proxy it is the address of the connection",
    connection: "192.0.2.7",
    header: "203.0.113.9",
    ip: "192.0.2.7",
  },
  { name: "a trusted proxy names the client", connection: "10.1.1.1", header: "203.0.113.9", ip: "203.0.113.9" },
  {
    name: "earlier entries, which the client may have written, are ignored",
    connection: "10.1.1.1",
    header: "1.1.1.1, 203.0.113.9",
    ip: "203.0.113.9",
  },
  {
    name: "a chain of proxies is followed",
    connection: "10.1.1.1",
    header: "203.0.113.9, 10.2.2.2,10.3.3.3",
    ip: "203.0.113.9",
  },
  {
    name: "a mapped IPv4 address is the IPv4 address",
    connection: "::ffff:10.1.1.1",
    header: "::ffff:203.0.113.9",
    ip: "203.0.113.9",
  },
  { name: "an IPv6 proxy", connection: "2001:db8::1", header: "2001:db8::99", ip: "2001:db8::99" },
  { name: "ports are taken off", connection: "10.1.1.1", header: "203.0.113.9:4711", ip: "203.0.113.9" },
  { name: "brackets too", connection: "10.1.1.1", header: "[2001:db8::99]:4711", ip: "2001:db8::99" },
  { name: "without the header it is the proxy", connection: "10.1.1.1", header: undefined, ip: "10.1.1.1" },
  {
    name: "only trusted proxies: the first entry",
    connection: "10.1.1.1",
    header: "10.9.9.9, 10.2.2.2",
    ip: "10.9.9.9",
  },
  {
    name: "an entry that is not an address makes it unknown, and earlier ones are ignored",
    connection: "10.1.1.1",
    header: "203.0.113.9, invented",
    ip: "unknown",
  },
  {
    name: "so does an empty entry in the middle",
    connection: "10.1.1.1",
    header: "203.0.113.9,,10.2.2.2",
    ip: "unknown",
  },
  { name: "a connection without an address", connection: "", header: "203.0.113.9", ip: "unknown" },
])("client address is derived from the connection and X-Forwarded-For: $name", ({ connection, header, ip }) => {
  expect(behindProxies?.(connection, header)).toBe(ip);
});

test.each([
  { proxy: "10.0.0.0/8", connection: "10.9.9.9", isTrusted: true },
  { proxy: "10.0.0.0/8", connection: "11.0.0.0", isTrusted: false },
  { proxy: "10.0.0.0/08", connection: "10.9.9.9", isTrusted: true },
  { proxy: "10.1.2.3/8", connection: "10.9.9.9", isTrusted: true },
  { proxy: "10.1.2.3", connection: "10.1.2.4", isTrusted: false },
  { proxy: "0.0.0.0/0", connection: "192.0.2.1", isTrusted: true },
  { proxy: "0.0.0.0/0", connection: "2001:db8::1", isTrusted: false },
  { proxy: "2001:db8::/33", connection: "2001:db8:7fff::1", isTrusted: true },
  { proxy: "2001:db8::/33", connection: "2001:db8:8000::", isTrusted: false },
  // Unlike in an IP allow-list, `::/0` includes IPv4.
  { proxy: "::/0", connection: "192.0.2.1", isTrusted: true },
  { proxy: "::ffff:10.0.0.0/104", connection: "10.9.9.9", isTrusted: true },
  { proxy: "::ffff:10.0.0.0/104", connection: "11.0.0.0", isTrusted: false },
  { proxy: "::ffff:10.0.0.0/8", connection: "11.0.0.0", isTrusted: true },
  // Manifests reject these values, but a stored policy may contain them.
  { proxy: "10.0.0.0/", connection: "192.0.2.1", isTrusted: false },
  { proxy: "10.0.0.0/8/8", connection: "10.9.9.9", isTrusted: false },
  { proxy: "10.0.0.0/1e1", connection: "10.0.0.1", isTrusted: false },
])("proxy list $proxy trusts connection $connection ($isTrusted)", ({ proxy, connection, isTrusted }) => {
  const find = compileClientAddress({ from: "forwardedFor", trustedProxies: [proxy] });
  expect(find?.(connection, "203.0.113.9")).toBe(isTrusted ? "203.0.113.9" : connection);
});

test("client address source `connection` ignores the X-Forwarded-For header", () => {
  expect(compileClientAddress({ from: "connection" })?.("::ffff:192.0.2.7", "203.0.113.9")).toBe("192.0.2.7");
});

test("a policy without clientAddress settings has no client address", () => {
  expect(compileClientAddress(undefined)).toBeUndefined();
});
