import * as z from "zod";

/*
 * Owner of a key. v1 has two names for it (api-v1.md section 5): `externalId` and the deprecated `ownerId`, which applies only if
 * `externalId` is omitted.
 */

export const ExternalId = z
  .string()
  .max(255)
  .describe("The owner's external id in your system. If no identity has it, one is created.")
  .meta({ examples: ["user_123"] });

export const OwnerId = ExternalId.describe("Deprecated. Use `externalId`, which takes precedence.").meta({
  deprecated: true,
});

interface Owned {
  readonly externalId?: string | null | undefined;
  readonly ownerId?: string | null | undefined;
}

/**
 * Returns the owner that a change requests: `null` to remove the owner, `undefined` to leave it unchanged. The empty string counts as
 * `null`.
 */
export function ownerOf({ externalId, ownerId }: Owned): string | null | undefined {
  const owner = externalId === undefined ? ownerId : externalId;
  return owner === "" ? null : owner;
}

/** Returns the owner of a new key. An empty owner counts as omitted. */
export const ownerOfNew = ({ externalId, ownerId }: Owned): string | undefined =>
  [externalId, ownerId].find((owner) => owner !== undefined && owner !== null && owner !== "") ?? undefined;
