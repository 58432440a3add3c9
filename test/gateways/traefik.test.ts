import { call } from "../harness/gate.ts";
import { findTraefik } from "../harness/parts/traefik.ts";
import { freePort } from "../harness/ports.ts";
import { startGateway } from "./programs.ts";
import { type Gateway, testGateway } from "./suite.ts";
import { exampleWith, openWorld, type World } from "./world.ts";

async function startTraefik(world: World): Promise<Gateway> {
  const traefik = await findTraefik();
  const port = await freePort();
  const config = await exampleWith("traefik.yaml", {
    "X-API-Key, Accept": "X-API-Key, Accept, X-Denied",
    "127.0.0.1:3000": `127.0.0.1:${world.appPort}`,
    "127.0.0.1:8002": `127.0.0.1:${world.authorizePort}`,
  });
  return startGateway({
    name: "traefik",
    port,
    isReady: async () => (await call(port)).status !== 404,
    // Another name than that of Traefik's static configuration.
    files: () => ({ "dynamic.yaml": config }),
    command: (dir) => [
      traefik,
      `--entryPoints.web.address=127.0.0.1:${port}`,
      `--providers.file.filename=${dir}/dynamic.yaml`,
      "--global.checkNewVersion=false",
      "--global.sendAnonymousUsage=false",
    ],
  });
}

testGateway("Traefik with ForwardAuth", {
  world: openWorld,
  gateway: startTraefik,
  // Traefik can neither rewrite the path by the response nor forward headers of an allowing response to the client.
  expected: { stripsQueryKey: false, undecided: [503], showsLimits: false },
});
