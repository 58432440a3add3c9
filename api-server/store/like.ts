/** Matched literally in a LIKE pattern: also `%`, `_` and `\`. */
const literally = (part: string): string => part.replaceAll(/[\\%_]/g, "\\$&");

/** A LIKE pattern for texts that contain `part`. */
export const containing = (part: string): string => `%${literally(part)}%`;

/** A LIKE pattern for texts that begin with `part`. */
export const beginningWith = (part: string): string => `${literally(part)}%`;
