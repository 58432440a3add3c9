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
