/**
 * Where Postgres is, `postgres://user:password@host/database`. A function is called for each new connection, so that a password may
 * change while the process runs; connections that are open stay as they are.
 */
export type DatabaseUrl = string | (() => string);

export const urlOf = (databaseUrl: DatabaseUrl): string =>
  typeof databaseUrl === "string" ? databaseUrl : databaseUrl();
