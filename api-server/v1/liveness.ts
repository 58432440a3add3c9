import * as z from "zod";
import { DataJson } from "../procedure.ts";
import { defineOpenV1Procedure } from "./procedure.ts";

const service = (description: string, example: string) =>
  z
    .string()
    .describe(description)
    .meta({ examples: [example] });

const ResponseBody = z.object({
  status: service("`ok`.", "ok"),
  services: z
    .object({
      metrics: service("Implementation that counts requests.", "prometheus"),
      logger: service("Implementation that writes logs.", "pino"),
      ratelimit: service("Implementation that counts limits.", "sliding-window"),
      usagelimit: service("Implementation that counts credits.", "shared-counter"),
    })
    .describe("Implementations of the services that the server uses."),
});

export const liveness = defineOpenV1Procedure({
  path: "liveness",
  method: "GET",
  successor: "liveness",
  effect: "read",
  summary: "Check that the server is alive",
  description:
    "Requires no root key, and uses neither Postgres nor Redis. It does not report whether the server is ready for traffic.",
  permissions: "none",
  errors: [],
  input: z.object({}),
  response: ResponseBody,
  handle: () => ALIVE,
});

const ALIVE = new DataJson(
  JSON.stringify({
    status: "ok",
    services: { metrics: "prometheus", logger: "pino", ratelimit: "sliding-window", usagelimit: "shared-counter" },
  } satisfies z.input<typeof ResponseBody>),
);
