import type { Logger } from "pino";
import type { RedisEdgeOptions } from "../edge/open.ts";
import type { DatabaseUrl } from "../postgres/pool.ts";
import { FOLLOWED_FILE } from "./accepts.ts";
import { UsageError } from "./command.ts";
import { followed, followFile, sameServer, withFile } from "./followed.ts";
import { databaseUrl, eventsRedisUrl, redisUrl } from "./options.ts";

/* Addresses of Postgres and Redis, with passwords and certificates that may change while a service runs. */

const pem = (help: string, env: string) =>
  ({
    type: "string",
    placeholder: "PATH",
    help: `${help}, reloaded on change`,
    env,
    accepts: FOLLOWED_FILE,
  }) as const;

export const databaseCertificateOptions = {
  "database-ca-file": pem("CA bundle (PEM) for Postgres; enables certificate verification", "DATABASE_CA_FILE"),
  "database-cert-file": pem("client certificate (PEM) for Postgres", "DATABASE_CERT_FILE"),
  "database-key-file": pem("client private key (PEM) for Postgres", "DATABASE_KEY_FILE"),
} as const;

export const databaseOptions = { ...withFile("database-url", databaseUrl), ...databaseCertificateOptions } as const;

export const redisOptions = {
  ...withFile("redis-url", redisUrl),
  ...withFile("events-redis-url", eventsRedisUrl),
  "redis-ca-file": pem("CA bundle (PEM) for rediss:// (default: system CAs)", "REDIS_CA_FILE"),
  "redis-cert-file": pem("client certificate (PEM) for Redis", "REDIS_CERT_FILE"),
  "redis-key-file": pem("client private key (PEM) for Redis", "REDIS_KEY_FILE"),
} as const;

type Values<T> = { readonly [K in keyof T]: string | undefined };
type Log = Pick<Logger, "info" | "warn">;

/** Returns a function that returns the current database URL. Throws `UsageError` if no address is set. */
export function databaseAddress(options: Values<typeof databaseOptions>, log: Log): DatabaseUrl {
  const { "database-url": value, "database-url-file": file } = options;
  const url = followed({ name: "database-url", value, file, log, accept: sameServer });
  if (url === undefined) throw new UsageError("set --database-url, --database-url-file or DATABASE_URL");
  // Checks the certificate options now, so that an invalid certificate fails at startup rather than at the first connection.
  withDatabaseCertificates(url(), options);
  return () => withDatabaseCertificates(url(), options);
}

/**
 * Adds the certificate files to the URL as parameters; `pg` reads the files for each new connection. Throws `UsageError` if one file of a
 * pair is missing.
 */
export function withDatabaseCertificates(text: string, options: Values<typeof databaseCertificateOptions>): string {
  const files = {
    sslrootcert: options["database-ca-file"],
    sslcert: options["database-cert-file"],
    sslkey: options["database-key-file"],
  };
  demandBoth("database", files.sslcert, files.sslkey);
  const given = Object.entries(files).filter(([, path]) => path !== undefined);
  if (given.length === 0) return text;
  const url = new URL(text);
  for (const [name, path] of given) url.searchParams.set(name, path ?? "");
  if (files.sslrootcert !== undefined && !url.searchParams.has("sslmode")) {
    url.searchParams.set("sslmode", "verify-full");
  }
  return url.href;
}

/** Returns the Redis connection options. Throws `UsageError` if no address is set. */
export function redisAddress(
  options: Values<typeof redisOptions>,
  log: Log,
): Pick<RedisEdgeOptions, "url" | "eventsUrl" | "tls"> {
  const addressOf = (name: "redis-url" | "events-redis-url") =>
    followed({ name, value: options[name], file: options[`${name}-file`], log, accept: sameServer });
  const url = addressOf("redis-url");
  if (url === undefined) throw new UsageError("set --redis-url, --redis-url-file or REDIS_URL");
  return { url, eventsUrl: addressOf("events-redis-url"), tls: redisTls(options, log) };
}

function redisTls(options: Values<typeof redisOptions>, log: Log): RedisEdgeOptions["tls"] {
  const fileOf = (name: "redis-ca-file" | "redis-cert-file" | "redis-key-file") => {
    const file = options[name];
    return file === undefined ? undefined : followFile(file, { name, log });
  };
  const [ca, cert, key] = [fileOf("redis-ca-file"), fileOf("redis-cert-file"), fileOf("redis-key-file")];
  demandBoth("redis", options["redis-cert-file"], options["redis-key-file"]);
  return () => ({ ca: ca?.(), cert: cert?.(), key: key?.() });
}

function demandBoth(of: string, cert: string | undefined, key: string | undefined): void {
  if ((cert === undefined) !== (key === undefined)) {
    throw new UsageError(`--${of}-cert-file and --${of}-key-file must be set together`);
  }
}
