import { chmod, copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Client } from "pg";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { startEmbeddedPostgres } from "../../cli/embedded-postgres.ts";
import { type CertificateFolder, openCertificateFolder, type TestCertificate } from "../harness/certificate.ts";
import { PROGRAM, startProcess } from "../harness/process.ts";
import { createTestRedis } from "../harness/redis.ts";
import { waitFor } from "../harness/wait.ts";
import { makeClient } from "./client.ts";

/* A Postgres that accepts only TLS connections with client certificates; the certificates of both sides are replaced at runtime. */

const ROOT = resolve(import.meta.dirname, "../..");
const ROOT_KEY = "root_of_the_test_of_certificates_0123456789";
const LONG = { deadlineMs: 60_000 };

let folder: CertificateFolder;
beforeAll(() => {
  folder = openCertificateFolder();
  return () => folder.remove();
});

/** Writes a file into the data folder as the server's user, who must own it. */
async function write(client: Client, file: string, text: string): Promise<void> {
  await client.query("create temp table if not exists lines (line text)");
  await client.query("truncate lines");
  await client.query("insert into lines select unnest($1::text[])", [text.trimEnd().split("\n")]);
  await client.query(`copy lines to program 'umask 077; cat > ${file}'`);
}

async function openPostgres({ server, client }: { server: TestCertificate; client: TestCertificate }) {
  const dataDir = await mkdtemp(join(tmpdir(), "postern-postgres-tls-"));
  // As root, the server runs as another user, which must have access to the folder.
  await chmod(dataDir, 0o755);
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  const postgres = await startEmbeddedPostgres({ dataDir, settings: ["fsync=off"], temporary: true });
  onTestFinished(() => postgres.stop());
  // Existing connections survive a change of the rules.
  const direct = new Client({ connectionString: postgres.url });
  await direct.connect();
  onTestFinished(() => direct.end());
  const use = async (pair: { server: TestCertificate; client: TestCertificate }) => {
    await write(direct, "server.crt", pair.server.cert);
    await write(direct, "server.key", pair.server.key);
    await write(direct, "clients.crt", pair.client.cert);
    await write(direct, "pg_hba.conf", "hostssl all all 127.0.0.1/32 cert clientname=CN map=any");
    // A client with the certificate is mapped to the only user.
    await write(direct, "pg_ident.conf", "any /^.*$ postgres");
    for (const setting of [
      "ssl_cert_file = 'server.crt'",
      "ssl_key_file = 'server.key'",
      "ssl_ca_file = 'clients.crt'",
      "ssl = on",
    ]) {
      await direct.query(`alter system set ${setting}`);
    }
    await direct.query("select pg_reload_conf()");
  };
  await use({ server, client });
  return { url: postgres.url, direct, use };
}

test("api-server and migrations use client certificates for Postgres and reload them", async () => {
  const [server, client, nextServer, nextClient] = ["server", "client", "next-server", "next-client"].map((name) =>
    folder.make(name),
  );
  if (server === undefined || client === undefined || nextServer === undefined || nextClient === undefined)
    throw new Error("no certificates");
  const { url, direct, use } = await openPostgres({ server, client });
  const dir = await mkdtemp(join(tmpdir(), "postern-database-files-"));
  onTestFinished(() => rm(dir, { recursive: true }));
  const files = { ca: join(dir, "ca.crt"), cert: join(dir, "tls.crt"), key: join(dir, "tls.key") };
  const place = async (ofServer: TestCertificate, ofClient: TestCertificate) => {
    await copyFile(ofServer.certFile, files.ca);
    await copyFile(ofClient.certFile, files.cert);
    await copyFile(ofClient.keyFile, files.key);
  };
  await place(server, client);
  const all = {
    DATABASE_URL: url,
    DATABASE_CA_FILE: files.ca,
    DATABASE_CERT_FILE: files.cert,
    DATABASE_KEY_FILE: files.key,
  };

  const migrate = async (env: Record<string, string | undefined>) => {
    const child = await startProcess(process.execPath, [PROGRAM, "migrate"], { cwd: ROOT, env: { ...env } });
    onTestFinished(async () => void (await child.stop()));
    const { code } = await child.exited;
    return { code, said: child.stderr() };
  };
  expect(await migrate({ ...all, DATABASE_CERT_FILE: undefined, DATABASE_KEY_FILE: undefined })).not.toMatchObject({
    code: 0,
  });
  expect(await migrate({ ...all, DATABASE_CA_FILE: nextServer.certFile })).not.toMatchObject({ code: 0 });
  expect(await migrate({ ...all, DATABASE_KEY_FILE: undefined })).toMatchObject({ code: 2 });
  expect(await migrate(all)).toMatchObject({ code: 0 });

  const redis = await createTestRedis();
  onTestFinished(() => redis.close());
  const child = await startProcess(process.execPath, [PROGRAM, "api-server", "--host", "127.0.0.1", "--port", "0"], {
    cwd: ROOT,
    readyLine: /"msg":"ready".*\n/,
    env: {
      ...all,
      REDIS_URL: redis.url,
      POSTERN_REDIS_PREFIX: redis.prefix.replace(/:$/, ""),
      POSTERN_ROOT_KEY: ROOT_KEY,
    },
  });
  onTestFinished(async () => void (await child.stop()));
  const ready =
    child
      .stderr()
      .split("\n")
      .find((line) => line.includes('"msg":"ready"')) ?? "{}";
  const api = makeClient(JSON.parse(ready).url, ROOT_KEY);
  const makesApis = (name: string) =>
    api.call("apis.createApi", { name }).then(
      ({ status }) => status === 200,
      () => false,
    );
  expect(await makesApis("before")).toBe(true);
  // A connection has a user once it is authenticated, and shows whether it is encrypted only then.
  const others =
    "from pg_stat_activity where pid <> pg_backend_pid() and client_addr is not null and usename is not null";
  const { rows } = await direct.query(
    `select distinct ssl, client_dn from pg_stat_ssl where pid in (select pid ${others})`,
  );
  expect(rows).toEqual([{ ssl: true, client_dn: "/CN=client" }]);

  await place(nextServer, nextClient);
  await use({ server: nextServer, client: nextClient });
  await direct.query(`select pg_terminate_backend(pid) ${others}`);
  await waitFor("the new certificates to be used", () => makesApis("after"), LONG);
  const now = await direct.query(`select distinct client_dn from pg_stat_ssl where pid in (select pid ${others})`);
  expect(now.rows).toEqual([{ client_dn: "/CN=next-client" }]);
});
