import { createHash } from "node:crypto";
import pg from "pg";

/** Maximum length of a statement name in Postgres, in bytes. */
const NAME_BYTES_MAX = 63;
const HASH_DIGITS = 12;

/** Prepared names by SQL text. Their number is bounded, because the SQL texts of named statements are constants of the program. */
const prepared = new Map<string, { readonly name: string; readonly full: string }>();

/**
 * Returns the name under which a connection prepares a statement: the given name, for readers of `pg_prepared_statements`, and a hash of
 * the text. A connection rejects a second text under the same name. Without the hash, two statements with the same name would therefore
 * conflict whenever both ran on one pooled connection.
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

/** A connection that names its prepared statements by `preparedName`, like all connections of the api-server. */
export class NamedClient extends pg.Client {
  /** The type `never` is compatible with the parameters of every overload. */
  override query(...[config, ...rest]: never[]): never {
    return (super.query as Query).call(this, named(config), ...rest);
  }
}

/** Creates a connection outside of the pool, which the caller connects and closes. */
export const createNamedClient = (config: pg.ClientConfig): pg.Client => new NamedClient(config);

function named(config: unknown): unknown {
  if (typeof config !== "object" || config === null || "submit" in config) return config;
  const { name, text }: { name?: unknown; text?: unknown } = config;
  if (typeof name !== "string" || typeof text !== "string") return config;
  return { ...config, name: preparedName(name, text) };
}
