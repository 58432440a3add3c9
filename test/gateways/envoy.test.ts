import { startEnvoy } from "./envoy.ts";
import { testGateway } from "./suite.ts";
import { openWorld } from "./world.ts";

testGateway("Envoy with ext_authz over gRPC", {
  world: async () => {
    const world = await openWorld();
    await world.records.putAny("namespace", "rlns_edge", { id: "rlns_edge", name: "edge", deleted: false });
    await world.records.putAny("namespaceName", "edge", { id: "rlns_edge", name: "edge", deleted: false });
    return world;
  },
  gateway: (world) => startEnvoy(world, "envoy-grpc.yaml", { "port_value: 8003": `port_value: ${world.grpcPort}` }),
  expected: { stripsQueryKey: true, undecided: [503], showsLimits: true },
});

testGateway("Envoy with ext_authz over HTTP", {
  world: openWorld,
  gateway: (world) =>
    startEnvoy(world, "envoy-http.yaml", {
      "port_value: 8002": `port_value: ${world.authorizePort}`,
      "- { exact: x-api-key }": "- { exact: x-api-key }\n                          - { exact: x-denied }",
    }),
  expected: { stripsQueryKey: false, undecided: [503], showsLimits: true },
});
