import { expect, test } from "vitest";
import { UsageError } from "../command.ts";
import type { Api } from "./client.ts";
import { pagesOf, readPaging } from "./pages.ts";

interface Asked {
  readonly limit: number;
  readonly cursor?: string;
}

/** Returns an API with `count` roles; `cursorOf` returns the cursor after the n-th role. */
function anApi(
  count: number,
  cursorOf: (n: number) => string | undefined = (n) => (n < count ? String(n) : undefined),
) {
  const asked: Asked[] = [];
  const call = async (_: string, { limit, cursor = "0" }: Asked) => {
    asked.push({ limit, cursor });
    if (asked.length > 100) throw new Error("it is asked for ever");
    const from = Number(cursor);
    const to = Math.min(count, from + limit);
    const data = Array.from({ length: to - from }, (_, at) => ({ id: `role_${from + at}` }));
    return { data, next: cursorOf(to) };
  };
  return { asked, api: { call } as unknown as Api };
}
const all = { max: Number.POSITIVE_INFINITY, cursor: undefined };

test("page iterator requests a page only after the previous one was taken", async () => {
  const { api, asked } = anApi(250);
  const pages = pagesOf(api, "permissions.listRoles", {}, all);
  expect(asked).toHaveLength(0);
  expect((await pages.next()).value?.rows).toHaveLength(100);
  expect(asked).toHaveLength(1);
  const sizes: number[] = [];
  for await (const { rows } of pages) sizes.push(rows.length);
  expect(sizes).toEqual([100, 50]);
  expect(asked).toHaveLength(3);
});

test("page iterator requests no more rows than its maximum, and returns the cursor of the next page", async () => {
  const { api, asked } = anApi(1000);
  let last: string | undefined;
  for await (const { next } of pagesOf(api, "permissions.listRoles", {}, { max: 130, cursor: "10" })) last = next;
  expect(asked).toEqual([
    { limit: 100, cursor: "10" },
    { limit: 30, cursor: "110" },
  ]);
  expect(last).toBe("140");
});

test.each([
  { name: "the same cursor again and again", cursorOf: () => "0" },
  { name: "a cursor after an empty page", cursorOf: () => "50" },
])("page iterator stops at a list with $name", async ({ cursorOf }) => {
  const { api, asked } = anApi(50, cursorOf);
  const taken = (async () => {
    for await (const _ of pagesOf(api, "permissions.listRoles", {}, all));
  })();
  await expect(taken).rejects.toThrow("permissions.listRoles returned the cursor");
  expect(asked.length).toBeLessThanOrEqual(2);
});

test("page iterator stops when a list returns an earlier cursor", async () => {
  const { api, asked } = anApi(500, (n) => String(n >= 400 ? 100 : n));
  const rows: unknown[] = [];
  const taken = (async () => {
    for await (const page of pagesOf(api, "permissions.listRoles", {}, all)) rows.push(...page.rows);
  })();
  await expect(taken).rejects.toThrow("permissions.listRoles returned the cursor 100 twice");
  expect([asked.length, rows.length]).toEqual([4, 400]);
});

test.each([
  { name: "no list", data: { length: 3 }, next: undefined, says: "a response that is not a list" },
  { name: "a text", data: "roles", next: undefined, says: "a response that is not a list" },
  { name: "a cursor that is a number", data: [], next: 7, says: "an invalid cursor" },
  { name: "an empty cursor", data: [], next: "", says: "an invalid cursor" },
  { name: "an endless cursor", data: [], next: "x".repeat(1025), says: "an invalid cursor" },
])("page iterator rejects a response with $name and does not repeat the request", async ({ data, next, says }) => {
  let asked = 0;
  const call = async () => {
    asked += 1;
    return { data, next };
  };
  const pages = pagesOf({ call } as unknown as Api, "permissions.listRoles", {}, all);
  await expect(pages.next()).rejects.toThrow(says);
  expect(asked).toBe(1);
});

test("list command shows 100 rows unless --limit or --all is set", () => {
  const options = { limit: undefined, all: false, cursor: undefined };
  expect(readPaging(options, "key").max).toBe(100);
  expect(readPaging({ ...options, limit: "7" }, "key").max).toBe(7);
  expect(readPaging({ ...options, all: true }, "key").max).toBe(Number.POSITIVE_INFINITY);
  expect(() => readPaging({ ...options, all: true, limit: "7" }, "key")).toThrow(UsageError);
  expect(() => readPaging({ ...options, cursor: `key_${"x".repeat(2000)}` }, "key")).toThrow(UsageError);
  // The API would list what sorts after the cursor: nothing or everything.
  for (const cursor of ["", "x", "a", "role_1"]) {
    expect(() => readPaging({ ...options, cursor }, "key")).toThrow("key_…");
  }
});
