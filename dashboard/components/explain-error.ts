import { ApiError } from "../api/api-error.ts";
import { usageTodo } from "../usage/what-to-do.ts";
import { durationText } from "./time.ts";

/** Text of an error, and advice for the person. */
export interface Explained {
  readonly happened: string;
  readonly todo: string;
}

/**
 * Returns advice by HTTP status; the server's own message describes the error. `doing` names the failed action, such as "Reading the keys".
 */
export function explainError(error: unknown, doing: string): Explained {
  if (!(error instanceof ApiError)) {
    return {
      happened: `${doing} failed in this page.`,
      todo: "This is a fault of the dashboard: load the page again.",
    };
  }
  return { happened: `${doing} failed. ${error.detail}`, todo: todoFor(error) };
}

function todoFor(error: ApiError): string {
  const ofUsage = usageTodo(error.kind);
  if (ofUsage === undefined) return todoByStatus(error);
  return error.retryAfterMs === undefined ? ofUsage : `${todoByStatus(error)} ${ofUsage}`;
}

function todoByStatus({ status, kind, retryAfterMs, faults }: ApiError): string {
  switch (status) {
    case 0:
      return "Check the connection to the server, then try again. What is shown stays until it answers.";
    case 400:
      return faults.length > 0
        ? "Mend what is listed, and send it again."
        : "Change what was entered, and send it again.";
    case 401:
      return "Your session has ended: sign in again. What you typed stays in this page.";
    case 403:
      return "Your role does not include this permission here. An admin of the workspace can give you a role that does.";
    case 404:
      return "It may have been deleted in the meantime: go back to the list.";
    case 409:
      return todoForConflict(kind);
    case 412:
      return "It is protected: lift the protection first.";
    case 413:
      return "Send less at a time.";
    case 429:
      return `Too many requests: try again ${retryAfterMs === undefined ? "in a minute" : `in ${durationText(Math.max(1000, retryAfterMs))}`}.`;
    case 503:
      return "A store of the server is away. It is tried again; the page Installation shows which one.";
    default:
      return status >= 500
        ? "This is a fault of the server. Its log has more by the request id."
        : "Read it again, then try once more.";
  }
}

function todoForConflict(kind: string): string {
  if (kind.startsWith("managed")) return "Change its manifest instead: a change made here would be undone.";
  switch (kind) {
    case "last_enabled_workspace":
      return "Enable another workspace first, and raise its quota above 0; or use the command line.";
    case "workspace_name_reserved":
      return "Leave it, and make a workspace with the name that you want.";
    case "workspace_already_exists":
      return "Choose another name.";
    default:
      return "Somebody changed it in the meantime, or the name is taken: read it again, then decide.";
  }
}
