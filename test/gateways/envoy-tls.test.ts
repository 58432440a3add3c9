import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type CertificateFolder, openCertificateFolder, type TestCertificate } from "../harness/certificate.ts";
import { call } from "../harness/gate.ts";
import { waitFor } from "../harness/wait.ts";
import { startEnvoy } from "./envoy.ts";
import type { Gateway } from "./suite.ts";
import { openWorld, type World } from "./world.ts";

/* Envoy calls the gRPC ext-auth endpoint over TLS with a client certificate, its only authorization: the gate trusts no address. */

let folder: CertificateFolder;
let world: World;
const gateways: Gateway[] = [];
let gateCertificate: TestCertificate;
let own: TestCertificate;
let foreign: TestCertificate;

const socketWith = (shown: TestCertificate): string => `
      transport_socket:
        name: envoy.transport_sockets.tls
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
          common_tls_context:
            tls_certificates:
              - certificate_chain: { filename: ${shown.certFile} }
                private_key: { filename: ${shown.keyFile} }
            validation_context:
              trusted_ca: { filename: ${gateCertificate.certFile} }
`;

async function envoyWith(shown: TestCertificate): Promise<Gateway> {
  const gateway = await startEnvoy(world, "envoy-grpc.yaml", {
    "port_value: 8003": `port_value: ${world.grpcPort}`,
    "    - name: postern\n      connect_timeout: 1s\n": `    - name: postern\n      connect_timeout: 1s${socketWith(shown)}`,
  });
  gateways.push(gateway);
  return gateway;
}

beforeAll(async () => {
  folder = openCertificateFolder();
  gateCertificate = folder.make("gate");
  own = folder.make("own");
  foreign = folder.make("foreign");
  world = await openWorld({
    POSTERN_TRUSTED_GATEWAYS: "10.255.0.0/16",
    POSTERN_EXT_AUTH_TLS_CERT_FILE: gateCertificate.certFile,
    POSTERN_EXT_AUTH_TLS_KEY_FILE: gateCertificate.keyFile,
    POSTERN_EXT_AUTH_CLIENT_CA_FILE: own.certFile,
  });
  await world.records.putAny("namespace", "rlns_edge", { id: "rlns_edge", name: "edge" });
  await world.records.putAny("namespaceName", "edge", { id: "rlns_edge", name: "edge" });
}, 900_000);
afterAll(async () => {
  for (const gateway of gateways) await gateway.close();
  await world?.close();
  folder?.remove();
});

const ask = (gateway: Gateway, key: string) =>
  call(gateway.port, { path: "/orders", headers: { Authorization: `Bearer ${key}` } });

describe("Envoy by TLS", () => {
  test("Envoy with a certificate of the client CA gets decisions from the gate", async () => {
    const gateway = await envoyWith(own);
    const key = await world.records.putKey({ keyId: "key_1" });
    await waitFor("an answer of the app", async () => (await ask(gateway, key)).status === 200);
    expect(world.app.seen.at(-1)?.headers["x-postern-key-id"], gateway.log()).toBe("key_1");
    expect((await ask(gateway, "wrong")).status).toBe(401);
  });

  test("Envoy with a certificate of another CA admits no request", async () => {
    const gateway = await envoyWith(foreign);
    const key = await world.records.putKey({ keyId: "key_2" });
    world.app.seen.length = 0;
    for (let at = 0; at < 3; at++) expect((await ask(gateway, key)).status, gateway.log()).toBe(503);
    expect(world.app.seen).toEqual([]);
  });
});
