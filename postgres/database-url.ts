/**
 * Address of Postgres, `postgres://user:password@host/database`. A function is called for each new connection, so that the password may
 * change while the process runs; open connections are unaffected.
 */
export type DatabaseUrl = string | (() => string);

export const urlOf = (databaseUrl: DatabaseUrl): string =>
  typeof databaseUrl === "string" ? databaseUrl : databaseUrl();
