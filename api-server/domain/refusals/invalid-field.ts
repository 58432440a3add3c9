import { PublicError } from "../../../core/errors.ts";

/** A field that its schema allows but another field, or what is stored, contradicts. `location` is as in `body.credits.refill`. */
export const invalidField = (location: string, message: string): PublicError =>
  new PublicError("invalid_input", message, { errors: [{ location, message }] });
