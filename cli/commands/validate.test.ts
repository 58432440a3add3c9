import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runPostern } from "../test/api-cli.ts";

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), "postern-validate-"));
});
afterAll(() => rmSync(dir, { recursive: true }));

const role = (name: string, permissions = "[a.b]") =>
  `apiVersion: postern.dev/v1alpha1\nkind: Role\nmetadata: { name: ${name} }\nspec: { name: ${name}, permissions: ${permissions} }\n`;

let folders = 0;
/** Creates a directory with these files. */
function folderOf(files: Readonly<Record<string, string>>): string {
  const folder = join(dir, String(folders++));
  mkdirSync(folder);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}
const validate = (args: readonly string[], stdin?: string) =>
  runPostern(["validate", ...args.flatMap((path) => ["-f", path])], stdin === undefined ? {} : { stdin });

test("validate rejects an object that is defined twice, within a file and across files", async () => {
  const folder = folderOf({ "a.yaml": `${role("one")}---\n${role("two")}`, "b.yml": role("one", "[c.d]") });
  const across = await validate([folder]);
  expect(across.code).toBe(1);
  expect(across.out).toEqual([
    `${folder}/b.yml:3: Role default/one: metadata.name: is already defined at ${folder}/a.yaml:1; remove or rename one of them`,
    "2 files, 1 problem",
  ]);
  const within = await validate(["-"], `${role("one")}---\n${role("one")}---\n${role("one")}`);
  expect(within.out.at(-1)).toBe("1 file, 2 problems");
  // The default namespace is `default`.
  const named = role("one").replace("name: one }", "name: one, namespace: default }");
  expect((await validate(["-"], `${role("one")}---\n${named}`)).code).toBe(1);
  const elsewhere = named.replace("default", "other").replace("spec: { name: one", "spec: { name: other");
  expect((await validate(["-"], `${role("one")}---\n${elsewhere}`)).code).toBe(0);
});

test.each(["", "# nothing\n", "---\n---\n"])(
  "validate rejects an input that contains no manifest: %j",
  async (text) => {
    const folder = folderOf({ "a.yaml": text });
    for (const [path, stdin] of [[folder], [join(folder, "a.yaml")], ["-", text]] as const) {
      const ran = await validate([path], stdin);
      expect(ran).toMatchObject({
        code: 1,
        out: [`${path}:1: manifest: file: contains no manifest`, "1 file, 1 problem"],
      });
    }
    // An empty file is valid beside a manifest.
    expect((await validate([folderOf({ "a.yaml": text, "b.yaml": role("one") })])).code).toBe(0);
  },
);

test("validate reads a folder of JSON files, as kubectl does", async () => {
  const json = (kind: string) =>
    JSON.stringify({
      apiVersion: "postern.dev/v1alpha1",
      kind,
      metadata: { name: "a" },
      spec: { name: "a", permissions: ["a.b"] },
    });
  expect((await validate([folderOf({ "a.json": json("Role") })])).out).toEqual(["1 file, 0 problems"]);
  const wrong = await validate([folderOf({ "a.yaml": role("b"), "b.json": json("Roll") })]);
  expect(wrong.code).toBe(1);
  expect(wrong.out[0]).toContain("b.json:1: Roll default/a: kind: expected one of");
});

test("validate of a folder without manifests, or of a missing path, is a usage error", async () => {
  const empty = await validate([folderOf({ "notes.txt": "", ".hidden.yaml": role("a") })]);
  expect(empty).toMatchObject({ code: 2, out: [] });
  expect(empty.notes.join()).toContain("has no .yaml, .yml or .json file");
  expect(await validate(["/nowhere"])).toMatchObject({ code: 2, out: [] });
});

test("validate checks standard input like a file", async () => {
  expect((await validate(["-"], role("one"))).out).toEqual(["1 file, 0 problems"]);
  const wrong = await validate(["-"], role("one").replace("permissions", "permission"));
  expect(wrong.code).toBe(1);
  expect(wrong.out[0]).toMatch(/^standard input:4: Role default\/one: spec\./);
  const typed = await runPostern(["validate", "-f", "-"], { typed: "" });
  expect(typed).toMatchObject({ code: 2, out: [] });
});

test("validate warns about a shadowed rule and unguarded methods, and the exit code stays 0", async () => {
  const policy = `apiVersion: postern.dev/v1alpha1
kind: ApiKeyPolicy
metadata: { name: orders }
spec:
  api: { name: orders }
  target: { port: http }
  rules:
    - { name: writes, match: { methods: [POST], path: { prefix: /orders } }, permissions: orders.write }
    - match: { methods: [POST], path: { template: "/orders/{order}" } }
`;
  const ran = await validate(["-"], policy);
  expect(ran).toMatchObject({
    code: 0,
    out: [
      expect.stringMatching(
        /^warning: standard input:8: ApiKeyPolicy default\/orders: spec\.rules\[0\]: .* GET, HEAD, PUT/,
      ),
      "warning: standard input:9: ApiKeyPolicy default/orders: spec.rules[1]: no request reaches this rule, because rules[0] (writes) matches all of its requests; move this rule up, or remove it",
      "1 file, 0 problems, 2 warnings",
    ],
  });
  const json = await runPostern(["validate", "-f", "-", "--json"], { stdin: policy });
  expect(json.code).toBe(0);
  expect(JSON.parse(json.out.join(""))).toMatchObject({
    problems: [],
    warnings: [
      { line: 8, location: "spec.rules[0]" },
      { line: 9, location: "spec.rules[1]" },
    ],
  });
});

const object = (kind: string, at: string, spec: object) => {
  const [namespace, name] = at.split("/");
  return `${JSON.stringify({ apiVersion: "postern.dev/v1alpha1", kind, metadata: { name, namespace }, spec })}\n`;
};
const join2 = (...documents: string[]) => documents.join("---\n");

test.each([
  {
    name: "two roles of one name",
    text: join2(object("Role", "shop/a", { name: "editor" }), object("Role", "lab/b", { name: "EDITOR" })),
    says: "standard input:3: Role lab/b: spec.name: is also that of Role shop/a at standard input:1; only one of them can be stored",
  },
  {
    name: "two policies that create one API",
    text: join2(
      object("ApiKeyPolicy", "shop/a", { api: { name: "orders" }, target: { port: 80 } }),
      object("ApiKeyPolicy", "shop/b", { api: { name: "orders" }, target: { port: 80 } }),
    ),
    says: "spec.api.name: is also that of ApiKeyPolicy shop/a at standard input:1",
  },
  {
    name: "a reference that is not allowed",
    text: join2(
      object("RatelimitNamespace", "platform/limits", { name: "public", allowedNamespaces: ["bank"] }),
      object("RatelimitOverride", "shop/acme", {
        namespaceRef: { name: "limits", namespace: "platform" },
        identifier: "acme",
        limit: 1,
        duration: "1m",
      }),
    ),
    says: "spec.namespaceRef.name: RatelimitNamespace platform/limits at standard input:1 does not allow the namespace shop",
  },
  {
    name: "a kind that Postern does not have",
    text: object("Rol", "shop/a", { name: "editor" }),
    says: 'kind: expected one of ApiKey, ApiKeyPolicy, RatelimitNamespace, RatelimitOverride, Role, got "Rol"',
  },
  {
    name: "a list without items",
    text: "apiVersion: v1\nkind: List\nitems: none\n",
    says: "standard input:3: manifest: items: expected a list of objects",
  },
  {
    name: "an item of a list in a list, with the line of its field",
    text: "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: List\n  items:\n  - apiVersion: postern.dev/v1alpha1\n    kind: Role\n    metadata: { name: constructor }\n    spec:\n      name: 7\n",
    says: "standard input:11: Role default/constructor: spec.name:",
  },
])("validate rejects $name", async ({ text, says }) => {
  const ran = await validate(["-"], text);
  expect(ran.code).toBe(1);
  expect(ran.out.join("\n")).toContain(says);
});

test("validate reads a List, CRLF and a byte order mark, and notes references to objects outside the set", async () => {
  const items = [1, 2].map((i) => JSON.parse(object("Role", `shop/r${i}`, { name: `r${i}` })));
  const list = JSON.stringify({ apiVersion: "v1", kind: "List", items });
  expect(await validate(["-"], list)).toMatchObject({ code: 0, out: ["1 file, 0 problems"] });
  expect(await validate(["-"], `\ufeff${role("one").replaceAll("\n", "\r\n")}`)).toMatchObject({ code: 0 });
  const override = { namespaceRef: { name: "limits" }, identifier: "acme", limit: 1, duration: "1m" };
  const ran = await validate(["-"], object("RatelimitOverride", "shop/acme", override));
  expect(ran.code).toBe(0);
  expect(ran.notes).toEqual([
    "standard input:1: RatelimitOverride shop/acme: spec.namespaceRef.name: RatelimitNamespace shop/limits is not among these manifests, so it must already be stored",
  ]);
});

test("validate skips objects of other API groups with a note, and --strict rejects them", async () => {
  const foreign = "apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: orders, namespace: shop }\n";
  const text = `${foreign}---\n${role("one")}`;
  const ran = await validate(["-"], text);
  expect(ran).toMatchObject({ code: 0, out: ["1 file, 0 problems"] });
  expect(ran.notes).toEqual([
    "standard input:1: Deployment shop/orders: apiVersion: apps/v1 is not a kind of Postern; the object is skipped",
  ]);
  expect((await runPostern(["validate", "-f", "-", "--strict"], { stdin: text })).code).toBe(1);
  // A misspelled group is foreign too, so a note must say what was skipped.
  const misspelled = role("two").replace("postern.dev/", "posterns.dev/");
  const only = await validate(["-"], misspelled);
  expect(only).toMatchObject({ code: 1, out: ["-:1: manifest: file: contains no manifest", "1 file, 1 problem"] });
  expect(only.notes.join()).toContain("posterns.dev/v1alpha1 is not a kind of Postern");
});
