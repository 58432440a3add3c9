import { PublicError } from "../../../core/errors.ts";

/**
 * Error for a field that its schema allows but that contradicts another field, or stored data. `location` is as in `body.credits.refill`.
 */
export const invalidField = (location: string, message: string): PublicError =>
  new PublicError("invalid_input", message, { errors: [{ location, message }] });
