import { afterAll, beforeAll, expect, test } from "vitest";
import { type Cli, openCli } from "../../test/cli.ts";

let cli: Cli;
beforeAll(async () => {
  cli = await openCli();
});
afterAll(() => cli.close());

const insert = (id: string, person: { name: string; email?: string; subject: string }, of: object = {}) => {
  const { expires_at = Date.now() + 60_000, ended_at = null } = of as { expires_at?: number; ended_at?: number };
  const values = [id, person.subject, person.name, person.email ?? null, expires_at, ended_at];
  return cli.db.query(
    `insert into sessions (id, token_hash, issuer, subject, name, email, signed_in_by, created_at, last_seen_at, expires_at, ended_at)
     values ($1, $1, 'https://id.test', $2, $3, $4, 'oidc', 0, 0, $5, $6)`,
    values,
  );
};
const open = async (): Promise<string[]> =>
  (await cli.db.query("select id from sessions where ended_at is null order by id")).rows.map(({ id }) => id);

test("dashboard sign-out finds a user by name, e-mail address or id, ends all sessions, and writes an audit row", async () => {
  await insert("ses_1", { name: "Ada", email: "ada@example.com", subject: "u1" });
  await insert("ses_2", { name: "Ada", email: "ada@example.com", subject: "u1" }, { ended_at: 5 });
  await insert("ses_3", { name: "Grace", email: "grace@example.com", subject: "u2" });
  await insert("ses_4", { name: "Alan", subject: "u3" });
  await insert("ses_5", { name: "Ada%", subject: "u4" });
  await cli.json("dashboard link --name Ada");
  expect(await cli.json("dashboard sign-out --person Ada")).toEqual({ sessions: 1, links: 1 });
  expect(await open()).toEqual(["ses_3", "ses_4", "ses_5"]);
  expect(await cli.json("dashboard sign-out --person grace@example.com")).toEqual({ sessions: 1, links: 0 });
  expect(await cli.json("dashboard sign-out --person u3")).toEqual({ sessions: 1, links: 0 });
  expect(await open()).toEqual(["ses_5"]);
  expect((await cli.db.query("select ended_at from sessions where id = 'ses_2'")).rows[0].ended_at).toBe(5);
  const events = await cli.audit({ targetId: "ses_1" });
  expect(events).toMatchObject([
    { event: "session.delete", actor: { type: "cli" }, targets: [{ type: "session", id: "ses_1", name: "Ada" }] },
  ]);
});

test("dashboard sign-out of a user without sessions succeeds without an audit row", async () => {
  const count = async () => (await cli.db.query("select count(*) as rows from audit_log")).rows[0].rows;
  const before = await count();
  expect(await cli.json("dashboard sign-out --person Nemo")).toEqual({ sessions: 0, links: 0 });
  expect(await count()).toBe(before);
});

test("dashboard sign-out requires a user", async () => {
  expect(await cli.failure("dashboard sign-out", 2)).toContain("--person");
});
