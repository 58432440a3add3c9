import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { openCertificateFolder } from "../../test/harness/certificate.ts";
import { freePort } from "../../test/harness/ports.ts";
import { type OwnRedis, startOwnRedis } from "../../test/harness/redis.ts";
import { waitFor } from "../../test/harness/wait.ts";
import { openRedisEdge } from "../open.ts";
import { connectRedis } from "./connect.ts";

/** Sets the only password of user `pod` and closes the connections that used the previous one. */
async function setPassword(raw: Redis, password: string): Promise<void> {
  await raw.call("ACL", "SETUSER", "pod", "reset", "on", `>${password}`, "~*", "&*", "+@all");
  await raw.call("CLIENT", "KILL", "USER", "pod");
}

async function ownRedis(options: Parameters<typeof startOwnRedis>[0]): Promise<{ own: OwnRedis; raw: Redis }> {
  const own = await startOwnRedis(options);
  onTestFinished(() => own.stop());
  const raw = new Redis(own.url);
  onTestFinished(() => raw.disconnect());
  return { own, raw };
}

const CLUSTER = { cluster: true, args: ["--cluster-announce-ip", "127.0.0.1"] };

test.each([
  { name: "one Redis", options: {}, search: "" },
  { name: "a Redis Cluster", options: CLUSTER, search: "?cluster=true" },
])("connections to $name reconnect with the current password", async ({ options, search }) => {
  const { own, raw } = await ownRedis(options);
  await setPassword(raw, "one");
  let password = "one";
  const url = () => `redis://pod:${password}@127.0.0.1:${own.port}${search}`;
  const edge = await openRedisEdge({ url, clientName: "rotating" });
  onTestFinished(() => edge.close());
  const ignored = () => undefined;
  const stream = await edge.stream.follow("central", { onChange: ignored, onReset: ignored, onHeartbeat: ignored });
  onTestFinished(() => stream.close());
  const users = async () => {
    const clients = String(await raw.call("CLIENT", "LIST")).split("\n");
    return clients.filter((line) => / name=\S*rotating/.test(line) && line.includes("user=pod")).length;
  };
  const connected = await waitFor("all connections", async () => ((await users()) >= 3 ? users() : false));
  password = "two";
  await setPassword(raw, "two");
  await waitFor("all of them to be back", async () => {
    await edge.ping();
    return (await users()) >= connected;
  });
});

test("Redis connection uses CA and client certificate files and rejects other servers", async () => {
  const certificates = openCertificateFolder();
  onTestFinished(() => certificates.remove());
  const { make } = certificates;
  const [server, client, other] = [make("server"), make("client"), make("other")];
  const tlsPort = await freePort();
  const files = [
    "--tls-cert-file",
    server.certFile,
    "--tls-key-file",
    server.keyFile,
    "--tls-ca-cert-file",
    client.certFile,
  ];
  await ownRedis({ args: ["--tls-port", String(tlsPort), "--tls-auth-clients", "yes", ...files] });
  const url = `rediss://127.0.0.1:${tlsPort}`;
  let [ca, shown] = [other.cert, client];
  const tls = () => ({ ca, cert: shown.cert, key: shown.key });
  const errors: string[] = [];
  const edge = await openRedisEdge({
    url,
    tls,
    clientName: "tls",
    onError: (error) => void errors.push(error.message),
  });
  onTestFinished(() => edge.close());
  await expect(edge.ping()).rejects.toThrow();
  await waitFor("the reason", () => errors.some((message) => message.includes("self-signed")));
  // The next connection uses the replaced files.
  ca = server.cert;
  await waitFor("it to be used", () => edge.ping().then(() => true));
  shown = other;
  const stranger = await openRedisEdge({ url, tls, clientName: "stranger" });
  onTestFinished(() => stranger.close());
  await expect(stranger.ping()).rejects.toThrow();
});

test("Redis URL selects Sentinel or Cluster mode", () => {
  const url = "redis://127.0.0.1:1?cluster=true&sentinel=postern";
  expect(() => connectRedis({ url, clientName: "both" })).toThrow("sentinels or a cluster, not both");
});
