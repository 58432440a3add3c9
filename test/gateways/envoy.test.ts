import { findEnvoy } from "../harness/parts/gateways.ts";
import { freePort } from "../harness/ports.ts";
import { startGateway } from "./programs.ts";
import { type Gateway, testGateway } from "./suite.ts";
import { exampleWith, openWorld, type World } from "./world.ts";

async function startEnvoy(world: World, example: string, door: Readonly<Record<string, string>>): Promise<Gateway> {
  const envoy = await findEnvoy();
  const port = await freePort();
  const config = await exampleWith(example, {
    "address: 0.0.0.0, port_value: 8080": `address: 127.0.0.1, port_value: ${port}`,
    "port_value: 3000": `port_value: ${world.appPort}`,
    ...door,
  });
  return startGateway({
    name: "envoy",
    port,
    files: () => ({ "envoy.yaml": config }),
    command: (dir) => [
      envoy,
      ...["-c", `${dir}/envoy.yaml`, "--concurrency", "1", "--use-dynamic-base-id", "--log-level", "warn"],
    ],
  });
}

testGateway("Envoy with ext_authz over gRPC", {
  world: async () => {
    const world = await openWorld();
    await world.records.putAny("namespace", "rlns_edge", { id: "rlns_edge", name: "edge", deleted: false });
    return world;
  },
  gateway: (world) => startEnvoy(world, "envoy-grpc.yaml", { "port_value: 8003": `port_value: ${world.grpcPort}` }),
  expected: { stripsQueryKey: true, undecided: [503], showsLimits: true },
});

testGateway("Envoy with ext_authz over HTTP", {
  world: openWorld,
  gateway: (world) =>
    startEnvoy(world, "envoy-http.yaml", { "port_value: 8002": `port_value: ${world.authorizePort}` }),
  expected: { stripsQueryKey: false, undecided: [503], showsLimits: true },
});
