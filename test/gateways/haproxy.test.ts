import { findDebianGateway } from "../harness/parts/gateways.ts";
import { freePort } from "../harness/ports.ts";
import { startGateway } from "./programs.ts";
import { type Gateway, testGateway } from "./suite.ts";
import { exampleWith, openWorld, type World } from "./world.ts";

async function startHaproxy(world: World): Promise<Gateway> {
  const { program: haproxy } = await findDebianGateway("haproxy");
  const port = await freePort();
  const config = await exampleWith("haproxy.cfg", {
    "bind :8080": `bind 127.0.0.1:${port}`,
    "127.0.0.1:3000": `127.0.0.1:${world.appPort}`,
  });
  const lua = await exampleWith("haproxy-postern.lua", { "127.0.0.1:8002": `127.0.0.1:${world.authorizePort}` });
  return startGateway({
    name: "haproxy",
    port,
    files: () => ({ "haproxy.cfg": config, "haproxy-postern.lua": lua }),
    command: (dir) => [haproxy, "-db", "-f", `${dir}/haproxy.cfg`],
  });
}

testGateway("HAProxy with Lua", {
  world: openWorld,
  gateway: startHaproxy,
  expected: { stripsQueryKey: true, undecided: [503], showsLimits: true },
});
