import * as z from "zod";

/** As procedures that are about one identity have it. Neither an id nor an externalId is longer. */
export const IdentityName = z
  .string()
  .min(1)
  .max(255)
  .describe("Id or externalId; when both match an identity, the id wins.")
  .meta({ examples: ["user_123"] });
