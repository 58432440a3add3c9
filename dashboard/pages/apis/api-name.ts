export const API_NAME_HINT = "3 to 255 characters.";

/** What is wrong with the name of an API; undefined when nothing is. */
export const apiNameProblem = (name: string): string | undefined =>
  name.trim().length < 3 ? `A name has ${API_NAME_HINT}` : undefined;
