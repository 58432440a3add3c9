import type { BrowserContext, Page } from "playwright-core";

/** What must not happen in a page: an error on its console, an exception, a breach of its policy, a request elsewhere, a fault of the server. */
export interface Faults {
  /** What happened so far, but for what was expected. */
  list(): readonly string[];
  /** The test provokes this: no fault that matches counts, from its beginning to its end. */
  expect(pattern: RegExp): void;
}

/** Watches all pages of the context, those that it opens later too. */
export async function watchFaults(context: BrowserContext, origin: string): Promise<Faults> {
  const seen: string[] = [];
  const expected: RegExp[] = [];
  await context.exposeBinding("reportPolicyBreach", (_source, text: string) => void seen.push(`policy: ${text}`));
  await context.addInitScript(() => {
    addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI, sourceFile, lineNumber }) => {
      const { reportPolicyBreach } = globalThis as unknown as { reportPolicyBreach: (text: string) => void };
      reportPolicyBreach(`${violatedDirective} ${blockedURI} at ${sourceFile}:${lineNumber}`);
    });
  });
  context.on("console", (message) => {
    if (message.type() === "error") seen.push(`console: ${message.text()} ${message.location().url}`);
  });
  context.on("request", (request) => {
    const url = new URL(request.url());
    if (url.origin !== origin && !["blob:", "data:", "about:"].includes(url.protocol)) {
      seen.push(`request to another host: ${request.url()}`);
    }
  });
  context.on("response", (response) => {
    if (response.status() >= 500) seen.push(`response ${response.status()} ${response.url()}`);
  });
  context.on("weberror", (error) => void seen.push(`exception: ${error.error().stack ?? error.error().message}`));
  context.on("page", (page: Page) => page.on("crash", () => void seen.push(`crash of ${page.url()}`)));
  return {
    list: () => seen.filter((fault) => !expected.some((pattern) => pattern.test(fault))),
    expect: (pattern) => void expected.push(pattern),
  };
}
