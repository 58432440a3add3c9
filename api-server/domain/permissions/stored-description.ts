/** An empty string is stored as null, so that responses need not distinguish the two. */
export const toStoredDescription = (description: string | null | undefined): string | null =>
  description === undefined || description === "" ? null : description;
