import type { Deps } from "../deps.ts";
import type { ErrorSender } from "../plugins/errors.ts";
import type { SessionRules } from "../sessions/signed-in.ts";
import type { SignInBounds } from "./sign-in-bounds.ts";
import type { FailedSignIns } from "./sign-in-log.ts";

/** What all ways to sign in share. */
export interface SignInParts {
  readonly deps: Deps;
  readonly rules: SessionRules;
  readonly bounds: SignInBounds;
  readonly failed: FailedSignIns;
  readonly sendError: ErrorSender;
}
