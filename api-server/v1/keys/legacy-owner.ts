import * as z from "zod";

/*
 * Owner of a key, which has two names in v1 (api-v1.md section 5): `externalId`, and the deprecated `ownerId`, which applies if
 * `externalId` is omitted.
 */

export const ExternalId = z
  .string()
  .max(255)
  .describe("The owner's external id in your system; creates the identity if it does not exist.")
  .meta({ examples: ["user_123"] });

export const OwnerId = ExternalId.describe("Deprecated. Use `externalId`, which takes precedence.").meta({
  deprecated: true,
});

interface Owned {
  readonly externalId?: string | null | undefined;
  readonly ownerId?: string | null | undefined;
}

/** Returns the owner that a change requests; `null` for none, `undefined` for no change. The empty string means no owner. */
export function ownerOf({ externalId, ownerId }: Owned): string | null | undefined {
  const owner = externalId === undefined ? ownerId : externalId;
  return owner === "" ? null : owner;
}

/** Returns the owner of a new key. An empty owner counts as omitted. */
export const ownerOfNew = ({ externalId, ownerId }: Owned): string | undefined =>
  [externalId, ownerId].find((owner) => owner !== undefined && owner !== null && owner !== "") ?? undefined;
