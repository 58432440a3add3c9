/** A pattern for LIKE that any text fits which contains `part`; `%`, `_` and `\` in it stand for themselves. */
export const containing = (part: string): string => `%${part.replaceAll(/[\\%_]/g, "\\$&")}%`;
