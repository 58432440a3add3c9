import { expect, test } from "vitest";
import { readDocuments } from "./documents.ts";

const role = (name: string, more = "") => `apiVersion: postern.dev/v1alpha1
kind: Role
metadata: { name: ${name} }
spec: { name: ${name}${more} }
`;
const summary = (text: string) =>
  readDocuments("a.yaml", text).map(({ id, desired, problems }) => ({
    id,
    isGood: desired !== undefined,
    problems: problems.map(({ document, line, location }) => `${document}:${line} ${location}`),
  }));

test("manifest file documents are separate objects in a default namespace", () => {
  expect(readDocuments("a.yaml", `${role("one")}---\n${role("two")}`)).toMatchObject([
    { id: "Role default/one", desired: { kind: "Role", namespace: "default", name: "one", spec: { name: "one" } } },
    { id: "Role default/two" },
  ]);
});

test.each([
  { name: "nothing", text: "" },
  { name: "comments", text: "# later\n---\n# much later\n" },
  { name: "markers alone", text: "---\n---\n" },
  { name: "a directive alone", text: "%YAML 1.2\n" },
])("manifest file with $name contains no documents", ({ text }) => expect(summary(text)).toEqual([]));

test("unterminated YAML document does not include following documents", () => {
  expect(summary(`${role("one")}---\nkind: Role\nmetadata: [\n---\n${role("two")}`)).toEqual([
    { id: "Role default/one", isGood: true, problems: [] },
    { id: undefined, isGood: false, problems: [expect.stringMatching(/^2:\d+ yaml$/)] },
    { id: "Role default/two", isGood: true, problems: [] },
  ]);
});

test("manifest file error for unknown fields and wrong types has location and object", () => {
  expect(summary(role("one", ", color: red, permissions: 7"))).toEqual([
    {
      id: "Role default/one",
      isGood: false,
      problems: expect.arrayContaining(["1:4 spec.color", "1:4 spec.permissions"]),
    },
  ]);
});

test("manifest with a duplicate YAML key is rejected, and the error names its object", () => {
  const text = role("one").replace("kind: Role", "kind: Role\nkind: Role");
  expect(summary(text)).toEqual([{ id: "Role default/one", isGood: false, problems: ["1:3 yaml"] }]);
});

test("manifest file problem is reported with its line number", () => {
  expect(summary(`${role("one")}---\n\n${role("two", ", x: 1")}`)[1]?.problems).toEqual(["2:10 spec.x"]);
});

test("manifest file with excessive YAML alias expansion is rejected", () => {
  const bomb = [
    "a: &a [x,x,x,x,x,x,x,x,x]",
    ..."bcdefghi".split("").map((name, i) => `${name}: &${name} [${`*${"abcdefghi"[i]},`.repeat(9)}]`),
  ];
  expect(summary(bomb.join("\n"))).toMatchObject([{ isGood: false, problems: ["1:1 yaml"] }]);
});

test.each(["just text", "- a\n- list", "kind: [1]\n", "apiVersion: v1\nkind: Secret\nmetadata: { name: x }\n"])(
  "document that is no Postern manifest is reported as a problem: %j",
  (text) => expect(summary(text)).toMatchObject([{ isGood: false }]),
);

test("manifest file with Windows line endings is parsed", () => {
  expect(summary(`${role("one")}---\n${role("two")}`.replaceAll("\n", "\r\n"))).toMatchObject([
    { isGood: true },
    { isGood: true },
  ]);
});

// The YAML parser converts a mapping used as key to text once per enclosing mapping: 400 levels took 12 s, and 3,000 in an invalid document
// 240 s.
test.each([400, 3_000])("duplicate YAML key among %i keys is found quickly", (depth) => {
  const startMs = performance.now();
  expect(summary("? ".repeat(depth))).toMatchObject([{ isGood: false, problems: [expect.stringContaining("yaml")] }]);
  expect(performance.now() - startMs).toBeLessThan(8_000);
});

test("invalid manifest is identified, unless its namespace is a number or its metadata is a list", () => {
  const broken = (metadata: string) => summary(`kind: Role\nkind: Role\nmetadata: ${metadata}\n`)[0]?.id;
  expect(broken("{ name: one, namespace: two }")).toBe("Role two/one");
  expect(broken("{ name: one, namespace: 2 }")).toBeUndefined();
  expect(broken("[one]")).toBeUndefined();
});
