import { duration, FILE, FOLDER, HTTP_URL, PORT, SWITCH, text, url, whole } from "./accepts.ts";
import { type Accepts, type Command, UsageError } from "./command.ts";
import { MIB_BOUNDS, parseDashboardUrl, parseRetentionDays, RETENTION_BOUNDS } from "./values.ts";

/* Options that several commands share, so that their names and help texts are the same. */

const ORIGIN: Accepts = {
  ...text("URL", "without a path; https, except on this machine"),
  check: (option, origin) => void parseDashboardUrl(option, origin),
};
const MIB = whole({ ...MIB_BOUNDS, unit: "MiB" });
const RETENTION: Accepts = {
  ...duration(RETENTION_BOUNDS),
  says: "0d to 36500d",
  unit: "whole days, such as `90d`",
  check: (option, text) => void parseRetentionDays(option, text),
};
export const WAIT_BOUNDS = { minMs: 0, maxMs: 86_400_000 };

export const databaseUrl = {
  type: "string",
  placeholder: "URL",
  help: "Postgres to use, postgres://user:password@host/database",
  env: "DATABASE_URL",
  accepts: url("postgres", "postgresql"),
} as const;

/** For what counts usage. */
export const analyticsReader = {
  "analytics-url": {
    type: "string",
    placeholder: "URL",
    help: "ClickHouse for usage events, http(s)://user:password@host:8123/database; they are kept in Postgres when left out",
    env: "ANALYTICS_URL",
    accepts: HTTP_URL,
  },
  "analytics-reader-url": {
    type: "string",
    placeholder: "URL",
    help: "the same for the queries of callers: a user that can only read; that of --analytics-url when left out",
    env: "ANALYTICS_READER_URL",
    accepts: HTTP_URL,
  },
} as const;

/** For the parts that store it, too. */
export const analyticsStore = {
  ...analyticsReader,
  "analytics-cluster": {
    type: "string",
    placeholder: "NAME",
    help: "cluster of ClickHouse whose servers all get the tables, with Replicated engines",
    env: "ANALYTICS_CLUSTER",
    accepts: text("name"),
  },
} as const;

export const redisUrl = {
  type: "string",
  placeholder: "URL",
  help: "Redis to use, redis:// or rediss://; with ?cluster=true a node of a cluster, with ?sentinel=NAME a sentinel of that master (others: &sentinels=HOST:PORT,HOST:PORT)",
  env: "REDIS_URL",
  accepts: url("redis", "rediss"),
} as const;

export const eventsRedisUrl = {
  type: "string",
  placeholder: "URL",
  help: "separate Redis for usage events, the same for api-servers and sidecars; that of --redis-url when left out",
  env: "EVENTS_REDIS_URL",
  accepts: url("redis", "rediss"),
} as const;

/** For the parts that share out the memory for events. */
export const eventsMemory = {
  type: "string",
  placeholder: "MIB",
  help: "memory in Redis for events that are not stored yet, MiB; less if its maxmemory is small",
  default: "256",
  env: "POSTERN_EVENTS_MEMORY",
  accepts: MIB,
} as const;

const retentionDuration = { type: "string", placeholder: "DURATION" } as const;

/** For the parts that delete old data. */
export const retention = {
  "audit-retention": {
    ...retentionDuration,
    help: "days that the audit log is kept, 0 for ever",
    default: "90d",
    env: "POSTERN_AUDIT_RETENTION",
    accepts: RETENTION,
  },
  "deleted-retention": {
    ...retentionDuration,
    help: "days that deleted keys, APIs, identities, namespaces, overrides and policies are kept in the database, 0 for ever",
    default: "30d",
    env: "POSTERN_DELETED_RETENTION",
    accepts: RETENTION,
  },
} as const;

/** For the parts that serve the API: its first generation. */
export const v1 = {
  "api-v1": {
    type: "string",
    placeholder: "on|off",
    help: "whether v1 of the API is served; off answers its calls with 410",
    default: "on",
    env: "POSTERN_API_V1",
    accepts: SWITCH,
  },
  "api-v1-sunset": {
    type: "string",
    placeholder: "DATE",
    help: "until when v1 is served, such as 2026-12-31: each answer of v1 says so; nothing happens then by itself",
    env: "POSTERN_API_V1_SUNSET",
    accepts: text("date", "in the future"),
  },
  "api-v1-successor": {
    type: "string",
    placeholder: "URL",
    help: "where clients of v1 reach v2, for the links to its procedures; the address of v1 when left out",
    env: "POSTERN_API_V1_SUCCESSOR",
    accepts: HTTP_URL,
  },
} as const;

export const redisPrefix = {
  type: "string",
  placeholder: "PREFIX",
  help: "the first part of every Redis key",
  env: "POSTERN_REDIS_PREFIX",
  accepts: text("text"),
  default: "ps",
} as const;

export const dataDir = {
  type: "string",
  placeholder: "DIR",
  help: "where `postern dev` keeps its files",
  env: "POSTERN_DATA_DIR",
  accepts: FOLDER,
  default: ".postern",
} as const;

/** For commands that read manifests: `-f a -f b`. */
export const manifestPaths = {
  type: "string",
  short: "f",
  placeholder: "PATH",
  help: "a file of manifests, a folder, or - for standard input",
  required: true,
  repeats: true,
} as const;

export const json = { type: "boolean", help: "print one JSON object on standard output" } as const;

export const listenHost = {
  type: "string",
  placeholder: "ADDRESS",
  help: "address to listen on",
  default: "0.0.0.0",
  env: "POSTERN_HOST",
  accepts: text("address"),
} as const;

export const region = {
  type: "string",
  placeholder: "NAME",
  help: "recorded with each event",
  default: "",
  env: "POSTERN_REGION",
  accepts: text("name"),
} as const;

export const docsUrl = {
  type: "string",
  placeholder: "URL",
  help: "URL before `/errors/KIND` in the type of an error",
  default: "https://postern.dev",
  env: "POSTERN_DOCS_URL",
  accepts: HTTP_URL,
} as const;

/** A URL to which a path is appended. */
export const withoutSlash = (url: string): string => url.replace(/\/+$/, "");

/** For the parts whose only HTTP server it is. */
export const adminPort = {
  type: "string",
  placeholder: "PORT",
  help: "port for probes and metrics",
  env: "POSTERN_ADMIN_PORT",
  accepts: PORT,
} as const;

/** For the parts that store or read recoverable keys. The keys themselves are not an option, because a command line is visible to all. */
export const encryptionKeysFile = {
  type: "string",
  placeholder: "PATH",
  help: "file of the encryption keys for recoverable keys, `ID:BASE64` a line; the first encrypts, all decrypt",
  env: "POSTERN_ENCRYPTION_KEYS_FILE",
  accepts: FILE,
} as const;

/** For the parts that send browsers to the dashboard. */
export const dashboardUrl = {
  type: "string",
  placeholder: "URL",
  help: "where browsers reach the dashboard: https://postern.example.com",
  env: "POSTERN_DASHBOARD_URL",
  accepts: ORIGIN,
} as const;

/** For what has permissions. */
export const permissions = {
  type: "string",
  alias: "permission",
  placeholder: "LIST",
  help: "the permissions that it has",
  repeats: true,
  separates: true,
} as const;

/** For lists. */
export const limit = { type: "string", placeholder: "N", help: "the most to show", default: "100" } as const;

/** For lists that the API gives page by page. */
export const paging = {
  limit: { type: "string", placeholder: "N", help: "the most to show; 100 when left out" },
  all: { type: "boolean", help: "show all, however many there are" },
  cursor: { type: "string", placeholder: "CURSOR", help: "where to go on, as the part of the list before says" },
} as const;

/** For what runs while an installation starts. */
export const wait = {
  type: "string",
  placeholder: "DURATION",
  help: "how long to try again while the database does not answer",
  default: "0s",
  env: "POSTERN_WAIT",
  accepts: duration(WAIT_BOUNDS),
} as const;

/** For the commands that work on the database. */
export const database = {
  "database-url": databaseUrl,
  "database-url-file": {
    type: "string",
    placeholder: "PATH",
    help: "file with what --database-url is",
    env: "DATABASE_URL_FILE",
    accepts: FILE,
  },
  "data-dir": dataDir,
} as const;

/**
 * For the commands that call the API: which server, and with which root key. A profile is both. The root key itself is not an option,
 * because a command line is visible to all.
 */
export const connection = {
  profile: {
    type: "string",
    placeholder: "NAME",
    help: "profile to use, with its server and root key; that of `postern profile use` when left out",
    env: "POSTERN_PROFILE",
  },
  "api-url": {
    type: "string",
    placeholder: "URL",
    help: "the api-server, instead of a profile",
    env: "POSTERN_API_URL",
  },
  "root-key-file": {
    type: "string",
    placeholder: "PATH",
    help: "file with what POSTERN_ROOT_KEY is",
    env: "POSTERN_ROOT_KEY_FILE",
  },
  "ca-file": {
    type: "string",
    placeholder: "PATH",
    help: "authority of the api-server's certificate, PEM; the system's when left out",
    env: "POSTERN_CA_FILE",
  },
  timeout: {
    type: "string",
    placeholder: "DURATION",
    help: "how long to wait for the answer to a call, with what is tried again",
    default: "30s",
    env: "POSTERN_TIMEOUT",
  },
} as const;

/** What a command talks to, in a sentence for its help; undefined for one that runs a part, or needs neither. */
export function worksWith({ options }: Pick<Command, "options">): string | undefined {
  if (options.profile === connection.profile) {
    return "Calls the API with a root key: that of a profile, or of POSTERN_API_URL and POSTERN_ROOT_KEY.";
  }
  return options["database-url-file"] === database["database-url-file"]
    ? "Works on the database, for administrators: that of DATABASE_URL, or of the `postern dev` that runs on --data-dir."
    : undefined;
}

/** For the commands that work in one workspace. */
export const workspace = {
  type: "string",
  placeholder: "WORKSPACE",
  help: "id or name of the workspace; `default` when left out, which is made when missing",
} as const;

/** For changes of a workspace itself: it must be named, so that the default one is not changed by mistake. */
export const namedWorkspace = {
  type: "string",
  placeholder: "WORKSPACE",
  help: "its id or name",
  required: true,
} as const;

/** Returns the value, or throws a `UsageError` that says how to give it. */
export function required(value: string | undefined, how: string): string {
  if (value === undefined || value === "") throw new UsageError(how);
  return value;
}
