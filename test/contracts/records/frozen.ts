import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import * as z from "zod";
import { PolicyRecord, StoredPolicy } from "../../../core/policies/stored-policy.ts";
import { RECORD_FORMAT_VERSION } from "../../../core/records.ts";
import { RECORD_SCHEMAS } from "../../../edge/projection/record-schemas.ts";

/*
 * Record files of each version and the schemas of its readers: `<release>/<kind>.json` contains records as projected by that version,
 * `<release>/<kind>.schema.json` the JSON schema that its readers accept. `policy` has policies of format 1 and its readers, which reject
 * those of format 2 in `policy2`.
 */

/** Every projected kind and the kinds that only api-servers follow. Root keys have no record. */
export const FROZEN_KINDS = [
  ...["workspace", "api", "namespace", "namespaceName", "role", "identity"],
  ...["overridePatterns", "override", "key", "policy", "policy2"],
] as const;
export type FrozenKind = RecordKind | "policy2";
type RecordKind = keyof Omit<typeof RECORD_SCHEMAS, "rootKey">;
export const recordKindOf = (kind: FrozenKind): RecordKind => (kind === "policy2" ? "policy" : kind);

const HERE = import.meta.dirname;
const { version } = JSON.parse(readFileSync(resolve(HERE, "../../../package.json"), "utf8")) as { version: string };
export const THIS_RELEASE = version;

/** Returns the versions with record files, including the current one once it is frozen. */
export const frozenReleases = (): string[] =>
  readdirSync(HERE, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort();

/** Returns the kinds of which a version has records. */
export const frozenKinds = (release: string): FrozenKind[] =>
  FROZEN_KINDS.filter((kind) => existsSync(join(HERE, release, `${kind}.json`))) as FrozenKind[];

export const isFrozen = (release: string): boolean => frozenKinds(release).length === FROZEN_KINDS.length;

const read = (release: string, file: string): unknown => JSON.parse(readFileSync(join(HERE, release, file), "utf8"));

export const readFrozenRecords = (release: string, kind: FrozenKind): object[] =>
  read(release, `${kind}.json`) as object[];
export const readFrozenSchema = (release: string, kind: FrozenKind): object =>
  read(release, `${kind}.schema.json`) as object;

/** Writes the files of the current version that do not exist yet. Existing files never change. Throws if all exist. */
export function freeze(records: Readonly<Record<FrozenKind, readonly unknown[]>>): void {
  const folder = join(HERE, THIS_RELEASE);
  if (isFrozen(THIS_RELEASE)) {
    throw new Error(`${THIS_RELEASE} is frozen already: raise the version in package.json, or remove its folder first`);
  }
  mkdirSync(folder, { recursive: true });
  for (const [kind, ofKind] of Object.entries(records)) {
    if (existsSync(join(folder, `${kind}.json`))) continue;
    writeFileSync(join(folder, `${kind}.json`), toText(ofKind));
    writeFileSync(join(folder, `${kind}.schema.json`), toText(schemaOf(recordKindOf(kind as FrozenKind))));
  }
}

const toText = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

/** Returns the schema that readers of this version accept, including the format version. */
function schemaOf(kind: RecordKind): object {
  const schema = kind === "policy" ? PolicyRecord.extend({ policy: StoredPolicy }) : RECORD_SCHEMAS[kind];
  const { properties, ...json } = z.toJSONSchema(schema, { io: "input", target: "draft-7" });
  const formatVersion = { type: "integer", minimum: 1, maximum: RECORD_FORMAT_VERSION };
  return { ...json, properties: { ...properties, formatVersion } };
}
