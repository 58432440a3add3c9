import * as z from "zod";

/*
 * Field types that v1's procedures share (api-v1.md section 5). Objects are not strict: unknown members are ignored.
 */

export const ApiId = z
  .string()
  .min(1)
  .max(255)
  .describe("Id of the API.")
  .meta({ examples: ["api_9xKp3Rt6VwY1zAbC"] });

export const KeyId = z
  .string()
  .min(1)
  .max(255)
  .describe("Id of the key, not its secret.")
  .meta({ examples: ["key_4fGh7Jk2LmN8pQrS"] });

export const WorkspaceId = z
  .string()
  .describe("Id of the workspace.")
  .meta({ examples: ["ws_5Ty8Uv2Wx4Zb7Cd9"] });

export const Name = z
  .string()
  .max(255)
  .describe("Display name; need not be unique.")
  .meta({ examples: ["payments"] });

export const NameOut = z
  .string()
  .describe("Display name.")
  .meta({ examples: ["payments"] });

/** Response body of procedures without a result. */
export const Empty = z.object({});

/** Returns the schema of a time in a response, Unix ms. */
export const unixMs = (description: string) =>
  z
    .int()
    .describe(description)
    .meta({ examples: [1_767_225_600_000] });

export const Meta = z
  .record(z.string(), z.unknown())
  .describe("Metadata: a JSON object of at most 1 MiB; less than 10 KB is recommended.")
  .meta({ examples: [{ plan: "pro" }] });

export const PageLimit = z
  .int()
  .min(1)
  .max(100)
  .default(100)
  .describe("Items per page.")
  .meta({ examples: [100] });

export const Cursor = z
  .string()
  .max(1024)
  .describe("Cursor of the next page; omitted on the last page.")
  .meta({ examples: ["key_4fGh7Jk2LmN8pQrS"] });

export const Total = z
  .int()
  .describe("Total number of items on all pages.")
  .meta({ examples: [250] });

/** Maximum length of lists in a query string. Only a list of very short items can exceed it, because a query string has at most 16 KiB. */
export const LIST_MAX = 1_000;

/** Maximum time of a JavaScript Date, Unix ms. */
const INSTANT_MAX = 8_640_000_000_000_000;

export const Instant = z
  .int()
  .min(0)
  .max(INSTANT_MAX)
  .meta({ examples: [1_767_225_600_000] });
