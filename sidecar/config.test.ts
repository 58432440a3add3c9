import { expect, test } from "vitest";
import { limitsOf } from "./config.ts";

/* The defaults. */

const tls = () => ({ cert: "", key: "" });

test.each([
  { name: "without TLS", config: {}, bounds: [10_000, 1_000, 5_000] },
  { name: "with TLS for clients", config: { tls }, bounds: [2_000, 500, 5_000] },
  { name: "with ext-auth endpoints without TLS", config: { extAuth: { trusted: [] } }, bounds: [10_000, 1_000, 5_000] },
  {
    name: "with TLS at the ext-auth endpoints",
    config: { extAuth: { trusted: [], tls } },
    bounds: [10_000, 1_000, 1_000],
  },
  {
    name: "that are configured",
    config: { tls, extAuth: { trusted: [], tls }, limits: { clientConnectionsMax: 3, extAuthConnectionsMax: 4 } },
    bounds: [3, 500, 4],
  },
])("gate has the expected connection limits $name", ({ config, bounds }) => {
  const { clientConnectionsMax, clientHttp2ConnectionsMax, extAuthConnectionsMax } = limitsOf(config);
  expect([clientConnectionsMax, clientHttp2ConnectionsMax, extAuthConnectionsMax]).toEqual(bounds);
});
