import type { ReactNode } from "react";
import { ApiError } from "../api/api-error.ts";
import { Button } from "./button.tsx";
import { CopyButton } from "./copy-button.tsx";
import { explainError } from "./explain-error.ts";
import { memberOf } from "./form-faults.ts";
import { Notice } from "./notice.tsx";

/** Shows an error: what failed, how to proceed, and the request id for the server's log. */
export function ErrorNote({
  error,
  doing,
  again,
  isAtField = () => false,
}: {
  error: unknown;
  /** The failed action, such as "Reading the keys". */
  doing: string;
  again?: () => void;
  /** Returns whether a form field already shows the problem with this member of the request body. */
  isAtField?: (member: string) => boolean;
}): ReactNode {
  const { happened, todo } = explainError(error, doing);
  const { faults: all = [], requestId, status } = error instanceof ApiError ? error : {};
  const faults = all.filter(({ location }) => !isAtField(memberOf(location)));
  return (
    <Notice kind="bad" actions={again !== undefined && <Button onClick={again}>Try again</Button>}>
      <p>
        <strong>{happened}</strong>
      </p>
      {faults.length > 0 && (
        <ul>
          {faults.map(({ location, message }) => (
            <li key={`${location} ${message}`}>
              <code>{memberOf(location)}</code>: {message}
            </li>
          ))}
        </ul>
      )}
      <p>
        {todo}{" "}
        {status === 401 && (
          <a href="/dashboard/sign-in" target="_blank" rel="noreferrer">
            Sign in in another tab
          </a>
        )}
      </p>
      {requestId !== undefined && (
        <p className="field-row">
          <span className="muted">
            Request <code>{requestId}</code>
          </span>
          <CopyButton text={requestId} label="Copy id" />
        </p>
      )}
    </Notice>
  );
}
