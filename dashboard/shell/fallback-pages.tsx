import { type ErrorComponentProps, Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Button } from "../components/button.tsx";
import { Page } from "../components/page.tsx";

/** Error page for a page that threw an error or whose file could not be loaded. The other pages still work. */
export function ErrorPage({ error, reset }: ErrorComponentProps): ReactNode {
  const message = error instanceof Error ? error.message : String(error);
  const isOutdated = /dynamically imported module|importing a module/i.test(message);
  return (
    <Page title={isOutdated ? "This page could not be loaded" : "This page failed"}>
      <p>
        {isOutdated
          ? "The server did not send the page. After an upgrade of the server, reload to get its new files."
          : "This is an internal error of the dashboard. Changes that you have already saved are kept."}
      </p>
      <p className="mono muted">{message}</p>
      <p>
        <Button onClick={() => (isOutdated ? location.reload() : reset())}>
          {isOutdated ? "Reload" : "Try again"}
        </Button>
      </p>
    </Page>
  );
}

export function NoPage(): ReactNode {
  return (
    <Page title="No such page" about="The dashboard has no page with this address.">
      <p>
        <Link to="/">Go to the first page</Link>
      </p>
    </Page>
  );
}

export function PageLoading(): ReactNode {
  return (
    <p className="muted loading" role="status">
      Loading …
    </p>
  );
}
