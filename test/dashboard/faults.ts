import type { Browser, BrowserContext, Page } from "playwright-core";

/**
 * What must not happen in the pages of a test: an error on the console, an exception, a breach of the policy, a request elsewhere, a fault of
 * the server.
 */
export class Faults {
  readonly #seen: string[] = [];
  readonly #expected: RegExp[] = [];
  #isClosed = false;

  /** What happened so far, but for what was expected. */
  list(): readonly string[] {
    return this.#seen.filter((fault) => !this.#expected.some((pattern) => pattern.test(fault)));
  }

  /** The test provokes this: no fault that matches counts, from its beginning to its end. */
  expect(pattern: RegExp): void {
    this.#expected.push(pattern);
  }

  readonly report = (fault: string): void => {
    if (!this.#isClosed) this.#seen.push(fault);
  };

  /** Ignores what happens from now on, while the pages close. */
  close(): void {
    this.#isClosed = true;
  }
}

/** Opens a context for the pages of a dashboard, and reports the faults in all of them, also in those that it opens later. */
export async function newWatchedContext(
  { browser, url: baseURL }: { readonly browser: Browser; readonly url: string },
  timezoneId: string,
  report: (fault: string) => void,
): Promise<BrowserContext> {
  const context = await browser.newContext({ baseURL, timezoneId });
  await context.exposeBinding("reportPolicyBreach", (_source, text: string) => report(`policy: ${text}`));
  await context.addInitScript(() => {
    addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI, sourceFile, lineNumber }) => {
      const { reportPolicyBreach } = globalThis as unknown as { reportPolicyBreach: (text: string) => void };
      reportPolicyBreach(`${violatedDirective} ${blockedURI} at ${sourceFile}:${lineNumber}`);
    });
  });
  context.on("console", (message) => {
    if (message.type() === "error") report(`console: ${message.text()} ${message.location().url}`);
  });
  context.on("request", (request) => {
    const url = new URL(request.url());
    if (url.origin !== baseURL && !["blob:", "data:", "about:"].includes(url.protocol)) {
      report(`request to another host: ${request.url()}`);
    }
  });
  context.on("response", (response) => {
    if (response.status() >= 500) report(`response ${response.status()} ${response.url()}`);
  });
  context.on("weberror", (error) => report(`exception: ${error.error().stack ?? error.error().message}`));
  context.on("page", (page: Page) => page.on("crash", () => report(`crash of ${page.url()}`)));
  return context;
}
