import { UsageError } from "./command.ts";

/* Options that several commands share, so that they are spelt and explained alike. */

export const databaseUrl = {
  type: "string",
  placeholder: "URL",
  help: "Postgres to use, postgres://user:password@host/database",
  env: "DATABASE_URL",
} as const;

export const redisUrl = {
  type: "string",
  placeholder: "URL",
  help: "Redis to use, redis:// or rediss://",
  env: "REDIS_URL",
} as const;

export const eventsRedisUrl = {
  type: "string",
  placeholder: "URL",
  help: "Redis for usage events alone; the same for api-servers and sidecars, that of --redis-url when left out",
  env: "EVENTS_REDIS_URL",
} as const;

/** Of the parts that share out the memory for events. */
export const eventsMemory = {
  type: "string",
  placeholder: "MIB",
  help: "what all events that are not stored yet may take in Redis, MiB; less where its maxmemory asks for it",
  default: "256",
  env: "POSTERN_EVENTS_MEMORY",
} as const;

const retentionDays = { type: "string", placeholder: "DAYS" } as const;

/** Of the parts that remove what has been kept for long enough. */
export const retention = {
  "audit-retention-days": {
    ...retentionDays,
    help: "days that the audit log is kept, 0 for ever",
    default: "90",
    env: "POSTERN_AUDIT_RETENTION_DAYS",
  },
  "deleted-retention-days": {
    ...retentionDays,
    help: "days that deleted keys, APIs, identities, namespaces, overrides and policies are kept in the database, 0 for ever",
    default: "30",
    env: "POSTERN_DELETED_RETENTION_DAYS",
  },
} as const;

export const redisPrefix = {
  type: "string",
  placeholder: "PREFIX",
  help: "what every Redis key begins with",
  env: "POSTERN_REDIS_PREFIX",
  default: "ps",
} as const;

export const dataDir = {
  type: "string",
  placeholder: "DIR",
  help: "where `postern dev` keeps its files",
  env: "POSTERN_DATA",
  default: ".postern",
} as const;

export const json = { type: "boolean", help: "print one JSON object on standard output" } as const;

export const listenHost = {
  type: "string",
  placeholder: "ADDRESS",
  help: "address to listen on",
  default: "0.0.0.0",
  env: "POSTERN_HOST",
} as const;

export const region = {
  type: "string",
  placeholder: "NAME",
  help: "recorded with each event",
  default: "",
  env: "POSTERN_REGION",
} as const;

export const docsUrl = {
  type: "string",
  placeholder: "URL",
  help: "where error types point",
  env: "POSTERN_DOCS_URL",
} as const;

/** Of the parts that serve nothing else there. */
export const adminPort = {
  type: "string",
  placeholder: "PORT",
  help: "port for probes and metrics",
  env: "POSTERN_ADMIN_PORT",
} as const;

/** Of the parts that store or read recoverable keys. The keys themselves are no option: everybody sees a command line. */
export const encryptionKeysFile = {
  type: "string",
  placeholder: "PATH",
  help: "file of the encryption keys for recoverable keys, `ID:BASE64` a line; the first encrypts, all decrypt",
  env: "POSTERN_ENCRYPTION_KEYS_FILE",
} as const;

/** Of lists. */
export const limit = { type: "string", placeholder: "N", help: "so many at most", default: "100" } as const;

/** Of the commands that work on the database: which one. */
export const database = { "database-url": databaseUrl, data: dataDir } as const;

/** And in which workspace. */
export const workspace = {
  type: "string",
  placeholder: "WORKSPACE",
  help: "id or name of the workspace; `default` when left out, which is made when missing",
} as const;

/** Of what is done to a workspace itself: nobody means the default one by saying nothing. */
export const namedWorkspace = {
  type: "string",
  placeholder: "WORKSPACE",
  help: "its id or name",
  required: true,
} as const;

/** The value, or a `UsageError` that says how to give it. */
export function required(value: string | undefined, how: string): string {
  if (value === undefined || value === "") throw new UsageError(how);
  return value;
}

/** `a, b,c` → `["a", "b", "c"]`; undefined and empty give none. */
export function splitList(text: string | undefined): string[] {
  return (text ?? "")
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}
