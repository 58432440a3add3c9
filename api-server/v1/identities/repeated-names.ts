import { PublicError } from "../../../core/errors.ts";

/** v1 says 409 where v2 says 400. Throws it when two limits of a request have one name. */
export function checkRepeatedNames(ratelimits: readonly { readonly name: string }[]): void {
  const names = ratelimits.map(({ name }) => name);
  const repeated = names.find((name, at) => names.indexOf(name) < at);
  if (repeated === undefined) return;
  throw new PublicError("ratelimit_name_repeated", `Two limits of the request have the name ${repeated}.`);
}
