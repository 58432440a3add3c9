import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { call } from "../test/harness/gate.ts";
import { createAdminServer } from "./admin.ts";
import { createProbes } from "./probes.ts";

test("admin server answers the next probe after a probe handler throws", async () => {
  const faults: unknown[] = [];
  let isBroken = true;
  const server = createAdminServer({
    readiness: () => {
      if (isBroken) throw new Error("boom");
      return { ready: true, detail: {} };
    },
    metrics: async () => ({ type: "text/plain", text: "" }),
    probes: createProbes([]),
    onInternalError: (error) => void faults.push(error),
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  await expect(call(port, { path: "/readyz" })).rejects.toThrow();
  isBroken = false;
  expect((await call(port, { path: "/readyz" })).status).toBe(200);
  expect(faults.map(String)).toEqual(["Error: boom"]);
  server.close();
});
