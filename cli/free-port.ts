import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";

/**
 * A TCP port of 127.0.0.1 that was free a moment ago. The kernel hands out ephemeral ports in an order of its own, so
 * that two callers hardly ever get the same one; whoever can let the kernel choose (port 0) should do that instead.
 */
export async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
