import { findDebianGateway } from "../harness/parts/gateways.ts";
import { freePort } from "../harness/ports.ts";
import { startGateway } from "./programs.ts";
import { type Gateway, testGateway } from "./suite.ts";
import { exampleWith, openWorld, type World } from "./world.ts";

async function startCaddy(world: World): Promise<Gateway> {
  const { program: caddy } = await findDebianGateway("caddy");
  const port = await freePort();
  const site = await exampleWith("Caddyfile", {
    ":8080 {": `http://:${port} {\n\tbind 127.0.0.1`,
    "127.0.0.1:3000": `127.0.0.1:${world.appPort}`,
    "127.0.0.1:8002": `127.0.0.1:${world.authorizePort}`,
  });
  return startGateway({
    name: "caddy",
    port,
    // Several Caddy processes run side by side, so the shared admin port is disabled.
    files: () => ({ Caddyfile: `{\n\tadmin off\n}\n${site}` }),
    command: (dir) => [caddy, "run", "--config", `${dir}/Caddyfile`, "--adapter", "caddyfile"],
  });
}

testGateway("Caddy with forward_auth", {
  world: openWorld,
  gateway: startCaddy,
  // Caddy forwards no headers of an allowing response to the client.
  expected: { stripsQueryKey: true, undecided: [503], showsLimits: false },
});
