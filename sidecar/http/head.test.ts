import { describe, expect, test } from "vitest";
import { compileHeadReader } from "./head.ts";

const read = compileHeadReader([
  { in: "header", name: "Authorization", scheme: "Bearer" },
  { in: "header", name: "X-API-Key" },
]);
const lines = (...headers: string[]): string[] =>
  headers.flatMap((line) => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
const readLines = (...headers: string[]) => read(lines("Host: app", ...headers), "1.1");

describe("credentials", () => {
  test.each([
    { name: "a Bearer key", headers: ["Authorization: Bearer k1"], credential: "k1" },
    { name: "a scheme in another case", headers: ["authorization: bEaReR k1"], credential: "k1" },
    { name: "a tab after the scheme", headers: ["Authorization: Bearer\tk1"], credential: "k1" },
    { name: "a header of its own", headers: ["X-Api-Key: k2"], credential: "k2" },
    {
      name: "the first of the policy's order, not of the request's",
      headers: ["X-API-Key: k2", "Authorization: Bearer k1"],
      credential: "k1",
    },
    {
      name: "an empty one all the same, because it is present",
      headers: ["Authorization: Bearer", "X-API-Key: k2"],
      credential: "",
    },
    {
      name: "the second where the first has another scheme",
      headers: ["Authorization: Basic abc", "X-API-Key: k2"],
      credential: "k2",
    },
    {
      name: "nothing for a scheme that only begins alike",
      headers: ["Authorization: Bearerx k1"],
      credential: undefined,
    },
    { name: "nothing where there is none", headers: [], credential: undefined },
  ])("readHead finds $name as credential", ({ headers, credential }) => {
    expect(readLines(...headers).credential).toBe(credential);
  });

  test("readHead removes credentials from all configured sources", () => {
    expect(readLines("Authorization: Bearer k1", "X-API-Key: k2", "Accept: */*").forwarded).toEqual(
      lines("host: app", "Accept: */*"),
    );
  });

  test("readHead forwards an Authorization header with another scheme", () => {
    expect(readLines("Authorization: Basic abc").forwarded).toEqual(lines("host: app", "Authorization: Basic abc"));
  });

  test.each([
    { name: "the same header twice", headers: ["X-API-Key: a", "x-api-key: b"] },
    { name: "the same header with two schemes", headers: ["Authorization: Basic a", "Authorization: Bearer b"] },
  ])("readHead reports $name as a duplicate credential", ({ headers }) => {
    expect(readLines(...headers).duplicateCredential).toBe(true);
  });

  test("readHead accepts one key in each of two credential sources", () => {
    expect(readLines("Authorization: Bearer a", "X-API-Key: b").duplicateCredential).toBe(false);
  });
});

describe("forwarded headers", () => {
  test.each([
    { header: "X-Postern-Key-Id: forged" },
    { header: "x_postern_key_id: forged" },
    { header: "X-POSTERN_Key-Id: forged" },
    { header: "X-Postern: forged" },
    { header: "Keep-Alive: timeout=5" },
    { header: "Proxy-Connection: keep-alive" },
    { header: "Proxy-Authorization: Basic abc" },
    { header: "TE: trailers" },
    { header: "Trailer: X-Postern-Key-Id" },
    { header: "Upgrade: h2c" },
    { header: "HTTP2-Settings: AAMAAABkAAQ" },
    { header: "Expect: 100-continue" },
    { header: "Connection: close" },
  ])("readHead removes the forged header $header", ({ header }) => {
    expect(readLines(header, "Accept: */*").forwarded).toEqual(lines("host: app", "Accept: */*"));
  });

  test("readHead removes all headers listed in `Connection`, in upper or lower case", () => {
    expect(
      readLines("Connection: X-Secret, keep-alive", "x-secret: a", "X-SECRET: b", "Accept: */*").forwarded,
    ).toEqual(lines("host: app", "Accept: */*"));
  });

  test("readHead keeps the framing headers even if `Connection` lists them", () => {
    expect(readLines("Connection: content-length, host", "Content-Length: 3").forwarded).toEqual(
      lines("host: app", "content-length: 3"),
    );
  });

  test("readHead forwards all other headers unchanged and in order", () => {
    expect(readLines("Cookie: a=1", "X-Other: 1", "cookie: b=2").forwarded).toEqual(
      lines("host: app", "Cookie: a=1", "X-Other: 1", "cookie: b=2"),
    );
  });
});

describe("framing", () => {
  test.each([
    { name: "no Host", raw: lines("Accept: */*") },
    { name: "two Hosts", raw: lines("Host: a", "host: b") },
    { name: "a Host with a user", raw: lines("Host: user@a") },
    { name: "a list of Hosts", raw: lines("Host: a, b") },
    { name: "a Host beyond ASCII", raw: lines("Host: caf\u00e9") },
    { name: "two lengths, even equal ones", raw: lines("Host: a", "Content-Length: 3", "Content-Length: 3") },
    { name: "a length and chunks", raw: lines("Host: a", "Content-Length: 3", "Transfer-Encoding: chunked") },
    { name: "a coding that is not chunked", raw: lines("Host: a", "Transfer-Encoding: gzip, chunked") },
    {
      name: "two Transfer-Encodings",
      raw: lines("Host: a", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
    },
  ])("readHead rejects $name as malformed", ({ raw }) => {
    expect(read(raw, "1.1").malformed).toBeTypeOf("string");
  });

  test.each(["A.Example.", "a:8080", "[::1]:80", ""])("readHead forwards Host %j unchanged", (host) => {
    expect(read(["Host", host], "1.1")).toMatchObject({ malformed: undefined, forwarded: ["host", host] });
  });

  test("HTTP/1.0 requests may omit Host and cannot use chunked coding", () => {
    expect(read([], "1.0").malformed).toBeUndefined();
    expect(read(lines("Transfer-Encoding: chunked"), "1.0").malformed).toBeTypeOf("string");
  });

  test.each([
    { header: "Content-Length: 3", hasBody: true },
    { header: "Transfer-Encoding: Chunked", hasBody: true },
    { header: "Content-Length: 0", hasBody: false },
    { header: "Accept: */*", hasBody: false },
  ])("request with $header has a body ($hasBody)", ({ header, hasBody }) => {
    expect(readLines(header)).toMatchObject({ hasBody, malformed: undefined });
  });
});
