/** SQLSTATE class 23, "unique_violation". */
const UNIQUE_VIOLATION = "23505";

/** True when a statement failed because it broke the unique index or constraint of this name. */
export const isUniqueViolation = (error: unknown, constraint: string): boolean =>
  error instanceof Error &&
  "code" in error &&
  error.code === UNIQUE_VIOLATION &&
  "constraint" in error &&
  error.constraint === constraint;
