import * as z from "zod";

/*
 * The owner of a key has two names in v1 (api-v1.md section 5): `externalId`, and the deprecated `ownerId`, which counts when the other
 * is left out.
 */

export const ExternalId = z
  .string()
  .max(255)
  .describe("The owner's external id in your system; creates the identity if it does not exist.")
  .meta({ examples: ["user_123"] });

export const OwnerId = ExternalId.describe("Deprecated: `externalId`, which wins over it.").meta({ deprecated: true });

interface Owned {
  readonly externalId?: string | null | undefined;
  readonly ownerId?: string | null | undefined;
}

/** The owner that a change asks for; null: none, undefined: as it is. The empty text is none. */
export function ownerOf({ externalId, ownerId }: Owned): string | null | undefined {
  const owner = externalId === undefined ? ownerId : externalId;
  return owner === "" ? null : owner;
}

/** The owner of a key that is to be made; an empty one counts as left out. */
export const ownerOfNew = ({ externalId, ownerId }: Owned): string | undefined =>
  [externalId, ownerId].find((owner) => owner !== undefined && owner !== null && owner !== "") ?? undefined;
