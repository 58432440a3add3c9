import { ApiError } from "../../api/api-error.ts";

/** Returns the problem that the server reports for a member of the body, to be shown at its field; `undefined` for any other error. */
export const problemAt = (error: unknown, member: string): string | undefined =>
  error instanceof ApiError ? error.faults.find(({ location }) => location === `body.${member}`)?.message : undefined;
