// The sample app: answers with the headers that the gate sets, and with the name of its pod.
import { createServer } from "node:http";
import { hostname } from "node:os";

const server = createServer((request, response) => {
  const identity = Object.fromEntries(
    Object.entries(request.headers).filter(([name]) => name.startsWith("x-postern-")),
  );
  request.resume();
  request.on("end", () => {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ pod: hostname(), method: request.method, path: request.url, identity }));
  });
});
server.listen(3000, "0.0.0.0");
process.on("SIGTERM", () => server.close(() => process.exit(0)));
