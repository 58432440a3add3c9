import type { FastifyRequest } from "fastify";
import { withoutPort } from "../../core/verification/ip-address.ts";
import type { Origin } from "../procedure.ts";

export const originOf = (request: FastifyRequest): Origin => ({
  requestId: request.id,
  clientIp: withoutPort(request.ip),
  userAgent: request.headers["user-agent"],
});
