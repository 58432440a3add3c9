import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Page } from "../components/page.tsx";

export function NoPage(): ReactNode {
  return (
    <Page title="No such page" about="The dashboard has no page with this address.">
      <p>
        <Link to="/">Go to the first page</Link>
      </p>
    </Page>
  );
}
