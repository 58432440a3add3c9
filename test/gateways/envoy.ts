import { findEnvoy } from "../harness/parts/gateways.ts";
import { freePort } from "../harness/ports.ts";
import { startGateway } from "./programs.ts";
import type { Gateway } from "./suite.ts";
import { exampleWith, type World } from "./world.ts";

/** Starts Envoy with an example in which `extAuth` replaces the port of the gate. */
export async function startEnvoy(
  world: World,
  example: string,
  extAuth: Readonly<Record<string, string>>,
): Promise<Gateway> {
  const port = await freePort();
  const config = await exampleWith(example, {
    "address: 0.0.0.0, port_value: 8080": `address: 127.0.0.1, port_value: ${port}`,
    "port_value: 3000": `port_value: ${world.appPort}`,
    ...extAuth,
  });
  return runEnvoy(port, config);
}

/** Starts Envoy with a configuration that listens on `port`. */
export async function runEnvoy(port: number, config: string): Promise<Gateway> {
  const envoy = await findEnvoy();
  return startGateway({
    name: "envoy",
    port,
    files: () => ({ "envoy.yaml": config }),
    command: (dir) => [
      envoy,
      ...["-c", `${dir}/envoy.yaml`, "--concurrency", "1", "--disable-hot-restart", "--log-level", "warn"],
    ],
  });
}
