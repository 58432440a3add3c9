import { duration, FILE, FOLDER, HTTP_URL, integer, PORT, SWITCH, text, url } from "./accepts.ts";
import { type Accepts, type Command, UsageError } from "./command.ts";
import { MIB_BOUNDS, parseDashboardUrl, parseRetentionDays, RETENTION_BOUNDS } from "./values.ts";

/* Option tables that several commands share. */

const ORIGIN: Accepts = {
  ...text("URL", "https, or http for a loopback address, without a path"),
  check: (option, origin) => void parseDashboardUrl(option, origin),
};
const MIB = integer({ ...MIB_BOUNDS, unit: "MiB" });
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
  help: "Postgres URL, postgres://user:password@host/database",
  env: "DATABASE_URL",
  accepts: url("postgres", "postgresql"),
} as const;

/** Options of services that store usage. */
export const analyticsStore = {
  "analytics-url": {
    type: "string",
    placeholder: "URL",
    help: "ClickHouse URL for usage events, http(s)://user:password@host:8123/database (default: Postgres)",
    env: "ANALYTICS_URL",
    accepts: HTTP_URL,
  },
  "analytics-reader-url": {
    type: "string",
    placeholder: "URL",
    help: "ClickHouse URL of a read-only user for usage queries (default: --analytics-url)",
    env: "ANALYTICS_READER_URL",
    accepts: HTTP_URL,
  },
  "analytics-cluster": {
    type: "string",
    placeholder: "NAME",
    help: "ClickHouse cluster for replicated tables",
    env: "ANALYTICS_CLUSTER",
    accepts: text("name"),
  },
} as const;

export const redisUrl = {
  type: "string",
  placeholder: "URL",
  help: "Redis URL; ?cluster=true for a cluster node, ?sentinel=NAME for a sentinel of that master (add sentinels with &sentinels=HOST:PORT,HOST:PORT)",
  env: "REDIS_URL",
  accepts: url("redis", "rediss"),
} as const;

export const eventsRedisUrl = {
  type: "string",
  placeholder: "URL",
  help: "Redis URL for usage events, the same for api-servers and sidecars (default: --redis-url)",
  env: "EVENTS_REDIS_URL",
  accepts: url("redis", "rediss"),
} as const;

/** Option of services that reserve Redis memory for events. */
export const eventsMemory = {
  type: "string",
  placeholder: "MIB",
  help: "maximum Redis memory for events that are not yet ingested, in MiB; less if maxmemory is small",
  default: "256",
  env: "POSTERN_EVENTS_MEMORY",
  accepts: MIB,
} as const;

const retentionDuration = { type: "string", placeholder: "DURATION" } as const;

/** Options of services that delete old data. */
export const retention = {
  "audit-retention": {
    ...retentionDuration,
    help: "retention of the audit log; 0 means indefinitely",
    default: "90d",
    env: "POSTERN_AUDIT_RETENTION",
    accepts: RETENTION,
  },
  "deleted-retention": {
    ...retentionDuration,
    help: "retention of deleted keys, APIs, identities, namespaces, overrides and policies; 0 means indefinitely",
    default: "30d",
    env: "POSTERN_DELETED_RETENTION",
    accepts: RETENTION,
  },
} as const;

/** Options of services that serve v1 of the API. */
export const v1 = {
  "api-v1": {
    type: "string",
    placeholder: "on|off",
    help: "availability of API v1; with `off`, every call gets 410",
    default: "on",
    env: "POSTERN_API_V1",
    accepts: SWITCH,
  },
  "api-v1-sunset": {
    type: "string",
    placeholder: "DATE",
    help: "sunset date of API v1, such as 2026-12-31, announced in a response header",
    env: "POSTERN_API_V1_SUNSET",
    accepts: text("date", "in the future"),
  },
  "api-v1-successor": {
    type: "string",
    placeholder: "URL",
    help: "base URL of API v2 for links in v1 responses (default: that of v1)",
    env: "POSTERN_API_V1_SUCCESSOR",
    accepts: HTTP_URL,
  },
} as const;

export const redisPrefix = {
  type: "string",
  placeholder: "PREFIX",
  help: "prefix of all Redis keys",
  env: "POSTERN_REDIS_PREFIX",
  accepts: text("text"),
  default: "ps",
} as const;

export const dataDir = {
  type: "string",
  placeholder: "DIR",
  help: "directory of `postern dev`",
  env: "POSTERN_DATA_DIR",
  accepts: FOLDER,
  default: ".postern",
} as const;

/** Option of commands that read manifests; it may be repeated: `-f a -f b`. */
export const manifestPaths = {
  type: "string",
  short: "f",
  placeholder: "PATH",
  help: "manifest file, directory, or - for standard input",
  required: true,
  repeats: true,
} as const;

export const strict = { type: "boolean", help: "reject objects of other API groups instead of skipping them" } as const;

export const json = { type: "boolean", help: "JSON output" } as const;

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
  help: "region name in usage events",
  default: "",
  env: "POSTERN_REGION",
  accepts: text("name"),
} as const;

export const docsUrl = {
  type: "string",
  placeholder: "URL",
  help: "base URL of error types: URL/errors/KIND",
  default: "https://postern.dev",
  env: "POSTERN_DOCS_URL",
  accepts: HTTP_URL,
} as const;

/** Removes trailing slashes from a URL to which a path is appended. */
export const withoutSlash = (url: string): string => url.replace(/\/+$/, "");

/** Option of services whose only HTTP server serves probes and metrics. */
export const adminPort = {
  type: "string",
  placeholder: "PORT",
  help: "port for probes and metrics",
  env: "POSTERN_ADMIN_PORT",
  accepts: PORT,
} as const;

/**
 * Option of commands that encrypt or decrypt recoverable keys. The value is a file, because every user of the machine can read command
 * lines.
 */
export const encryptionKeysFile = {
  type: "string",
  placeholder: "PATH",
  help: "file of encryption keys for recoverable keys, one `ID:BASE64` per line; the first encrypts, all decrypt",
  env: "POSTERN_ENCRYPTION_KEYS_FILE",
  accepts: FILE,
} as const;

/** Option of commands that create links to the dashboard. */
export const dashboardUrl = {
  type: "string",
  placeholder: "URL",
  help: "public URL of the dashboard, such as https://postern.example.com",
  env: "POSTERN_DASHBOARD_URL",
  accepts: ORIGIN,
} as const;

/** Option for a list of permissions. */
export const permissions = {
  type: "string",
  alias: "permission",
  placeholder: "LIST",
  help: "permissions",
  repeats: true,
  separates: true,
} as const;

/** Option of commands that print a list. */
export const limit = { type: "string", placeholder: "N", help: "maximum number of rows", default: "100" } as const;

/** Options of commands that print a list which the API returns in pages. */
export const paging = {
  limit: { type: "string", placeholder: "N", help: "maximum number of rows (default 100)" },
  all: { type: "boolean", help: "show all rows" },
  cursor: { type: "string", placeholder: "CURSOR", help: "cursor from the previous page" },
} as const;

/** Option of commands that run during an installation. */
export const wait = {
  type: "string",
  placeholder: "DURATION",
  help: "time to retry while the database is unavailable",
  default: "0s",
  env: "POSTERN_WAIT",
  accepts: duration(WAIT_BOUNDS),
} as const;

/** Options of commands that use the database. */
export const database = {
  "database-url": databaseUrl,
  "database-url-file": {
    type: "string",
    placeholder: "PATH",
    help: "file with the value of --database-url",
    env: "DATABASE_URL_FILE",
    accepts: FILE,
  },
  "data-dir": dataDir,
} as const;

/**
 * Options of commands that call the API: the server and the root key, or a profile that has both. The root key is not an option because
 * every user of the machine can read command lines.
 */
export const connection = {
  profile: {
    type: "string",
    placeholder: "NAME",
    help: "profile with server and root key (default: the one set by `postern profile use`, otherwise the running `postern dev`)",
    env: "POSTERN_PROFILE",
  },
  "api-url": {
    type: "string",
    placeholder: "URL",
    help: "URL of the api-server, instead of a profile",
    env: "POSTERN_API_URL",
  },
  "root-key-file": {
    type: "string",
    placeholder: "PATH",
    help: "file with the root key, instead of POSTERN_ROOT_KEY",
    env: "POSTERN_ROOT_KEY_FILE",
  },
  "ca-file": {
    type: "string",
    placeholder: "PATH",
    help: "CA bundle (PEM) for the api-server (default: system CAs)",
    env: "POSTERN_CA_FILE",
  },
  timeout: {
    type: "string",
    placeholder: "DURATION",
    help: "maximum time of a call, including retries",
    default: "30s",
    env: "POSTERN_TIMEOUT",
  },
  "data-dir": dataDir,
} as const;

/** Returns a sentence for the help about the backend of a command; `undefined` for services and for commands without a backend. */
export function worksWith({ options }: Pick<Command, "options">): string | undefined {
  if (options.profile === connection.profile) {
    return "Calls the API with the root key of a profile, of POSTERN_API_URL and POSTERN_ROOT_KEY, or of the `postern dev` that runs on --data-dir.";
  }
  return options["database-url-file"] === database["database-url-file"]
    ? "Connects to the database of DATABASE_URL, or of the `postern dev` that runs on --data-dir."
    : undefined;
}

/** Option of commands that work in one workspace. */
export const workspace = {
  type: "string",
  placeholder: "WORKSPACE",
  help: "workspace id or name (default: `default`, created if missing)",
} as const;

/** Option of commands that change a workspace. The option is required, so that nobody changes the default workspace by mistake. */
export const namedWorkspace = {
  type: "string",
  placeholder: "WORKSPACE",
  help: "workspace id or name",
  required: true,
} as const;

/** Returns the value if it is set; otherwise throws a `UsageError` with the text `how`. */
export function required(value: string | undefined, how: string): string {
  if (value === undefined || value === "") throw new UsageError(how);
  return value;
}
