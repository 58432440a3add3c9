import type { ReactNode } from "react";
import { Button } from "../components/button.tsx";
import { Notice } from "../components/notice.tsx";

/** The page stays open, so that input is not lost. */
export function SessionEnded({ again }: { again: () => void }): ReactNode {
  return (
    <Notice kind="bad" actions={<Button onClick={again}>I have signed in</Button>}>
      Your session has ended. The page keeps your input:{" "}
      <a href="/dashboard/sign-in" target="_blank" rel="noreferrer">
        sign in again in another tab
      </a>
      , then continue.
    </Notice>
  );
}
