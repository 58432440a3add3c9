import { withoutPort } from "../../core/verification/ip-address.ts";
import type { Origin } from "../domain/actor.ts";
import type { ApiRequest } from "./api-request.ts";

export const originOf = (request: Pick<ApiRequest, "id" | "ip" | "headers">): Origin => ({
  requestId: request.id,
  clientIp: withoutPort(request.ip),
  userAgent: request.headers["user-agent"],
});
