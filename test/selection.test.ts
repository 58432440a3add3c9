import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { type Import, importsBelow, readImports } from "./imports.ts";
import { mergeDurations } from "./record-durations.ts";
import { type Project, SMOKE, selectFrom, selectTests, TIMED } from "./selection.ts";

const filesOf = (sources: Record<string, string>): Map<string, Import[]> =>
  new Map(Object.entries(sources).map(([path, text]) => [path, readImports(text)]));

describe("a test file is pure", () => {
  test.each([
    { name: "when it imports nothing", sources: { "core/a.test.ts": "" } },
    {
      name: "when what it imports only computes, also with circular imports",
      sources: {
        "core/a.test.ts": 'import { a } from "./a.ts";\nimport { test } from "vitest";',
        "core/a.ts": 'import { b } from "./b.ts";\nimport * as z from "zod";',
        "core/b.ts": 'export { a } from "./a.ts";',
      },
    },
    {
      name: "when it imports only the type of something real",
      sources: { "core/a.test.ts": 'import type { Redis } from "ioredis";\nexport type { Pool } from "pg";' },
    },
  ])("test file is selected as pure: $name", ({ sources }) =>
    expect(selectFrom(filesOf(sources)).pure).toEqual(["core/a.test.ts"]),
  );

  test.each([
    { name: "the harness", sources: { "core/a.test.ts": 'import { waitFor } from "../test/harness/wait.ts";' } },
    {
      name: "a library that connects",
      sources: { "core/a.test.ts": 'import {\n  type Redis,\n  Cluster,\n} from "ioredis";' },
    },
    { name: "a built-in that listens", sources: { "core/a.test.ts": 'import "node:http";' } },
    { name: "a library that is not known", sources: { "core/a.test.ts": 'import { x } from "some-client";' } },
    { name: "Postgres, later", sources: { "core/a.test.ts": `const { Pool } = await import(${'"pg"'});` } },
    {
      name: "Postgres, by way of others",
      sources: {
        "core/z.ts": 'export * from "pg";',
        "core/a.test.ts": 'import { m } from "./m.ts";',
        "core/m.ts": 'import { z } from "./z.ts";\nimport { a } from "./b.ts";',
        "core/b.ts": 'import { m } from "./m.ts";',
      },
    },
  ])("test file that imports $name is not pure", ({ sources }) =>
    expect(selectFrom(filesOf(sources)).pure).toEqual([]),
  );
});

test("new pure test file is found without a list", () => {
  const sources = { "edge/z.test.ts": "", "edge/helper.ts": "", "core/a.test.ts": "" };
  expect(selectFrom(filesOf(sources)).pure).toEqual(["core/a.test.ts", "edge/z.test.ts"]);
});

test("every test in core/ is pure", () => {
  const files = importsBelow(["core", "test/builders"]);
  // The headers of an identity must pass Node's own check of header values.
  const real = ["core/policies/identity-headers.test.ts"];
  const tests = [...files.keys()].filter((path) => path.endsWith(".test.ts") && !real.includes(path));
  expect(tests.length).toBeGreaterThan(20);
  expect(selectFrom(files).pure).toEqual(tests.sort());
});

test.each<{ name: string; path: string; imported: string; project: Project }>([
  { name: "api-server", path: "api-server/a.test.ts", imported: "../test/harness/postgres.ts", project: "api-server" },
  { name: "components", path: "edge/a.test.ts", imported: "../test/harness/redis.ts", project: "components" },
  { name: "kubernetes", path: "cli/a.test.ts", imported: "../test/harness/kubernetes.ts", project: "kubernetes" },
  { name: "dashboard", path: "test/dashboard/a.test.ts", imported: "../harness/chromium.ts", project: "dashboard" },
  { name: "system, for a browser", path: "cli/a.test.ts", imported: "../test/harness/chromium.ts", project: "system" },
  { name: "system, by its folder", path: "test/e2e/a.test.ts", imported: "../harness/redis.ts", project: "system" },
])("test file belongs to the project $name", ({ path, imported, project }) => {
  const projects = selectFrom(filesOf({ [path]: `import "${imported}";` }));
  expect(Object.entries(projects).filter(([, paths]) => paths.length > 0)).toEqual([[project, [path]]]);
});

test("each test file of the checkout outside of test/cluster belongs to exactly one project", () => {
  const selected = Object.values(selectTests()).flat();
  const known = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "*.test.ts"], {
    encoding: "utf8",
  });
  const expected = known.split("\n").filter((path) => path !== "" && !path.startsWith("test/cluster/"));
  expect(selected.toSorted()).toEqual(expected.filter((path) => existsSync(path)).toSorted());
});

test("every file named in a list of the selection exists", () => {
  expect([...TIMED, ...SMOKE].filter((path) => !existsSync(path))).toEqual([]);
});

test("recording the durations of some test files keeps those of the other files", () => {
  const recorded = { "a.test.ts": 10, "b.test.ts": 20, "c.test.ts": 30, "deleted.test.ts": 40 };
  const ran = { "b.test.ts": 25, "c.test.ts": 1, "d.test.ts": 5 };
  const merged = mergeDurations(recorded, ran, (path) => path !== "deleted.test.ts");
  expect(merged).toEqual({ "a.test.ts": 10, "b.test.ts": 25, "d.test.ts": 5 });
});
