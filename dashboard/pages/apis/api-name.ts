export const API_NAME_HINT = "3 to 255 characters.";

/** Returns the problem of an API name; `undefined` if the name is valid. */
export const apiNameProblem = (name: string): string | undefined =>
  name.trim().length < 3 ? `A name has ${API_NAME_HINT}` : undefined;
