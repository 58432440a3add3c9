import { expect, test } from "vitest";
import { readProxyBlock } from "./proxy-block.ts";

test.each([
  { text: "10.0.0.1", address: "10.0.0.1", bits: 32 },
  { text: "10.0.0.0/8", address: "10.0.0.0", bits: 8 },
  { text: "10.0.0.0/08", address: "10.0.0.0", bits: 8 },
  { text: "10.1.2.3/0", address: "10.1.2.3", bits: 0 },
  { text: "10.0.0.1/032", address: "10.0.0.1", bits: 32 },
  { text: "2001:db8::1", address: "2001:db8::1", bits: 128 },
  { text: "2001:db8::/32", address: "2001:db8::", bits: 32 },
  { text: "::/0", address: "::", bits: 0 },
  { text: "::ffff:10.0.0.0/104", address: "::ffff:10.0.0.0", bits: 104 },
  { text: "::ffff:10.0.0.0/8", address: "::ffff:10.0.0.0", bits: 8 },
  { text: "fe80::1%eth0", address: "fe80::1%eth0", bits: 128 },
])("proxy setting $text is a valid address or CIDR block", ({ text, ...block }) =>
  expect(readProxyBlock(text)).toEqual(block),
);

test.each([
  ...["", "/8", "10/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8/8", "10.0.0.0/1e1", "10.0.0.0/0x8"],
  ...["10.0.0.0/0008", "::/129", "proxy.example", " 10.0.0.1", "010.0.0.1"],
])("proxy setting %j is invalid", (text) => expect(readProxyBlock(text)).toBeUndefined());
