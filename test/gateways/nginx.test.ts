import { findDebianGateway } from "../harness/parts/gateways.ts";
import { freePort } from "../harness/ports.ts";
import { startGateway } from "./programs.ts";
import { type Gateway, testGateway } from "./suite.ts";
import { exampleWith, openWorld, type World } from "./world.ts";

const TEMPORARY = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];

/** The example belongs into the http block of a complete configuration. */
const mainFile = (dir: string): string => `error_log stderr warn; pid ${dir}/pid; worker_processes 1;
events {}
http {
  access_log off;
  ${TEMPORARY.map((name) => `${name}_temp_path ${dir}/${name};`).join("\n  ")}
  include ${dir}/postern.conf;
}
`;

async function startNginx(world: World): Promise<Gateway> {
  const { program: nginx } = await findDebianGateway("nginx");
  const port = await freePort();
  const site = await exampleWith("nginx.conf", {
    "listen 8080;": `listen 127.0.0.1:${port};`,
    "server 127.0.0.1:3000;": `server 127.0.0.1:${world.appPort};`,
    "server 127.0.0.1:8002;": `server 127.0.0.1:${world.authorizePort};`,
  });
  return startGateway({
    name: "nginx",
    port,
    files: (dir) => ({ "postern.conf": site, "nginx.conf": mainFile(dir) }),
    command: (dir) => [nginx, "-p", dir, "-c", `${dir}/nginx.conf`, "-g", "daemon off; master_process off;"],
  });
}

testGateway("nginx with auth_request", {
  world: openWorld,
  gateway: startNginx,
  expected: { stripsQueryKey: true, undecided: [503], showsLimits: true },
});
