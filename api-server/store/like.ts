/** A LIKE pattern for texts that contain `part`; `%`, `_` and `\` in `part` are matched literally. */
export const containing = (part: string): string => `%${part.replaceAll(/[\\%_]/g, "\\$&")}%`;
