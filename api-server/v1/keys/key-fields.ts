import * as z from "zod";
import { EXPIRES_MAX_MS } from "../../../core/keys/key-hash.ts";

/*
 * Fields of keys that v1 can write. Their bounds are those of v2, because both versions write the same keys.
 */

export const Expires = z
  .int()
  .min(0)
  .max(EXPIRES_MAX_MS)
  .describe("Expiry of the key, Unix ms. A past time expires it immediately.")
  .meta({ examples: [1_893_456_000_000] });

/** Name of a key; the empty string means no name. */
export const KeyName = z
  .string()
  .max(255)
  .describe("Display name of the key.")
  .meta({ examples: ["Billing"] });

export const Remaining = z
  .int()
  .describe("Remaining credits.")
  .meta({ examples: [1000] });

export const RoleName = z
  .string()
  .min(1)
  .max(128)
  .describe("Name of a role.")
  .meta({ examples: ["editor"] });

export const Slug = z
  .string()
  .min(1)
  .max(128)
  .regex(/^[a-zA-Z0-9_:\-.*]+$/)
  .describe("Slug of a permission. `*` after a separator grants everything below it.")
  .meta({ examples: ["documents.read"] });

export const Environment = z
  .string()
  .max(256)
  .describe("Environment of the key. It has no effect, but `verifyKey`, `whoami` and lists return it.")
  .meta({ examples: ["production"] });
