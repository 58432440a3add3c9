import { readdirSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { describe, expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");
const PARTS = ["core", "edge", "api-server", "sidecar", "operator", "cli"];

/** The rows of the tables in docs/architecture.md: a part, or a folder of a part, and what it may import by the third column. */
const allowed = new Map(
  [...readFileSync(join(ROOT, "docs/architecture.md"), "utf8").matchAll(/^\| `([a-z/-]+)\/` \|.*\| (.*) \|$/gm)].map(
    ([, part = "", cell = ""]) => [part, cell],
  ),
);

function sources(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts") && !name.includes("node_modules"))
    .filter((name) => !/(^|\/)test\//.test(name))
    .map((name) => join(ROOT, folder, name));
}

function imports(file: string): string[] {
  const text = readFileSync(file, "utf8");
  const statements = text.matchAll(/^(?:import|export)\b(?:[^;"]*?\bfrom)?\s*"([^"]+)"/gm);
  const calls = text.matchAll(/\bimport\(\s*"([^"]+)"/g);
  return [...statements, ...calls].map(([, specifier = ""]) => specifier);
}

/** The part that a relative import leads to; undefined for a library. */
function partOf(file: string, specifier: string): string | undefined {
  if (!specifier.startsWith(".")) return undefined;
  return relative(ROOT, resolve(file, "..", specifier)).split("/")[0];
}

describe.each(PARTS)("%s/", (part) => {
  test("imports no part but those that docs/architecture.md allows", () => {
    const cell = allowed.get(part);
    if (cell === undefined) throw new Error(`docs/architecture.md has no row for ${part}/`);
    const mayImport = (other: string) =>
      other === part || cell.includes(`\`${other}/\``) || (cell.includes("the parts") && PARTS.includes(other));
    const wrong = sources(part).flatMap((file) =>
      imports(file)
        .map((specifier) => ({ specifier, to: partOf(file, specifier) }))
        .filter(({ to }) => to !== undefined && !mayImport(to))
        .map(({ specifier }) => `${relative(ROOT, file)} imports ${specifier}`),
    );
    expect(wrong).toEqual([]);
  });
});

const FOLDERS = [...allowed.keys()].filter((folder) => folder.includes("/"));

describe.each(FOLDERS)("%s/", (folder) => {
  test("imports of its own part only the folders that docs/architecture.md allows", () => {
    const part = folder.split("/")[0];
    const wrong = sources(folder).flatMap((file) =>
      imports(file)
        .filter((specifier) => specifier.startsWith("."))
        .map((specifier) => ({ specifier, to: relative(ROOT, resolve(file, "..", specifier)).split("/") }))
        .filter(({ to }) => to[0] === part && to.slice(0, 2).join("/") !== folder)
        .filter(({ to }) => !allowed.get(folder)?.includes(`\`${part}/${to[1]}/\``))
        .map(({ specifier }) => `${relative(ROOT, file)} imports ${specifier}`),
    );
    expect(wrong).toEqual([]);
  });
});

test("every folder of a part that has such rows has a row", () => {
  const parts = new Set(FOLDERS.map((folder) => folder.split("/")[0] ?? ""));
  const folders = [...parts].flatMap((part) =>
    readdirSync(join(ROOT, part), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => `${part}/${name}`),
  );
  expect(folders.sort()).toEqual(FOLDERS.toSorted());
});

/** Whether a specifier leads into a library past its entry, by a path that it does not export. */
function isInnerFile(specifier: string): boolean {
  const [, library = "", path] = /^((?:@[^/]+\/)?[^/]+)(?:\/(.+))?$/.exec(specifier) ?? [];
  if (path === undefined || /^(?:\.|node:)/.test(specifier)) return false;
  const { exports } = JSON.parse(readFileSync(join(ROOT, "node_modules", library, "package.json"), "utf8"));
  return exports === undefined;
}

test("no library is imported by an inner file, but for those that a decision names", () => {
  const decision = readFileSync(join(ROOT, "docs/decisions/0013-two-inner-files-of-undici.md"), "utf8");
  const inner = PARTS.flatMap((part) => sources(part)).flatMap((file) => imports(file).filter(isInnerFile));
  expect(inner.filter((specifier) => !decision.includes(`\`${specifier}\``))).toEqual([]);
});

test("core/ uses no library but those that compute, so that it stays pure", () => {
  const libraries = new Set(
    sources("core")
      .flatMap((file) => imports(file))
      .filter((specifier) => !specifier.startsWith(".")),
  );
  expect([...libraries].sort()).toEqual(["ipaddr.js", "node:crypto", "zod"]);
});

test("the environment is read only in cli/", () => {
  const readers = PARTS.filter((part) => part !== "cli")
    .flatMap((part) => sources(part))
    .filter((file) => readFileSync(file, "utf8").includes("process.env"))
    .map((file) => relative(ROOT, file));
  expect(readers).toEqual([]);
});

test("SQL stands in api-server/store/ alone", () => {
  const sql = /\b(select|insert into|update|delete from)\b[\s\S]{0,80}\b(from|values|set|where)\b/;
  const elsewhere = sources("api-server")
    .filter((file) => !relative(ROOT, file).startsWith("api-server/store/"))
    .filter((file) => [...readFileSync(file, "utf8").matchAll(/`([^`]*)`/g)].some(([, text = ""]) => sql.test(text)))
    .map((file) => relative(ROOT, file));
  expect(elsewhere).toEqual([]);
});
