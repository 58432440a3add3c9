import { PublicError } from "../../core/errors.ts";

/**
 * Recoverable keys need a key that encrypts them, which no configuration can name yet: whoever asks for one, or for the
 * secret of one, is told so. Throws PublicError 412.
 */
export function requireKeyEncryption(): never {
  throw new PublicError(
    "precondition_failed",
    "Key encryption is not configured on this server, so that keys can be neither stored recoverably nor decrypted.",
  );
}
