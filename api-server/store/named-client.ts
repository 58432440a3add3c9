import { createHash } from "node:crypto";
import pg from "pg";

/** What Postgres keeps of a statement's name. */
const NAME_BYTES_MAX = 63;
const HASH_DIGITS = 12;

/** By their text. Named texts are constants of the program, so there are as many as it has statements. */
const prepared = new Map<string, { readonly name: string; readonly full: string }>();

/**
 * The name under which a connection prepares a statement: the one it was given, which is for people who read
 * `pg_prepared_statements`, and a hash of its text. A connection refuses a second text under a name that it knows; two
 * statements that were given one name would work or fail by which of them a connection of the pool ran first.
 */
export function preparedName(name: string, text: string): string {
  const known = prepared.get(text);
  if (known?.name === name) return known.full;
  const hash = createHash("sha256").update(text).digest("hex").slice(0, HASH_DIGITS);
  const full = `${name.slice(0, NAME_BYTES_MAX - HASH_DIGITS - 1)}-${hash}`;
  prepared.set(text, { name, full });
  return full;
}

type Query = (config: unknown, ...rest: unknown[]) => never;

/** A connection whose prepared statements are named by `preparedName`, as all connections of the api-server are. */
export class NamedClient extends pg.Client {
  /** Typed as `never` in and out, which fits each of the overloads that it stands for. */
  override query(...[config, ...rest]: never[]): never {
    return (super.query as Query).call(this, named(config), ...rest);
  }
}

/** For whoever needs a connection outside the pool. The caller connects and ends it. */
export const createNamedClient = (config: pg.ClientConfig): pg.Client => new NamedClient(config);

function named(config: unknown): unknown {
  if (typeof config !== "object" || config === null || "submit" in config) return config;
  const { name, text }: { name?: unknown; text?: unknown } = config;
  if (typeof name !== "string" || typeof text !== "string") return config;
  return { ...config, name: preparedName(name, text) };
}
