/** SQLSTATE class 23, "unique_violation". */
const UNIQUE_VIOLATION = "23505";

/** Whether a statement failed because it violated the unique index or constraint with this name. */
export const isUniqueViolation = (error: unknown, constraint: string): boolean =>
  error instanceof Error &&
  "code" in error &&
  error.code === UNIQUE_VIOLATION &&
  "constraint" in error &&
  error.constraint === constraint;
