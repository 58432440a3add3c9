import { describe, expect, test } from "vitest";
import { lastOf, readExtAuthRequest } from "./parse-request.ts";

const ORIGINAL = ["X-Original-Method", "POST", "X-Original-URI", "/orders?a=b"];
const FORWARDED = ["x-forwarded-method", "PUT", "x-forwarded-uri", "/x"];

describe("the original request of a check request", () => {
  test.each([
    { name: "by X-Original-*", url: "/authorize", rawHeaders: ORIGINAL, method: "POST", asked: "/orders?a=b" },
    { name: "by X-Forwarded-*", url: "/authorize", rawHeaders: FORWARDED, method: "PUT", asked: "/x" },
    { name: "and no query counts", url: "/authorize?a=/public", rawHeaders: FORWARDED, method: "PUT", asked: "/x" },
    { name: "by itself", url: "/authorize/a/%2e%2e/b?c", rawHeaders: [], method: "GET", asked: "/a/%2e%2e/b?c" },
    { name: "by itself, of the root", url: "/authorize/", rawHeaders: [], method: "GET", asked: "/" },
  ])("readExtAuthRequest reads the original request $name", ({ url, rawHeaders, method, asked }) => {
    const found = readExtAuthRequest({ method: "GET", url, rawHeaders: ["Host", "gate", ...rawHeaders] });
    expect(found).toMatchObject({ kind: "asked", request: { method, url: asked, rawHeaders: ["Host", "gate"] } });
  });
});

describe("ambiguous or incomplete check requests", () => {
  test.each([
    { name: "nothing is told", rawHeaders: [] },
    { name: "only the target is told", rawHeaders: ["X-Original-URI", "/"] },
    { name: "halves of two pairs", rawHeaders: ["X-Original-Method", "GET", "X-Forwarded-Uri", "/"] },
    { name: "both pairs", rawHeaders: [...ORIGINAL, ...FORWARDED] },
    { name: "a pair and a half", rawHeaders: [...FORWARDED, "X-Original-URI", "/public"] },
    { name: "a target twice", rawHeaders: [...ORIGINAL, "x-original-uri", "/public"] },
    { name: "no method", rawHeaders: ["X-Original-Method", "", "X-Original-URI", "/"] },
    { name: "two methods in one", rawHeaders: ["X-Original-Method", "GET, POST", "X-Original-URI", "/"] },
    { name: "by itself and by headers", url: "/authorize/x", rawHeaders: ["X-Forwarded-Uri", "/"] },
  ])("readExtAuthRequest returns undefined when $name", ({ url = "/authorize", rawHeaders }) => {
    expect(readExtAuthRequest({ method: "GET", url, rawHeaders })).toMatchObject({
      kind: "malformed",
      why: expect.any(String),
    });
  });

  test.each(["/", "/authorized", "/other/authorize", "*", ""])("path %j is not an ext-auth endpoint", (url) => {
    expect(readExtAuthRequest({ method: "GET", url, rawHeaders: ORIGINAL })).toEqual({ kind: "elsewhere" });
  });
});

describe("the client's address", () => {
  test.each([
    {
      name: "is the last entry, and the others stay",
      text: "6.6.6.6, 192.0.2.7",
      address: "192.0.2.7",
      before: "6.6.6.6",
    },
    { name: "may have a port", text: "[2001:db8::1]:443", address: "2001:db8::1", before: undefined },
    { name: "is none without the header", text: undefined, address: "", before: undefined },
    { name: "is none when the last entry is no address", text: "192.0.2.7, unix:", address: "", before: undefined },
    { name: "is none when the last entry is empty", text: "192.0.2.7,", address: "", before: undefined },
  ])("X-Forwarded-For of a check request determines the client address: it $name", ({ text, address, before }) => {
    expect(lastOf(text)).toEqual({ address, before });
  });

  test.each([
    { name: "is in X-Real-IP", headers: ["X-Real-IP", "192.0.2.7"], address: "192.0.2.7" },
    { name: "is none without it", headers: [], address: "" },
    {
      name: "is none when it was sent twice",
      headers: ["X-Real-IP", "192.0.2.7", "x-real-ip", "6.6.6.6"],
      address: "",
    },
  ])(
    "client address of a check request over HTTP from Envoy $name, and Envoy's own address is ignored",
    ({ headers, address }) => {
      const rawHeaders = [...headers, "X-Forwarded-For", "6.6.6.6,10.0.0.1"];
      expect(readExtAuthRequest({ url: "/authorize/", rawHeaders })).toMatchObject({
        request: { socket: { remoteAddress: address }, rawHeaders: [...headers, "X-Forwarded-For", "6.6.6.6"] },
      });
    },
  );

  test("client address is in the last of several X-Forwarded-For headers", () => {
    const found = readExtAuthRequest({
      url: "/authorize",
      rawHeaders: [...ORIGINAL, "X-Forwarded-For", "6.6.6.6", "x-forwarded-for", "192.0.2.7"],
    });
    expect(found).toMatchObject({
      request: { socket: { remoteAddress: "192.0.2.7" }, rawHeaders: ["X-Forwarded-For", "6.6.6.6"] },
    });
  });
});
