import { useQueryClient } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useLostSince } from "../api/connection.ts";
import { Ago } from "../components/ago.tsx";
import { Button } from "../components/button.tsx";
import { Notice } from "../components/notice.tsx";

/** Shows that the server does not respond, since when, and that the displayed data may be outdated. */
export function ConnectionBar(): ReactNode {
  const lostSince = useLostSince();
  const client = useQueryClient();
  if (lostSince === undefined) return null;
  return (
    <Notice
      kind="warn"
      actions={<Button onClick={() => void client.refetchQueries({ type: "active" })}>Try now</Button>}
    >
      The server has not responded since <Ago atMs={lostSince} />. The page shows data from before that time. It
      reconnects automatically.
    </Notice>
  );
}
