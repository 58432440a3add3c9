import { expect, test } from "vitest";
import { changesOf, draftOf, problemsOf } from "./settings-draft.ts";

const api = {
  apiId: "api_1",
  name: "shop",
  keys: { count: 0, hasMore: false },
  deleteProtection: false,
  keyEncryption: true,
  createdAt: 0,
};
const full = { ...api, defaultPrefix: "prod", defaultByteLength: 24, ipAllowList: ["10.0.0.0/8", "::1"] };

test.each([{ of: api }, { of: full }])("settings form that was not edited changes nothing: $of", ({ of }) => {
  expect(changesOf(of, draftOf(of))).toEqual({});
  expect(problemsOf(draftOf(of))).toEqual({});
});

test("settings form sends only fields that differ, and null or an empty list for an emptied field", () => {
  const emptied = { ...draftOf(full), prefix: " ", bytes: "", addresses: "\n" };
  expect(changesOf(full, emptied)).toEqual({ defaultPrefix: null, defaultByteLength: null, ipAllowList: [] });
  expect(changesOf(full, { ...draftOf(full), addresses: "10.0.0.0/8\r\n ::1 " })).toEqual({});
  const edited = { ...draftOf(api), addresses: "10.0.0.1, 10.0.0.2\n", deleteProtection: true };
  expect(changesOf(api, edited)).toEqual({ ipAllowList: ["10.0.0.1", "10.0.0.2"], deleteProtection: true });
});

test.each([
  { prefix: "nine_char", bytes: "", problems: ["prefix"] },
  { prefix: "a-b", bytes: "15", problems: ["prefix", "bytes"] },
  { prefix: "ok_8_abc", bytes: "256", problems: ["bytes"] },
  { prefix: "", bytes: "16.5", problems: ["bytes"] },
  { prefix: "", bytes: " 255 ", problems: [] },
])("settings form marks an invalid prefix or length: $prefix $bytes", ({ prefix, bytes, problems }) => {
  expect(Object.keys(problemsOf({ ...draftOf(api), prefix, bytes }))).toEqual(problems);
});
