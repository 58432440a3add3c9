import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { test as base, expect } from "vitest";
import type { Data, Input, Procedure } from "../../core/api/procedures.ts";
import type { PersonRole } from "../../core/permissions/person-roles.ts";
import { ensureDashboard } from "../../scripts/build-dashboard.ts";
import { startChromium } from "../harness/chromium.ts";
import { createEmptyDatabase } from "../harness/postgres.ts";
import { startProcess } from "../harness/process.ts";
import { type Faults, watchFaults } from "./faults.ts";

/*
 * The dashboard as a person has it: a real `postern dev` with the quickstart's manifests, on a database of its own, and a real browser. A
 * file has one of both for all of its tests, and each test a context of its own, which is signed in.
 *
 *   const test = dashboardTest();
 *   test("…", async ({ dashboard, open, faults }) => {
 *     const page = await open("/identities");
 *   });
 */

/** Long for a person, and short enough that a test which waits in vain says so before its own end. */
const TIMEOUT_MS = 15_000;
const SHOWN_CHARS_MAX = 3000;
const ROOT = resolve(import.meta.dirname, "../..");
const run = promisify(execFile);

export interface Dashboard {
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  readonly sidecarUrl: string | null;
  /** With every permission, in the workspace `default`. */
  readonly rootKey: string;
  readonly databaseUrl: string;
  /** Where its manifests are: a test may edit them. */
  readonly manifests: string;
  readonly browser: Browser;
  /** The cookies of its sessions, by role and workspace. */
  readonly sessions: Map<string, Cookies>;
  /** Calls the API with the root key, to prepare and to look at what became of it. Throws when it is refused. */
  call<P extends Procedure>(procedure: P, body: Input<P>): Promise<Data<P>>;
}

export interface DashboardSetting {
  /** A free one when left out. */
  readonly apiPort?: number;
  /** More arguments for `postern dev`, such as `["--api-v1", "off"]`. */
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The folder of manifests; the quickstart's when left out. */
  readonly manifests?: string;
}

export interface OpenSetting {
  /** `admin` when left out. */
  readonly role?: PersonRole;
  /** Where the person has that role, by name. When it is left out, an admin has it in all workspaces, others in `default`. */
  readonly roleIn?: string;
  readonly width?: number;
  readonly height?: number;
  readonly colorScheme?: "light" | "dark";
}

export async function startDashboard(setting: DashboardSetting = {}): Promise<Dashboard & { close(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), "postern-dashboard-test-"));
  const manifests = join(folder, "manifests");
  const source = setting.manifests ?? join(ROOT, "examples/quickstart");
  cpSync(source, manifests, { recursive: true, filter: (path) => !path.endsWith(".ts") });
  const [database, browser] = await Promise.all([createEmptyDatabase(), startChromium(), ensureDashboard()]);
  const ports = ["--api-port", String(setting.apiPort ?? 0), "--sidecar-port", "0"];
  const args = ["dev", "--json", "--data-dir", join(folder, "data"), "--manifests", manifests, ...ports];
  const server = await startProcess(process.execPath, ["cli/main.ts", ...args, ...(setting.args ?? [])], {
    cwd: ROOT,
    readyLine: /^\{.*"apiUrl".*\}$/m,
    readyMs: 60_000,
    env: { DATABASE_URL: database.url, REDIS_URL: undefined, POSTERN_ROOT_KEY: undefined, ...setting.env },
  });
  const ready = JSON.parse(server.stdout()) as { apiUrl: string; sidecarUrl: string | null; rootKey: string };
  return {
    url: ready.apiUrl,
    sidecarUrl: ready.sidecarUrl,
    rootKey: ready.rootKey,
    databaseUrl: database.url,
    manifests,
    browser,
    sessions: new Map(),
    async call(procedure, body) {
      const response = await fetch(`${ready.apiUrl}/v2/${procedure}`, {
        method: "POST",
        headers: { authorization: `Bearer ${ready.rootKey}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      const answer = (await response.json()) as { data: never; error?: unknown };
      if (!response.ok) throw new Error(`${procedure} answered ${response.status}: ${JSON.stringify(answer.error)}`);
      return answer.data;
    },
    async close() {
      await browser.close();
      await server.stop(8000);
      await database.drop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A test with a dashboard that its file shares. It fails when one of its pages has a fault that it did not expect. */
export function dashboardTest(setting: DashboardSetting = {}) {
  return base.extend<{
    dashboard: Dashboard;
    faults: Faults;
    context: BrowserContext;
    /** Opens an address below /dashboard, signed in, and waits until the page shows its title. */
    open: (path: string, how?: OpenSetting) => Promise<Page>;
  }>({
    dashboard: [
      // biome-ignore lint/correctness/noEmptyPattern: the test runner reads from the pattern what a fixture needs.
      async ({}, use) => {
        const dashboard = await startDashboard(setting);
        try {
          await use(dashboard);
        } finally {
          await dashboard.close();
        }
      },
      { scope: "file" },
    ],
    context: async ({ dashboard, task }, use) => {
      const context = await dashboard.browser.newContext({ baseURL: dashboard.url });
      await use(context);
      if ((task.result?.errors?.length ?? 0) > 0) await showPages(context);
      await context.close();
    },
    faults: async ({ dashboard, context }, use) => {
      const faults = await watchFaults(context, dashboard.url);
      await use(faults);
      expect(faults.list()).toEqual([]);
    },
    open: async ({ dashboard, context, faults: _watched }, use) => {
      await use(async (path, { role = "admin", roleIn, width = 1280, height = 800, colorScheme = "light" } = {}) => {
        await signIn(dashboard, context, { role, where: roleIn ?? (role === "admin" ? "*" : "default") });
        const page = await context.newPage();
        page.setDefaultTimeout(TIMEOUT_MS);
        await page.setViewportSize({ width, height });
        await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
        await page.goto(`${dashboard.url}/dashboard${path}`);
        await page.locator("main h1").first().waitFor();
        return page;
      });
    },
  });
}

/** What the pages of a failed test show, for who reads its output. */
async function showPages(context: BrowserContext): Promise<void> {
  for (const page of context.pages()) {
    const text = await page.locator("body").innerText({ timeout: 2000 }).catch(String);
    console.error(`${page.url()} showed:\n${text.slice(0, SHOWN_CHARS_MAX)}`);
  }
}

interface Assigned {
  readonly role: PersonRole;
  /** `*` is all workspaces. */
  readonly where: string;
}

/** Signs the context in, unless it is. */
async function signIn(dashboard: Dashboard, context: BrowserContext, assigned: Assigned): Promise<void> {
  if ((await context.cookies()).length > 0) return;
  const name = `${assigned.role} of ${assigned.where}`;
  const cookies = dashboard.sessions.get(name) ?? (await newSession(dashboard, assigned));
  dashboard.sessions.set(name, cookies);
  await context.addCookies(cookies);
}

type Cookies = Awaited<ReturnType<BrowserContext["cookies"]>>;

/** By a link, as a person would: a file asks for one of each role. */
async function newSession({ browser, url, databaseUrl }: Dashboard, { role, where }: Assigned): Promise<Cookies> {
  const args = ["dashboard", "link", "--json", "--role", role, "--workspace", where, "--name", `Ada (${role})`];
  const { stdout } = await run(process.execPath, ["cli/main.ts", ...args, "--dashboard-url", url], {
    cwd: ROOT,
    env: { ...process.env, DATABASE_URL: databaseUrl },
  });
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    await page.goto((JSON.parse(stdout) as { dashboardUrl: string }).dashboardUrl);
    await page.getByRole("button", { name: "Sign in with this link" }).click();
    await page.locator("main h1").filter({ hasNotText: "Sign in" }).waitFor();
    return await context.cookies();
  } finally {
    await context.close();
  }
}
