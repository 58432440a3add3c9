import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installedBinary } from "../harness/parts/apt.ts";
import { findBinary, findPart } from "../harness/parts/find.ts";
import { freePort } from "../harness/ports.ts";
import { startProcess } from "../harness/process.ts";
import { waitForPort } from "./listening.ts";
import { type Gateway, testGateway } from "./suite.ts";
import { exampleWith, openWorld, type World } from "./world.ts";

const findNginx = () =>
  findPart("nginx", "install nginx with auth_request", [
    { name: "the PATH", attempt: () => findBinary(["nginx"]) },
    { name: "apt-get", attempt: () => installedBinary("nginx", ["nginx"]) },
  ]);

async function startNginx(world: World): Promise<Gateway> {
  const nginx = await findNginx();
  const dir = await mkdtemp(join(tmpdir(), "postern-nginx-"));
  const port = await freePort();
  const site = await exampleWith("nginx.conf", {
    "listen 8080;": `listen 127.0.0.1:${port};`,
    "server 127.0.0.1:3000;": `server 127.0.0.1:${new URL(world.app.url).port};`,
    "server 127.0.0.1:8002;": `server 127.0.0.1:${world.authorizePort};`,
  });
  await mkdir(join(dir, "logs"));
  const main = `error_log stderr warn; pid ${dir}/pid; worker_processes 1;
events {}
http {
  access_log off;
  ${["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((one) => `${one}_temp_path ${dir}/${one};`).join("\n  ")}
  include ${dir}/site.conf;
}
`;
  await writeFile(join(dir, "site.conf"), site);
  await writeFile(join(dir, "nginx.conf"), main);
  const child = await startProcess(nginx, [
    "-p",
    dir,
    "-c",
    join(dir, "nginx.conf"),
    "-g",
    "daemon off; master_process off;",
  ]);
  await waitForPort(port, child);
  return {
    port,
    log: () => child.stderr(),
    close: async () => {
      await child.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

testGateway("nginx with auth_request", {
  world: openWorld,
  gateway: startNginx,
  expected: { stripsQueryKey: true, undecided: [503], showsLimits: true },
});
