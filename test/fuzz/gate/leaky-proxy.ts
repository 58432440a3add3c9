import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, connect, createServer } from "node:net";

/* Takes the place of a sidecar and forwards every byte unchanged. A fuzzer that finds nothing here is useless. */

const upstream = new URL(process.env.LEAKY_UPSTREAM ?? "");
const proxy = createServer((socket) => {
  const app = connect(Number(upstream.port), upstream.hostname);
  socket.on("error", () => app.destroy()).pipe(app);
  app.on("error", () => socket.destroy()).pipe(socket);
});
const admin = createHttpServer((_req, res) => res.end("ok"));
proxy.listen(0, "127.0.0.1", () =>
  admin.listen(0, "127.0.0.1", () => {
    const [port, adminPort] = [proxy, admin].map((server) => (server.address() as AddressInfo).port);
    console.log(JSON.stringify({ port, adminPort }));
  }),
);
