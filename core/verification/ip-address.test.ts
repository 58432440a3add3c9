import fc from "fast-check";
import { expect, test } from "vitest";
import { canonicalIp, isInRange, networkOf, parseIp, parseIpRange, withoutPort } from "./ip-address.ts";

test.each([
  ["192.0.2.1", "192.0.2.1"],
  ["0.0.0.0", "0.0.0.0"],
  ["255.255.255.255", "255.255.255.255"],
  ["::ffff:192.0.2.1", "192.0.2.1"],
  ["::FFFF:c000:0201", "192.0.2.1"],
  ["0:0:0:0:0:ffff:192.0.2.1", "192.0.2.1"],
  ["::", "0:0:0:0:0:0:0:0"],
  ["::1", "0:0:0:0:0:0:0:1"],
  ["2001:DB8::1", "2001:db8:0:0:0:0:0:1"],
  ["2001:0db8:0000:0000:0000:0000:0000:0001", "2001:db8:0:0:0:0:0:1"],
  ["1::", "1:0:0:0:0:0:0:0"],
  ["1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"],
  ["64:ff9b::192.0.2.1", "64:ff9b:0:0:0:0:c000:201"],
  ["64:ff9b::192.168.2.1", "64:ff9b:0:0:0:0:c0a8:201"],
  ["2001:db8::ffff:c000:201", "2001:db8:0:0:0:ffff:c000:201"],
  ["0:0:0:0:1:ffff:192.0.2.1", "0:0:0:0:1:ffff:c000:201"],
  ["1:1:1:1:1:ffff:192.0.2.1", "1:1:1:1:1:ffff:c000:201"],
  ["fe80::1%eth0", "fe80:0:0:0:0:0:0:1"],
])("IP address %s has canonical form %s", (text, canonical) => expect(canonicalIp(text)).toBe(canonical));

test.each([
  "",
  "192.0.2",
  "192.0.2.1.5",
  "192.0.2.256",
  "192.0.02.1",
  "192.0.2.1 ",
  "0x7f.0.0.1",
  "1:2:3:4:5:6:7",
  "1:2:3:4:5:6:7:8:9",
  "1:2:3:4:5:6:7:8::",
  "1::2::3",
  ":1:2:3:4:5:6:7",
  "12345::",
  "g::",
  "::192.0.2.1:1",
  "192.0.2.1::",
  ":",
  ":::",
  "localhost",
])("%j is an invalid IP address", (text) => expect(canonicalIp(text)).toBeUndefined());

test.each([
  { text: "203.0.113.9:4711", address: "203.0.113.9" },
  { text: "203.0.113.9", address: "203.0.113.9" },
  { text: "[2001:db8::1]:4711", address: "2001:db8::1" },
  { text: "[2001:db8::1]", address: "2001:db8::1" },
  { text: "2001:db8::1", address: "2001:db8::1" },
  { text: "::1", address: "::1" },
  { text: "[", address: "" },
  { text: "", address: "" },
])("IP address $text without its port is $address", ({ text, address }) => expect(withoutPort(text)).toBe(address));

test("canonical form of every IP address is unique and stable", () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (address) => {
      const canonical = canonicalIp(address);
      expect(canonical).toBeDefined();
      expect(canonicalIp(canonical ?? "")).toBe(canonical);
    }),
  );
});

test("IP address parser never throws for any text", () => {
  fc.assert(
    fc.property(fc.string(), fc.array(fc.constantFrom(":", "::", "0", "ff", "1.2.3.4", "%")), (text, parts) => {
      canonicalIp(text);
      canonicalIp(parts.join(""));
    }),
  );
});

test.each([
  "10.0.0.0/8",
  "10.0.0.1",
  "0.0.0.0/0",
  "10.0.0.1/32",
  "::/0",
  "2001:db8::1/128",
  "::ffff:10.0.0.0/104",
  "::1",
])("%s is a valid IP range", (text) => expect(parseIpRange(text)).toBeDefined());

test.each([
  "",
  "/8",
  "10.0.0.0/",
  "10.0.0.0/33",
  "10.0.0.0/-1",
  "10.0.0.0/08",
  "10.0.0.0/8/8",
  "10/8",
  "::/129",
  "::ffff:1.2.3.4/95",
])("%j is an invalid IP range", (text) => expect(parseIpRange(text)).toBeUndefined());

test("IP address is in a range if its first n bits match", () => {
  const bitsOf = (address: number) => address.toString(2).padStart(32, "0");
  const textOf = (address: number) => [24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join(".");
  const ipv4 = fc.integer({ min: 0, max: 2 ** 32 - 1 });
  fc.assert(
    // The second address is derived from the first, because two random addresses mostly differ in their first bits.
    fc.property(ipv4, fc.nat({ max: 31 }), fc.nat({ max: 32 }), (one, flipped, bits) => {
      const other = (one ^ (1 << flipped)) >>> 0;
      const [address, range] = [parseIp(textOf(other)), parseIpRange(`${textOf(one)}/${bits}`)];
      if (address === undefined || range === undefined) throw new Error("both can be read");
      expect(isInRange(address, range)).toBe(bitsOf(one).slice(0, bits) === bitsOf(other).slice(0, bits));
    }),
  );
});

test.each([
  ["192.0.2.7", "192.0.2.7"],
  ["::ffff:192.0.2.7", "192.0.2.7"],
  ["2001:DB8::1", "2001:db8:0:0::/64"],
  ["2001:db8:0:0:ffff::1%eth0", "2001:db8:0:0::/64"],
  ["2001:db8:0:1::1", "2001:db8:0:1::/64"],
  ["unknown", "unknown"],
  ["un:known", "un:known"],
  ["", ""],
])("client address %s shares the limit of network %s", (address, network) => {
  expect(networkOf(address)).toBe(network);
});
