import * as z from "zod";

/** For procedures about one identity. The limit covers both ids and externalIds. */
export const IdentityName = z
  .string()
  .min(1)
  .max(255)
  .describe("Id or externalId; when both match an identity, the id wins.")
  .meta({ examples: ["user_123"] });
