import type { IncomingHttpHeaders } from "node:http";
import { PublicError } from "../../core/errors.ts";
import { MANAGER } from "../../core/manifests/manager.ts";
import { withoutPort } from "../../core/verification/ip-address.ts";
import type { Origin } from "../domain/actor.ts";
import type { Management } from "../domain/managed/rules.ts";
import { UNMANAGED } from "../domain/managed/rules.ts";
import type { ApiRequest } from "./api-request.ts";

/** Reads the headers of api-v2.md section 24.1. Throws PublicError `invalid_input` when one is malformed. */
export function readManagement(headers: IncomingHttpHeaders): Management {
  const manager = headers["postern-manager"];
  const adopt = headers["postern-adopt"];
  const release = headers["postern-release"];
  if (manager === undefined && adopt === undefined && release === undefined) return UNMANAGED;
  if (manager !== undefined && (typeof manager !== "string" || !MANAGER.test(manager))) {
    throw refusal("Postern-Manager", "expected <cluster>/<kind>/<namespace>/<name>, each 1 to 253 of [a-zA-Z0-9._-]");
  }
  return { manager, adopt: readFlag("Postern-Adopt", adopt), release: readFlag("Postern-Release", release) };
}

function readFlag(name: string, value: string | string[] | undefined): boolean {
  if (value === undefined || value === "false") return false;
  if (value === "true") return true;
  throw refusal(name, "expected true or false");
}

const refusal = (header: string, message: string): PublicError =>
  new PublicError("invalid_input", `The header ${header} is malformed.`, {
    errors: [{ location: `header.${header}`, message }],
  });

export const originOf = (request: Pick<ApiRequest, "id" | "ip" | "headers">): Origin => ({
  requestId: request.id,
  clientIp: withoutPort(request.ip),
  userAgent: request.headers["user-agent"],
});
