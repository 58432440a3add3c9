import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyText } from "../../test/builders/text.ts";
import { authorityOf, canonicalRulePath, checkTarget, isHost } from "./check-path.ts";
import { PathAllowance } from "./policy.ts";

const closed = { allow: [], pathDecides: false };
const open = { allow: [], pathDecides: true };
const all = { allow: PathAllowance.options, pathDecides: true };

describe("an accepted request target", () => {
  test.each([
    { target: "/", path: "/", query: "" },
    { target: "/orders/7", path: "/orders/7", query: "" },
    { target: "/orders/7/", path: "/orders/7/", query: "" },
    { target: "/a.b/c..d/e.", path: "/a.b/c..d/e.", query: "" },
    { target: "/.well-known/x", path: "/.well-known/x", query: "" },
    { target: "/...", path: "/...", query: "" },
    { target: "/a?b=/../c;//%2f", path: "/a", query: "?b=/../c;//%2f" },
    { target: "/?", path: "/", query: "?" },
    { target: "/a?b?c", path: "/a", query: "?b?c" },
    { target: "/users/a%40b.com%3ax@y", path: "/users/a@b.com:x@y", query: "" },
    { target: "/%21%24%26%27%28%29%2a%2B%2C%3D", path: "/!$&'()*+,=", query: "" },
    { target: '/[a]|^"<>`{}', path: "/%5Ba%5D%7C%5E%22%3C%3E%60%7B%7D", query: "" },
    { target: "/%61dmin", path: "/admin", query: "" },
    { target: "/%7euser/%2D%5f", path: "/~user/-_", query: "" },
    { target: "/a%20b%c3%a9?x", path: "/a%20b%C3%A9", query: "?x" },
    { target: "/caf\u00c3\u00a9", path: "/caf%C3%A9", query: "" },
    { target: "/%252f", path: "/%252f", query: "" },
    { target: "http://example.test/a?b", path: "/a", query: "?b" },
    { target: "HTTPS://[::1]:8443/a", path: "/a", query: "" },
    { target: "http://xn--bcher-kva.example.:80/a", path: "/a", query: "" },
    { target: "http://example.test", path: "/", query: "" },
    { target: "http://example.test?b", path: "/", query: "?b" },
  ])("request target $target is parsed as path $path and query $query", ({ target, path, query }) => {
    expect(checkTarget(target, open)).toEqual({ path, query });
  });

  test.each(["/a;v=1/b", "/a%3Bb", "/a%0A", "/a%7F", "/a%FF", "/a%C3", "/token%3D%3D", "/%40me"])(
    "request target %s is forwarded unchanged if all paths have the same requirements",
    (target) => expect(checkTarget(target, closed)).toEqual({ path: target, query: "" }),
  );
});

describe("a rejected request target", () => {
  test.each([
    { target: "/a/../b", allowance: "DotSegments" },
    { target: "/..", allowance: "DotSegments" },
    { target: "/.", allowance: "DotSegments" },
    { target: "/a/./b", allowance: "DotSegments" },
    { target: "/a/%2e%2e/b", allowance: "DotSegments" },
    { target: "/a/.%2E/b", allowance: "DotSegments" },
    { target: "/a/%2e", allowance: "DotSegments" },
    { target: "/a/..?b", allowance: "DotSegments" },
    { target: "http://example.test/..", allowance: "DotSegments" },
    { target: "/a%2fb", allowance: "EncodedSlash" },
    { target: "/a%2Fb", allowance: "EncodedSlash" },
    { target: "/a\\b", allowance: "Backslash" },
    { target: "/a%5cb", allowance: "Backslash" },
    { target: "/a%5Cb", allowance: "Backslash" },
    { target: "//a", allowance: "DoubleSlash" },
    { target: "/a//b", allowance: "DoubleSlash" },
    { target: "/a//", allowance: "DoubleSlash" },
    { target: "/a;b", allowance: "Semicolon" },
    { target: "/;", allowance: "Semicolon" },
    { target: "/a%3Bb", allowance: "Semicolon" },
    ...["%01", "%09", "%0a", "%0D%0A", "%1f", "%7F", "%C2%85", "%e2%80%a8", "\u00c2\u0085"].map((control) => ({
      target: `/admin${control}`,
      allowance: "ControlCharacters",
    })),
    ...["%FF", "%85", "%A0", "%AD", "%C3", "%c3/", "%C0%AF", "%ED%A0%80", "%F4%90%80%80", "\u00e9"].map((bytes) => ({
      target: `/admin${bytes}`,
      allowance: "InvalidUtf8",
    })),
  ])("request target $target is forwarded only if allowPaths has $allowance", ({ target, allowance }) => {
    expect(checkTarget(target, open)).toHaveProperty("refused");
    expect(
      checkTarget(target, { ...open, allow: PathAllowance.options.filter((one) => one !== allowance) }),
    ).toHaveProperty("refused");
    expect(checkTarget(target, { ...open, allow: [PathAllowance.parse(allowance)] })).toHaveProperty("path");
  });

  test.each([
    "/a%00b",
    "/a%",
    "/a%4",
    "/a%zz",
    "/a%2",
    "/a b",
    "/a\tb",
    "/a\u0000",
    "/a\r\nb",
    "/a\u007f",
    "/a#b",
    "/\u0100",
    "",
    "*",
    "a/b",
    "example.test:443",
    "http:///a",
    "http://",
    "http://a\\b/c",
    "http://a b/c",
    "http://a@b/c",
    "http://user:pw@[::1]:8443/a",
    "http://a:b/c",
    "http://a[::1]/c",
    "http://[::1/c",
    "ftp://example.test/a",
    "?a",
  ])("request target %j is rejected even if allowPaths permits every exception", (target) =>
    expect(checkTarget(target, all)).toHaveProperty("refused"),
  );

  test.each([
    { target: "/public/..;/admin", allow: ["Semicolon"] as const },
    { target: "/public/..;x=1/admin", allow: ["Semicolon"] as const },
    { target: "/public/..%3b/admin", allow: [] },
    { target: "/public/..%2fadmin", allow: ["EncodedSlash"] as const },
    { target: "/public%2f..%2fadmin", allow: ["EncodedSlash"] as const },
    { target: "/public%2f%2e%2e/admin", allow: ["EncodedSlash"] as const },
    { target: "/public\\..\\admin", allow: ["Backslash"] as const },
    { target: "/public%5c..", allow: ["Backslash"] as const },
  ])("request target $target is rejected because early decoding reveals a dot segment", ({ target, allow }) => {
    expect(checkTarget(target, { allow, pathDecides: true })).toEqual({ refused: "the path has a dot segment" });
  });

  test("rejection of a request target does not repeat the path", () => {
    for (const target of ["/secret//a", "/secret%00", "secret"]) {
      const checked = checkTarget(target, open);
      expect("refused" in checked && checked.refused).not.toContain("secret");
    }
  });
});

const targetParts = fc.constantFrom(
  "/",
  "a",
  ".",
  "..",
  "%2e",
  "%2F",
  "%5c",
  "%41",
  "%e9",
  "%c3%a9",
  "%40",
  "@",
  "[",
  "%5d",
  "%0a",
  "%3b",
  "%00",
  "%",
  ";",
  "\\",
  "?",
  "b",
  "\u00e9",
  " ",
  "//",
  "#",
);
const targets = fc.oneof(
  fc.array(targetParts, { maxLength: 12 }).map((parts) => `/${parts.join("")}`),
  anyText({ maxLength: 40 }),
);

test("accepted path is normalized, and a second check leaves it unchanged", () => {
  fc.assert(
    fc.property(targets, fc.subarray([...PathAllowance.options]), fc.boolean(), (target, allow, pathDecides) => {
      const checked = checkTarget(target, { allow, pathDecides });
      if ("refused" in checked) return;
      expect(checked.path).toMatch(/^\/(?:[\w.~!$&'()*+,;=:@/-]|%[0-9A-F]{2})*$/);
      expect(checkTarget(checked.path + checked.query, { allow, pathDecides })).toEqual(checked);
    }),
    { numRuns: 5000 },
  );
});

test("paths that pass the strict check are not changed by servers that decode and normalize", () => {
  fc.assert(
    fc.property(targets, (target) => {
      const checked = checkTarget(target, open);
      if ("refused" in checked) return;
      expect(new URL(checked.path, "http://example.test").pathname).toBe(checked.path);
      const decoded = decodeURIComponent(checked.path);
      expect(decoded).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}]/u);
      const segments = decoded.split(/[/\\]/).slice(1);
      expect(segments.slice(0, -1)).not.toContain("");
      expect(segments).not.toContain(".");
      expect(segments).not.toContain("..");
    }),
    { numRuns: 5000 },
  );
});

test.each([
  { path: "/orders", canonical: { path: "/orders" } },
  { path: "/caf\u00e9", canonical: { path: "/caf%C3%A9" } },
  { path: "/a;b", canonical: { path: "/a;b" } },
  { path: "/a?b", canonical: { refused: expect.any(String) } },
  { path: "/a/../b", canonical: { refused: expect.any(String) } },
  { path: "/\ud800", canonical: { path: "/%EF%BF%BD" } },
])("path $path of a policy rule is normalized to $canonical", ({ path, canonical }) => {
  expect(canonicalRulePath(path, [])).toEqual(canonical);
});

describe("hosts", () => {
  test.each(["a", "A.b", "a.b.", "a:80", "a:", "127.0.0.1:1", "[::1]", "[fe80::1%25eth0]:443", "a_b", ""])(
    "%j is a valid Host header",
    (text) => expect(isHost(text)).toBe(true),
  );
  test.each([
    "a b",
    "a@b",
    "user:pw@a",
    "a/b",
    "a?b",
    "a#b",
    "a:b",
    "[::1",
    "::1",
    "a, b",
    "caf\u00e9",
    "a\\b",
    "a%41",
    "[]",
  ])("%j is an invalid Host header", (text) => expect(isHost(text)).toBe(false));

  test.each([
    { target: "http://a.b:80/c?d", authority: "a.b:80" },
    { target: "HTTPS://A", authority: "A" },
    { target: "http://a?b/c", authority: "a" },
    { target: "http://", authority: "" },
    { target: "//a/b", authority: undefined },
    { target: "/http://a", authority: undefined },
    { target: "*", authority: undefined },
  ])("authority of request target $target is $authority", ({ target, authority }) =>
    expect(authorityOf(target)).toBe(authority),
  );
});
