import { ApiError } from "../api/api-error.ts";
import { durationText } from "./time.ts";

/** Text of an error, and advice for the person. */
interface Explained {
  readonly happened: string;
  readonly todo: string;
}

/**
 * Returns advice by HTTP status; the server's own message describes the error. `doing` names the failed action, such as "Reading the keys".
 */
export function explainError(error: unknown, doing: string): Explained {
  if (!(error instanceof ApiError)) {
    return {
      happened: `${doing} failed because of an error in this page.`,
      todo: "This is an internal error of the dashboard: reload the page.",
    };
  }
  // If fields have problems, omits the detail: the problems say more, and the detail only names the procedure.
  const detail = error.faults.length > 0 ? "" : ` ${error.detail}`;
  return { happened: `${doing} failed.${detail}`, todo: todoFor(error) };
}

function todoFor(error: ApiError): string {
  const ofUsage = usageTodo(error.kind);
  if (ofUsage === undefined) return todoByStatus(error);
  return error.retryAfterMs === undefined ? ofUsage : `${todoByStatus(error)} ${ofUsage}`;
}

function todoByStatus({ status, kind, retryAfterMs, faults }: ApiError): string {
  switch (status) {
    case 0:
      return "Check the connection to the server, then try again. The page keeps its data until the server responds.";
    case 400:
      return faults.length > 0 ? "Correct the fields, then try again." : "Correct the input, then try again.";
    case 401:
      return "Your session has ended: sign in again. The page keeps your input.";
    case 403:
      return "Your role lacks this permission in the workspace. An admin of the workspace can assign you a role that has it.";
    case 404:
      return "The object may have been deleted: go back to the list.";
    case 409:
      return todoForConflict(kind);
    case 412:
      return "The object is protected: remove the protection first.";
    case 413:
      return "The request is too large: send fewer items at a time.";
    case 429:
      return `Too many requests: try again ${retryAfterMs === undefined ? "in a minute" : `in ${durationText(Math.max(1000, retryAfterMs))}`}.`;
    case 503:
      return "A dependency of the server is unavailable. The server reconnects automatically; the page Installation shows which dependency failed.";
    default:
      return status >= 500
        ? "This is an internal error of the server. Search the server's log for the request id."
        : "Reload the page, then try again.";
  }
}

function todoForConflict(kind: string): string {
  if (kind.startsWith("managed")) return "Change its manifest instead: the operator would undo a change made here.";
  switch (kind) {
    case "last_enabled_workspace":
      return "Enable another workspace first, and raise its quota above 0; or use the command line.";
    case "workspace_name_reserved":
      return "Create another workspace with the desired name.";
    case "workspace_already_exists":
      return "Choose another name.";
    default:
      return "Someone else changed the object, or the name is already in use: reload the page to see the current state.";
  }
}

/** Returns advice for a rejected usage query by error kind; `undefined` for kinds that are common to all procedures. */
export function usageTodo(kind: string): string | undefined {
  return Object.hasOwn(WHAT_TO_DO, kind) ? WHAT_TO_DO[kind] : undefined;
}

const WHAT_TO_DO: Readonly<Record<string, string>> = {
  analytics_not_configured:
    "An admin of the workspace can turn usage queries on in the settings or with `postern workspace update --analytics on`. Events are counted in any case.",
  query_quota_exceeded:
    "The workspace has used up its queries for this hour. Open pages send queries, too: pause their refresh, or ask an admin for a larger quota.",
  query_execution_timeout:
    "Query less data: a shorter period, one API or key, or a table with larger buckets such as days.",
  query_memory_limit_exceeded: "Query fewer rows or columns, or aggregate them in the query.",
  query_rows_limit_exceeded: "Query fewer rows, with a condition or a LIMIT.",
  query_range_exceeds_retention: "Choose a later start: the workspace does not retain older data.",
  server_busy: "Other queries are running. The page retries automatically; query less data, or a shorter period.",
  analytics_connection_failed:
    "Verification is unaffected, and events wait until the analytics store is available. The page retries automatically; the page Installation shows the failed dependency.",
};
