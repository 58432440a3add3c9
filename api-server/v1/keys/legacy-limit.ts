/*
 * The one limit of a key that v1 knows (api-v1.md section 5): in v2 it is the limit of this name, with autoApply.
 */

/** The name of it. */
export const LEGACY_LIMIT = "default";
