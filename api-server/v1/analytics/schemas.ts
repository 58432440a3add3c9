import * as z from "zod";

/** A query is at most 16 KiB long, so no list in it is longer. */
export const LIST_MAX = 1_000;

/** What a Date can hold. */
const INSTANT_MAX = 8_640_000_000_000_000;

export const Instant = z
  .int()
  .min(0)
  .max(INSTANT_MAX)
  .meta({ examples: [1_767_225_600_000] });
