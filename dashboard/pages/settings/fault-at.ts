import { ApiError } from "../../api/api-error.ts";

/** What the server found wrong with a member of the body, to be said at its field; undefined for any other error. */
export const problemAt = (error: unknown, member: string): string | undefined =>
  error instanceof ApiError ? error.faults.find(({ location }) => location === `body.${member}`)?.message : undefined;
