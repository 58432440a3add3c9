import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { procedures } from "../../api-server/v2/index.ts";
import { ManagedKind } from "../../api-server/v2/managed/managed-kinds.ts";
import { ERROR_KINDS } from "../../core/errors.ts";
import { ID_PREFIXES } from "../../core/ids.ts";
import { ALL_GRANTS } from "../../core/permissions/root-key.ts";
import { Code } from "../../core/verification/codes.ts";
import { EVENTS } from "../../dashboard/pages/audit/search.ts";
import { codesIn, readReference } from "./reference.ts";

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

/** Constants that bound what callers send, and where the page states each bound. */
const BOUNDS = [
  { name: "BODY_BYTES_MAX", value: 10_485_760, section: "2", says: "body has at most 10 MiB" },
  { name: "UNJUDGED_BYTES_MAX", value: 262_144, section: "2", says: "more than 256 KiB or 2,500 values is large" },
  { name: "UNJUDGED_VALUES_MAX", value: 2_500, section: "2", says: "more than 256 KiB or 2,500 values is large" },
  { name: "VALUES_MAX", value: 250_000, section: "2", says: "up to 250,000 values" },
  { name: "LARGE_BODY_MS_MAX", value: 30_000, section: "2", says: "does not arrive within 30 s gets 408" },
  { name: "DEPTH_MAX", value: 500, section: "2", says: "more than 500 levels" },
  { name: "ENTRIES_MAX", value: 50, section: "4.1", says: "up to 50 entries" },
  { name: "NAME_ALL_BYTES_MAX", value: 16_384, section: "4.1", says: "a body over 16 KiB only the first" },
  { name: "CONNECTIONS_MAX", value: 1_000, section: "22", says: "connections to one api-server: 1,000" },
  { name: "HEAD_MS_MAX", value: 10_000, section: "22", says: "TLS handshake: 10 s" },
  { name: "READ_MS_MAX", value: 120_000, section: "22", says: "reads a response: 120 s" },
  { name: "SEARCH_MS_MAX", value: 5_000, section: "8", says: "for more than 5 s gets 408" },
  { name: "META_MEMBERS_MAX", value: 100, section: "6.1", says: "up to 100 members" },
  { name: "META_BYTES_MAX", value: 1_048_576, section: "6.1", says: "1 MiB of JSON" },
  { name: "META_VALUES_MAX", value: 10_000, section: "6.1", says: "10,000 values" },
  { name: "PAGE_BYTES_MAX", value: 4_194_304, section: "8", says: "end early at 4 MiB" },
  { name: "KEYS_PER_CALL_MAX", value: 5_000, section: "24.4", says: "5,000 per call" },
  { name: "COUNTED_KEYS_MAX", value: 10_000, section: "22", says: "`admin.listApis` counts: 10,000" },
  { name: "DIFFERENCES_MAX", value: 200, section: "24.1", says: "at most 200 differences" },
  { name: "KEYS_MAX", value: 100, section: "22", says: "keys of an ApiKey that are read: 100" },
  { name: "MATCHES_MAX", value: 50, section: "22", says: "`admin.explainOverride` shows: 50" },
  { name: "POD_IDS_MAX", value: 1_000, section: "22", says: "`admin.getPolicy` shows: 1,000" },
  { name: "UPSTREAM_PORTS_MAX", value: 10, section: "22", says: "`dataPlane.upstreamPorts`: 10" },
  { name: "PARTS_MAX", value: 100_000, section: "13.9", says: "up to 100,000 permissions" },
  { name: "QUEUED_KEYS_MAX", value: 100_000, section: "22", says: "queued keys of a workspace (v1): 100,000" },
  { name: "POLICY_BYTES_MAX", value: 262_144, section: "22", says: "compiled policy, as JSON: 262,144 bytes" },
  { name: "RETENTION_DAYS_MAX", value: 3_650, section: "22", says: "retention of usage: 3,650 days" },
  { name: "IP_ALLOW_LIST_MAX", value: 100, section: "14", says: "IP allow-list (up to 100 entries)" },
  { name: "MADE_UP_FOR_MAX", value: 31, section: "10.2", says: "Up to 31 missed dates" },
  { name: "NESTING_MAX", value: 1_000, section: "11.1", says: "up to 1,000 open parentheses" },
  { name: "FILLED_MAX", value: 10_000, section: "22", says: "with a time unit: 10,000" },
  { name: "COUNTED_MAX", value: 100_000, section: "22", says: "without one: 100,000" },
  { name: "LATENCY_STEPS_MAX", value: 1_000, section: "24.4", says: "more than 1,000 steps" },
  { name: "EVENTS_MAX", value: 50, section: "22", says: "in `admin.explainRequest`: 50" },
  { name: "RANGE_MS_MAX", value: 604_800_000, section: "24.4", says: "more than 7 days" },
  { name: "PODS_SHOWN_MAX", value: 1_000, section: "22", says: "`admin.getPolicy` shows: 1,000" },
  { name: "NAMED_MAX", value: 1_000, section: "22", says: "rule and code in `admin.getPolicy`: 1,000" },
  { name: "PART_MS_MAX", value: 2_000, section: "24.4", says: "without a response within 2 s" },
  {
    name: "OUTBOX_SHOWN_MAX",
    value: 100_000,
    section: "22",
    says: "outbox entries that `admin.getInstallation` counts: 100,000",
  },
  { name: "POLICIES_MAX", value: 1_000, section: "22", says: "policies and workspaces: 1,000" },
  { name: "WORKSPACES_MAX", value: 1_000, section: "22", says: "policies and workspaces: 1,000" },
  { name: "NAMED_WORKSPACE_LENGTH_MAX", value: 255, section: "22", says: "`Postern-Workspace`: 255 characters" },
];

test("api-v2.md lists the verification codes", () => {
  const [line = ""] = /^The codes: .*$/m.exec(reference.section("12")) ?? [];
  expect(sorted(codesIn(line))).toEqual(sorted(Code.options));
});

test("each verification step in api-v2.md ends with existing codes", () => {
  const steps = [...reference.section("12").matchAll(/^\d+\. .*: (.*)$/gm)].flatMap(([, endsWith = ""]) =>
    codesIn(endsWith),
  );
  expect(sorted(new Set(steps))).toEqual(sorted(Code.options));
});

describe("the error kinds", () => {
  const errors = readFileSync(join(ROOT, "docs/reference/errors.md"), "utf8");
  /** Returns status and kind of each entry in a section of errors.md. */
  const kindsOf = (title: string): Array<{ status: string; kind: string }> => {
    const [, section = ""] = new RegExp(`^## ${title}\\n(.*?)(?=^## |$(?![^]))`, "ms").exec(errors) ?? [];
    return [...section.matchAll(/^- `(\w+)` \((\d+)\): ./gm)].map(([, kind = "", status = ""]) => ({ status, kind }));
  };
  const lists = { api: kindsOf("API"), gate: kindsOf("Gate") };
  /** Kinds that the sources of a part name. */
  const namedIn = (part: string): string[] => {
    const texts = sourcesOf(part).map(({ text }) => text);
    return Object.keys(ERROR_KINDS).filter((kind) => texts.some((text) => text.includes(`"${kind}"`)));
  };

  test("errors.md error kinds have the correct status", () => {
    const rows = [...lists.api, ...lists.gate].map(({ status, kind }) => `${status} ${kind}`);
    const known = Object.entries(ERROR_KINDS).map(([kind, { status }]) => `${status} ${kind}`);
    expect(sorted(rows)).toEqual(sorted(known));
  });

  test("errors.md lists exactly the error kinds of the API", () => {
    expect(sorted(lists.api.map(({ kind }) => kind))).toEqual(sorted(namedIn("api-server")));
  });

  test("errors.md lists exactly the error kinds of a gate", () => {
    const [, shared = ""] = /A gate shares (.*?) with the API/.exec(errors) ?? [];
    const own = lists.gate.map(({ kind }) => kind);
    expect(sorted([...own, ...codesIn(shared)])).toEqual(sorted(namedIn("sidecar")));
  });
});

test("api-v2.md lists the id prefixes", () => {
  const [line = ""] = /^Prefixes: .*$/m.exec(reference.section("5.1")) ?? [];
  expect(sorted(codesIn(line))).toEqual(sorted(Object.values(ID_PREFIXES)));
});

test("api-v2.md lists exactly the root key permissions of the code", () => {
  const listed = reference
    .rows("7.1", "type")
    .flatMap(([type, ...actions]) => actions.flatMap(codesIn).map((action) => `${only(type)}.*.${action}`));
  expect(sorted(listed)).toEqual(sorted(ALL_GRANTS));
});

test("api-v2.md separately lists the permissions that can also name an id", () => {
  const listed = reference
    .rows("7.1", "type")
    .flatMap(([type, withId = ""]) => codesIn(withId).map((action) => `${only(type)}.*.${action}`));
  const declared = procedures.flatMap(({ permissions }) =>
    Object.values(permissions).flatMap(({ tuple, orFor }) => (orFor === undefined ? [] : [tuple])),
  );
  expect(sorted(listed)).toEqual(sorted(new Set<string>(declared)));
});

test("api-v2.md lists the procedures that are additions to Unkey's API", () => {
  const additions = procedures.filter(({ addition }) => addition).map(({ path }) => path);
  const entries = ["24.2", "24.4"].flatMap((section) => [
    ...reference.section(section).matchAll(/^- (`[a-z]+\.[^:]*): /gm),
  ]);
  expect(sorted(entries.flatMap(([, paths = ""]) => codesIn(paths)))).toEqual(sorted(additions));
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
  /** A procedure, and fields of a manifest. */
  const NO_EVENTS = new Set(["ratelimit.limit", "api.id", "api.name"]);
  const NOUNS =
    "api|key|identity|ratelimit|ratelimitNamespace|permission|role|authorization|policy|workspace|rootKey|migration|session|signInLink";
  const plain = findAll(new RegExp(`(?<=")(?:${NOUNS})\\.[a-z_]+(?=")`, "g"));
  const templates = findAll(new RegExp(`(?<=event: \`)(?:${NOUNS})\\.[a-z_]*\\$\\{[^\`]+(?=\`)`, "g"));

  test("api-v2.md and the filter of the audit page list exactly the audit events of the code", () => {
    expect(sorted(new Set(templates))).toEqual(sorted(Object.keys(PUT_TOGETHER)));
    const written = new Set([...plain, ...Object.values(PUT_TOGETHER).flat()].filter((name) => !NO_EVENTS.has(name)));
    const [events = ""] = /^Events, by meaning:\n.*(?=^Target types:)/ms.exec(reference.section("20")) ?? [];
    expect(sorted(codesIn(events))).toEqual(sorted(written));
    expect(sorted(EVENTS)).toEqual(sorted(written));
  });
});

describe("bounds outside the schemas", () => {
  const constants = sources.flatMap(({ path, text }) =>
    [...text.matchAll(/^(?:export )?const ([A-Z][A-Z_]+) = ([\d_]+);/gm)].map(([, name = "", value = ""]) => ({
      path,
      name,
      value: Number(value.replaceAll("_", "")),
    })),
  );

  test.each(BOUNDS)(
    "api-v2.md section $section documents the bound $name ($value)",
    ({ name, value, section, says }) => {
      // Another file may have a constant of the same name.
      expect(constants.filter((one) => one.name === name).map((one) => one.value)).toContain(value);
      expect(reference.section(section).replace(/\s+/g, " ")).toContain(says);
    },
  );

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
    expect(sorted(new Set(met)).filter((name) => !BOUNDS.some((bound) => bound.name === name))).toEqual([]);
  });
});
