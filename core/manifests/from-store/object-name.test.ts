import { expect, test } from "vitest";
import { ObjectName } from "../fields.ts";
import { objectNameOf } from "./object-name.ts";

test("manifest object name keeps a valid Kubernetes name unchanged", () => {
  for (const name of ["editor", "a", "2", "team-a", "x".repeat(63)]) expect(objectNameOf(name, "Role")).toBe(name);
});

const OTHERS = [
  "Editor",
  "editor!",
  "éditeur en chef",
  "日本",
  "premium_*",
  "*",
  "",
  "   ",
  "-a-",
  "a.b",
  "..",
  "email.outbound",
  "x".repeat(64),
  "x".repeat(512),
  `${"x".repeat(53)}-----`,
  "<img src=x onerror=alert(1)>",
  "a\nb",
  "\u202Eabc",
  "ﬁ",
  "İ",
];

test("manifest object name is derived deterministically from an invalid name", () => {
  for (const name of OTHERS) {
    const made = objectNameOf(name, "Role");
    expect(ObjectName.safeParse(made).success, `${JSON.stringify(name)}: ${made}`).toBe(true);
    expect(made.length).toBeLessThanOrEqual(63);
    expect(objectNameOf(name, "Role")).toBe(made);
  }
  expect(objectNameOf("éditeur en chef", "Role")).toMatch(/^editeur-en-chef-[0-9a-f]{8}$/);
  expect(objectNameOf("日本", "Role")).toMatch(/^role-[0-9a-f]{8}$/);
});

test("different stored names get different manifest object names", () => {
  const names = [...OTHERS, "editor", "EDITOR", "editor?", "日", "premium-*", "premium_**", "x".repeat(65)];
  expect(new Set(names.map((name) => objectNameOf(name, "Role"))).size).toBe(names.length);
});
