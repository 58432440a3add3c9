import { cpSync, globSync } from "node:fs";
import { join } from "node:path";
import { findDebianGateway } from "../harness/parts/gateways.ts";
import { freePort } from "../harness/ports.ts";
import { startGateway } from "./programs.ts";
import { type Gateway, testGateway } from "./suite.ts";
import { exampleWith, openWorld, type World } from "./world.ts";

const MODULES = ["mpm_event", "authz_core", "lua", "proxy", "proxy_http"];

/** The example belongs into a complete configuration; as root, Apache would switch to another user. */
const mainFile = (dir: string, port: number, root: string): string => `ServerRoot ${dir}
ServerName test
Listen 127.0.0.1:${port}
PidFile ${dir}/pid
Mutex file:${dir}
User nobody
Group nogroup
ErrorLog ${dir}/error.log
${MODULES.map((name) => `LoadModule ${name}_module ${join(root, `usr/lib/apache2/modules/mod_${name}.so`)}`).join("\n")}
Include ${dir}/postern.conf
`;

/** Copies the modules for the user `nobody`, who may not read the cache of root. */
function copyLuaModules(root: string, to: string): void {
  for (const folder of globSync(["usr/share/lua/5.3", "usr/lib/*-linux-gnu/lua/5.3"], { cwd: root }))
    cpSync(join(root, folder), to, { recursive: true, dereference: true });
}

async function startApache(world: World): Promise<Gateway> {
  const { program, root } = await findDebianGateway("apache2");
  const port = await freePort();
  const addresses = { "127.0.0.1:3000": `127.0.0.1:${world.appPort}` };
  const site = await exampleWith("apache.conf", { "*:8080": `127.0.0.1:${port}`, ...addresses });
  const lua = await exampleWith("apache-postern.lua", {
    ...addresses,
    "127.0.0.1:8002": `127.0.0.1:${world.authorizePort}`,
  });
  return startGateway({
    name: "apache",
    port,
    files: (dir) => ({
      "postern.conf": site.replace("/etc/apache2/apache-postern.lua", `${dir}/apache-postern.lua`),
      "apache-postern.lua": lua,
      "apache2.conf": mainFile(dir, port, root),
    }),
    command: (dir) => {
      copyLuaModules(root, `${dir}/lua`);
      const paths = [`LUA_PATH=${dir}/lua/?.lua;;`, `LUA_CPATH=${dir}/lua/?.so;;`];
      return ["env", ...paths, program, "-d", dir, "-f", `${dir}/apache2.conf`, "-D", "FOREGROUND"];
    },
  });
}

testGateway("Apache with mod_lua", {
  world: openWorld,
  gateway: startApache,
  expected: { stripsQueryKey: true, undecided: [503], showsLimits: true },
});
