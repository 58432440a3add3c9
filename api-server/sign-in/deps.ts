import type { Deps } from "../deps.ts";
import type { ErrorSender } from "../plugins/errors.ts";
import type { SessionRules } from "../sessions/signed-in.ts";
import type { SignInLimits } from "./sign-in-limits.ts";
import type { FailedSignIns } from "./sign-in-log.ts";

/** Dependencies that all sign-in methods share. */
export interface SignInDeps {
  readonly deps: Deps;
  readonly rules: SessionRules;
  readonly bounds: SignInLimits;
  readonly failed: FailedSignIns;
  readonly sendError: ErrorSender;
}
