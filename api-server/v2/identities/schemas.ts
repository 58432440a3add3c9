import * as z from "zod";

/** For procedures about one identity. Neither an id nor an externalId is longer. */
export const IdentityName = z
  .string()
  .min(1)
  .max(255)
  .describe("Id or externalId; when both match an identity, the id wins.")
  .meta({ examples: ["user_123"] });
