/** Escapes `%`, `_` and `\` in a LIKE pattern. */
const literally = (part: string): string => part.replaceAll(/[\\%_]/g, "\\$&");

/** Returns a LIKE pattern for strings that contain `part`. */
export const containing = (part: string): string => `%${literally(part)}%`;

/** Returns a LIKE pattern for strings that begin with `part`. */
export const beginningWith = (part: string): string => `${literally(part)}%`;
