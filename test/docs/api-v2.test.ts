import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { EXPECTED } from "../../api-server/test/permissions-expected.ts";
import { procedures } from "../../api-server/v2/index.ts";
import { ManagedKind } from "../../api-server/v2/managed/managed-kinds.ts";
import { ERROR_KINDS } from "../../core/errors.ts";
import { ID_PREFIXES } from "../../core/ids.ts";
import { ALL_GRANTS } from "../../core/permissions/root-key.ts";
import { Code } from "../../core/verification/codes.ts";
import { codesIn, readReference, readTable } from "./reference.ts";

/* The lists of docs/reference/api-v2.md hold what the code holds: nothing less, and nothing more. */

const ROOT = resolve(import.meta.dirname, "../..");
const reference = readReference("api-v2.md");

const sourcesOf = (part: string) =>
  readdirSync(join(ROOT, part), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && !/\.test\.ts$|(^|\/)test\//.test(name))
    .map((name) => ({ path: `${part}/${name}`, text: readFileSync(join(ROOT, part, name), "utf8") }));
const sources = ["api-server", "core"].flatMap(sourcesOf);
/** Every match in every source. */
const findAll = (pattern: RegExp): string[] => sources.flatMap(({ text }) => text.match(pattern) ?? []);

const sorted = (lines: Iterable<string>): string[] => [...lines].sort();
const only = (cell: string | undefined): string => codesIn(cell ?? "")[0] ?? "";

test("api-v2.md lists the verification codes", () => {
  const [line = ""] = /^The codes: .*$/m.exec(reference.section("12")) ?? [];
  expect(sorted(codesIn(line))).toEqual(sorted(Code.options));
});

test("api-v2.md verification steps end with existing codes", () => {
  const steps = reference.rows("12", "step").flatMap(([, , endsWith = ""]) => codesIn(endsWith));
  expect(sorted(new Set(steps))).toEqual(sorted(Code.options));
});

describe("the error kinds", () => {
  const tables = {
    api: readTable("errors.md", "status", "kind"),
    gate: readTable("errors.md", "status", "kind of a gate"),
  };
  /** Kinds that the sources of a part name. */
  const namedIn = (part: string): string[] => {
    const texts = sourcesOf(part).map(({ text }) => text);
    return Object.keys(ERROR_KINDS).filter((kind) => texts.some((text) => text.includes(`"${kind}"`)));
  };

  test("errors.md error kinds have the correct status", () => {
    const rows = [...tables.api, ...tables.gate].map(([status, kind]) => `${status} ${only(kind)}`);
    const known = Object.entries(ERROR_KINDS).map(([kind, { status }]) => `${status} ${kind}`);
    expect(sorted(rows)).toEqual(sorted(known));
  });

  test("errors.md lists exactly the error kinds of the API", () => {
    expect(sorted(tables.api.map(([, kind]) => only(kind)))).toEqual(sorted(namedIn("api-server")));
  });

  test("errors.md lists exactly the error kinds of a gate", () => {
    const [, shared = ""] =
      /A gate shares (.*?) with the API/.exec(readFileSync(join(ROOT, "docs/reference/errors.md"), "utf8")) ?? [];
    const own = tables.gate.map(([, kind]) => only(kind));
    expect(sorted([...own, ...codesIn(shared)])).toEqual(sorted(namedIn("sidecar")));
  });
});

test("api-v2.md lists the id prefixes", () => {
  const [line = ""] = /^Prefixes: .*$/m.exec(reference.section("5.1")) ?? [];
  expect(sorted(codesIn(line))).toEqual(sorted(Object.values(ID_PREFIXES)));
});

describe("the permissions of root keys", () => {
  const rows = reference.rows("7.1", "tuple");

  test("api-v2.md lists exactly the root key permissions of the code", () => {
    expect(sorted(new Set(rows.map(([tuple]) => only(tuple))))).toEqual(sorted(ALL_GRANTS));
  });

  test("api-v2.md permissions are required by the listed procedures", () => {
    const listed = rows.flatMap(([tuple, id, by = ""]) => codesIn(by).map((path) => `${path} ${only(tuple)} ${id}`));
    const declared = procedures.flatMap(({ path, permissions }) =>
      Object.values(permissions).map(({ tuple, orFor = "–" }) => `${path} ${tuple} ${orFor}`),
    );
    expect(sorted(listed)).toEqual(sorted(new Set(declared)));
  });
});

test("api-v2.md lists procedures that look up objects before checking permissions", () => {
  const listed = reference
    .rows("7.2", "lookup")
    .flatMap(([fields = "", paths = ""]) => codesIn(paths).map((path) => `${path} ${codesIn(fields)}`));
  const expected = Object.entries(EXPECTED).flatMap(([path, { lookedUpFirst }]) =>
    lookedUpFirst === undefined ? [] : [`${path} ${lookedUpFirst}`],
  );
  expect(sorted(listed)).toEqual(sorted(expected));
});

test("api-v2.md lists the procedures that are additions", () => {
  const additions = procedures.filter(({ addition }) => addition).map(({ path }) => path);
  const rows = ["24.2", "24.4"].flatMap((section) => reference.rows(section, "procedure"));
  expect(sorted(rows.flatMap(([paths = ""]) => codesIn(paths)))).toEqual(sorted(additions));
});

test("api-v2.md lists the kinds of managed objects", () => {
  const [line = ""] = /^The kinds of managed objects: .*$/m.exec(reference.section("24.1")) ?? [];
  expect(sorted(codesIn(line))).toEqual(sorted(ManagedKind.options));
});

test("api-v2.md names exactly the existing procedures", () => {
  const paths = procedures.map(({ path }) => path as string);
  const services = new Set(paths.map((path) => path.split(".")[0]));
  const named = reference.sections
    // Names of audit events look alike.
    .filter((number) => number !== "20")
    .flatMap((number) => codesIn(reference.section(number)))
    .filter((code) => /^[a-z]+\.[a-zA-Z]+$/.test(code) && services.has(code.split(".")[0]));
  expect(sorted(new Set(named))).toEqual(sorted(paths));
});

describe("the audit log", () => {
  /** Names that are put together in the code: which they are. */
  const PUT_TOGETHER: Readonly<Record<string, readonly string[]>> = {
    "authorization.connect_${part.type}_and_key": ["permission", "role"].map(
      (type) => `authorization.connect_${type}_and_key`,
    ),
    "authorization.disconnect_${part.type}_and_key": ["permission", "role"].map(
      (type) => `authorization.disconnect_${type}_and_key`,
    ),
    "workspace.${verb}": ["workspace.create", "workspace.update"],
    "rootKey.${verb}": ["rootKey.create", "rootKey.update", "rootKey.delete"],
  };
  const NOUNS =
    "api|key|identity|ratelimit|ratelimitNamespace|permission|role|authorization|policy|workspace|rootKey|migration|session|signInLink";
  const plain = findAll(new RegExp(`(?<=")(?:${NOUNS})\\.[a-z_]+(?=")`, "g"));
  const templates = findAll(new RegExp(`(?<=event: \`)(?:${NOUNS})\\.[a-z_]*\\$\\{[^\`]+(?=\`)`, "g"));

  test("api-v2.md lists exactly the audit events of the code", () => {
    expect(sorted(new Set(templates))).toEqual(sorted(Object.keys(PUT_TOGETHER)));
    // `ratelimit.limit` is a procedure.
    const written = new Set(
      [...plain, ...Object.values(PUT_TOGETHER).flat()].filter((name) => name !== "ratelimit.limit"),
    );
    expect(sorted(reference.rows("20", "event").flatMap(([events = ""]) => codesIn(events)))).toEqual(sorted(written));
  });
});

describe("bounds outside the schemas", () => {
  const rows = reference.rows("22", "bound").map(([name, value = ""]) => ({
    name: only(name),
    value: Number(value.replaceAll(",", "").split(" ")[0]),
  }));
  const constants = sources.flatMap(({ path, text }) =>
    [...text.matchAll(/^(?:export )?const ([A-Z][A-Z_]+) = ([\d_]+);/gm)].map(([, name = "", value = ""]) => ({
      path,
      name,
      value: Number(value.replaceAll("_", "")),
    })),
  );

  test.each(rows)("api-v2.md bound $name is $value", ({ name, value }) => {
    // Another file may have a constant of the same name.
    expect(constants.filter((one) => one.name === name).map((one) => one.value)).toContain(value);
  });

  const WHERE_CALLERS_MEET_THEM = /^(?:api-server\/(?:plugins|v2|domain)|core\/(?:credits|keys|permissions))\//;
  /** Sizes of caches, retries and measurements, the discarded part of a rejected body, and lengths for the command line. */
  const INTERNAL =
    /^(?:ABSENCES_MAX|ATTEMPTS_MAX|DETAIL_CHARACTERS_MAX|DISCARDED_\w+|MEASURED_MAX|RETRIES_MAX|(?:MIGRATION|PERSON|ROOT_KEY)(?:_NAME)?_LENGTH_M(?:AX|IN))$/;

  test("api-v2.md lists every bound that a caller can exceed", () => {
    const schemas = sources.filter(({ path }) => path.startsWith("api-server/v2/")).map(({ text }) => text);
    const saidBySchema = new Set(
      schemas.flatMap((text) => [...text.matchAll(/\.(?:max|min)\(([A-Z][A-Z_]+)\)/g)].map(([, name]) => name)),
    );
    const met = constants
      .filter(({ path, name }) => WHERE_CALLERS_MEET_THEM.test(path) && /_M(?:AX|IN)$/.test(name))
      .map(({ name }) => name)
      .filter((name) => !INTERNAL.test(name) && !saidBySchema.has(name));
    expect(met.length).toBeGreaterThan(10);
    expect(sorted(new Set(met)).filter((name) => !rows.some((row) => row.name === name))).toEqual([]);
  });
});
